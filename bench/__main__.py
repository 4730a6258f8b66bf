"""`python -m bench run NAME`, `list` and `tables`."""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.contests import CONTESTS
from bench.harness.command import run
from bench.harness.contest import note
from bench.harness.results import PAGES, tables, written


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a contest, list all contests, or write the tables of the documentation."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="run contests; options follow the name of one")
    runs.add_argument("name", choices=[*CONTESTS, "all"], metavar="NAME")
    runs.add_argument("arguments", nargs=argparse.REMAINDER, help="options of the contest")
    commands.add_parser("list", help="list the contests")
    commands.add_parser("tables", help="write the tables of the documentation from bench/results")
    given = parser.parse_args(arguments)
    if given.command == "list":
        _list()
        return 0
    if given.command == "tables":
        for page in PAGES:
            page.write_text(written(page.read_text(), tables()))
        return 0
    if given.name != "all":
        return run(given.name, CONTESTS[given.name], given.arguments)
    codes = []
    for name, entry in CONTESTS.items():
        note(f"== {name}")
        codes.append(run(name, entry, given.arguments))
    return int(1 in codes)


def _list() -> None:
    shown = Table("contest", "measure", "models", "engines")
    for name, entry in CONTESTS.items():
        shown.add_row(name, entry.measure, entry.models, entry.engines)
    Console(width=140, highlight=False).print(shown)


if __name__ == "__main__":
    sys.exit(main())
