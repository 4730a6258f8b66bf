"""The command line of a benchmark: options, exit codes, output."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

from arenite.planner.errors import MissingDependencyError
from harness.machine import this_machine

Main: TypeAlias = Callable[..., int]

INSTALL = "pip install -e '.[all,bench]' brings what most benchmarks need, 'make torch' PyTorch"
"""What to do about a package that is missing."""

_OURS = {path.stem for path in Path(__file__).resolve().parents[1].iterdir()} | {"arenite"}

WIDTH = 180
"""Columns of a table, so that one that goes to a file is not folded."""


class MissingInputsError(Exception):
    """The inputs of a benchmark are not on this machine; the message says where to get them."""


def parser(
    documentation: str | None,
    *,
    models: str | None = None,
    rounds: int | None = None,
) -> argparse.ArgumentParser:
    """Return a parser with the options that benchmarks have in common.

    Args:
        documentation: Of the script; its first line is the description, the rest follows the
            options.
        models: Default models in words, where models can be named.
        rounds: Default number of rounds, where there are rounds.
    """
    summary, _, details = (documentation or "").partition("\n")
    made = argparse.ArgumentParser(
        description=summary,
        epilog=details.strip() or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if models is not None:
        made.add_argument(
            "models", nargs="*", type=Path, metavar="MODEL", help=f"default: {models}"
        )
    if rounds is not None:
        made.add_argument(
            "--rounds",
            type=_positive,
            default=rounds,
            metavar="N",
            help="interleaved rounds; figures are their medians (default: %(default)s)",
        )
    made.add_argument("--json", action="store_true", help="print machine and rows as JSON")
    return made


def chosen(named: Sequence[str], known: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the names given on the command line, or all that are known where none is given.

    Args:
        named: Names as given.
        known: Names that there are, such as the keys of a table.
        kind: What one of them is, in a word.

    Raises:
        MissingInputsError: There is none of a name.
    """
    if unknown := set(named).difference(known):
        raise MissingInputsError(f"there is no {kind} {', '.join(sorted(unknown))}")
    return tuple(named or known)


def bench(main: Main) -> Main:
    """Make a script's `main` return 2 when inputs or packages are missing, and say which.

    Exit code 0 means that the claims hold, 1 that one does not, 2 that nothing was measured.
    """

    @wraps(main)
    def guarded(*arguments: Any, **options: Any) -> int:
        try:
            return main(*arguments, **options)
        except (MissingInputsError, MissingDependencyError) as error:
            note(str(error))
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] in _OURS:
                raise
            note(f"{error.name} is not installed; {INSTALL}")
        return 2

    return guarded


def emit(
    options: argparse.Namespace,
    rows: Sequence[Any] | Mapping[str, Any],
    *shown: Table | str,
) -> None:
    """Print the machine and then either the rows as JSON or what is shown of them.

    Args:
        options: As parsed; `json` decides.
        rows: Dataclasses, or lists of them by name.
        shown: Tables and lines of text.
    """
    machine = this_machine()
    if options.json:
        named = rows if isinstance(rows, Mapping) else {"rows": rows}
        print(json.dumps({"machine": asdict(machine), **_plain(named)}, indent=1))
        return
    console = Console(width=WIDTH, highlight=False)
    console.print(f"machine: {machine}")
    for each in shown:
        console.print(each)


def note(text: str) -> None:
    """Print progress, or what was left out, to standard error."""
    print(text, file=sys.stderr)


def _plain(value: Any) -> Any:
    """Return a value with every dataclass in it as a dictionary."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number
