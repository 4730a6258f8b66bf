"""A contest: its tables and options, declared beside the function that yields the rows."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from arenite.planner.errors import AreniteError
from bench.harness.measuring import ProcessError, Spread

Cell: TypeAlias = str | int | float | bool | Spread | None
Row: TypeAlias = dict[str, Cell]
Columns: TypeAlias = Mapping[str, str]
"""The format of each column by its head; integers have separators of thousands without one."""
Option: TypeAlias = Callable[[argparse.ArgumentParser], object]
Measured = TypeVar("Measured")

TABLE = "table"
"""Key of a row that names its table, in a contest of several tables."""


class MissingInputsError(Exception):
    """The inputs of a contest are not on this machine; the message says where to get them."""


@dataclass(slots=True)
class Asked:
    """One run of a contest.

    Attributes:
        given: The parsed options.
        folder: A temporary folder for models and programs.
        failures: Claims that do not hold.
    """

    given: argparse.Namespace
    folder: Path
    failures: list[str] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Number of interleaved rounds."""
        return int(self.given.rounds)

    @property
    def models(self) -> Sequence[Path]:
        """Models named on the command line."""
        return list(self.given.models)

    def require(self, holds: bool, claim: str) -> bool:
        """Note a claim that does not hold, which makes the exit code 1."""
        if not holds:
            self.failures.append(claim)
            note(f"failed: {claim}")
        return holds

    def each(
        self, found: Iterable[Path], measure: Callable[[Path], Measured]
    ) -> Iterator[Measured]:
        """Yield the measurement of each model that is named, or else of those found.

        A found model that cannot be measured is left out with a note.

        Raises:
            MissingInputsError: A named model is no file.
        """
        if self.models:
            yield from map(measure, required(self.models, "name model files"))
            return
        for path in found:
            try:
                yield measure(path)
            except (AreniteError, ProcessError) as error:
                note(f"{path.name}: left out: {error}")


@dataclass(frozen=True, slots=True)
class Contest:
    """A contest as it is declared.

    Attributes:
        measure: Yields the rows; its docstring is the help text.
        tables: Columns by the title of the table.
        models: Default models in words; None where none can be named.
        rounds: Default number of rounds; None where there are none.
        options: Add further options to a parser.
    """

    measure: Callable[[Asked], Iterable[Row]]
    tables: Mapping[str, Columns]
    models: str | None = None
    rounds: int | None = None
    options: Sequence[Option] = ()

    def parser(self, name: str) -> argparse.ArgumentParser:
        """Return the parser of the contest's command line."""
        summary, _, details = (self.measure.__doc__ or "").partition("\n")
        made = argparse.ArgumentParser(
            prog=f"python -m bench run {name}",
            description=summary,
            epilog=details,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if self.models is not None:
            made.add_argument(
                "models", nargs="*", type=Path, metavar="MODEL", help=f"default: {self.models}"
            )
        if self.rounds is not None:
            made.add_argument(
                "--rounds", type=_positive, default=self.rounds, metavar="N",
                help="interleaved rounds; figures are their medians (default: %(default)s)",
            )  # fmt: skip
        made.add_argument("--json", action="store_true", help="print machine and rows as JSON")
        made.add_argument("--save", action="store_true", help="keep the result in bench/results")
        for option in self.options:
            option(made)
        return made


def option(*names: str, **settings: Any) -> Option:
    """Return an option, declared as for `argparse`."""
    return lambda parser: parser.add_argument(*names, **settings)


def contest(
    tables: Mapping[str, Columns],
    *,
    models: str | None = None,
    rounds: int | None = None,
    options: Sequence[Option] = (),
) -> Callable[[Callable[[Asked], Iterable[Row]]], Contest]:
    """Declare the function below as the measure of a contest."""
    return partial(Contest, tables=tables, models=models, rounds=rounds, options=options)


def cells_of(table: Mapping[str, Any], row: Sequence[Any]) -> list[str]:
    """Return the text of each cell of a row of a table."""
    formats = table.get("formats") or [""] * len(row)
    return [text_of(cell, form) for cell, form in zip(row, formats, strict=True)]


def text_of(cell: Any, form: str) -> str:
    """Return the text of a cell in a format."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "NO"
    if isinstance(cell, Mapping):
        cell = Spread(**cell)
    if isinstance(cell, Spread):
        return cell.text(form or ".2f")
    if isinstance(cell, str):
        return cell
    return f"{cell:{form or (',' if isinstance(cell, int) else '')}}"


def plain(cell: Cell) -> Any:
    """Return a cell as JSON keeps it."""
    return asdict(cell) if isinstance(cell, Spread) else cell


def required(paths: Sequence[Path], needed: str) -> Sequence[Path]:
    """Return the paths, of which there must be one, and all of which must be files.

    Raises:
        MissingInputsError: There is none, or one is no file; the message ends in `needed`.
    """
    if not paths:
        raise MissingInputsError(needed)
    for path in paths:
        if not path.is_file():
            raise MissingInputsError(f"{path}: no such file; {needed}")
    return paths


def chosen(named: Sequence[str], known: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the names given on the command line, or all known ones if none is given.

    Raises:
        MissingInputsError: A name is unknown.
    """
    if unknown := set(named).difference(known):
        raise MissingInputsError(f"there is no {kind} {', '.join(sorted(unknown))}")
    return tuple(named or known)


def note(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number
