"""`python -m arenite`."""

try:
    from arenite.cli.main import entry_point
except KeyboardInterrupt:
    raise SystemExit(130) from None

entry_point()
