"""`python -m arenite`."""

from arenite.cli.main import entry_point

entry_point()
