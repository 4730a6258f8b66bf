"""Contests of `bench`, run as its command runs them or row by row."""

from pathlib import Path

from bench.contests import CONTESTS
from bench.harness.command import run
from bench.harness.contest import Asked, Row


def asked(name: str, folder: Path, *arguments: str) -> Asked:
    """Return a contest's options as parsed."""
    return Asked(CONTESTS[name].load(name).parser(name).parse_args(arguments), folder)


def rows_of(name: str, folder: Path, *arguments: str) -> tuple[list[Row], list[str]]:
    """Return the rows of a contest and the claims that fail."""
    given = asked(name, folder, *arguments)
    return list(CONTESTS[name].load(name).measure(given)), given.failures


def run_contest(name: str, *arguments: str) -> int:
    """Return the exit code of a contest."""
    return run(name, CONTESTS[name], arguments)
