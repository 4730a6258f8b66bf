"""Runs a contest: reads its options, prints tables or JSON, keeps results, returns a code."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from arenite.planner.errors import MissingDependencyError
from bench.harness.contest import (
    TABLE,
    Asked,
    Contest,
    MissingInputsError,
    Row,
    cells_of,
    note,
    plain,
)
from bench.harness.measuring import this_machine
from bench.harness.results import save

INSTALL = (
    "pip install -e '.[all,bench]' installs the packages of most contests, 'make torch' PyTorch"
)
_WIDTH = 180


@dataclass(frozen=True, slots=True)
class Entry:
    """A contest in the table of `python -m bench list`.

    Attributes:
        module: Module in `bench.contests`; the contest has its own name there.
        measure: Bytes, latency ratio, peak RSS, quality or seconds.
        models: The default models.
        engines: The engines or tools beside each other.
    """

    module: str
    measure: str
    models: str
    engines: str

    def load(self, name: str) -> Contest:
        """Return the declaration."""
        found = getattr(import_module(f"bench.contests.{self.module}"), name.replace("-", "_"))
        assert isinstance(found, Contest)
        return found


def run(name: str, entry: Entry, arguments: Sequence[str] = ()) -> int:
    """Run a contest and print its tables.

    Returns:
        0 if the claims hold, 1 if one does not, 2 if nothing was measured because inputs or
        packages are missing.
    """
    try:
        declared = entry.load(name)
        given = declared.parser(name).parse_args(list(arguments))
        with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
            asked = Asked(given, Path(folder))
            rows = list(declared.measure(asked))
    except (MissingInputsError, MissingDependencyError) as error:
        note(str(error))
        return 2
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in ("arenite", "bench"):
            raise
        note(f"{error.name} is not installed; {INSTALL}")
        return 2
    result = result_of(name, declared, rows, ["python", "-m", "bench", "run", name, *arguments])
    if given.save:
        save(result)
    show(result, as_json=given.json)
    return int(bool(asked.failures))


def result_of(
    name: str, declared: Contest, rows: Sequence[Row], command: Sequence[str]
) -> dict[str, Any]:
    """Return the result as it is printed and kept."""
    first = next(iter(declared.tables))
    tables = []
    for title, columns in declared.tables.items():
        its = [row for row in rows if row.get(TABLE, first) == title]
        if its:
            tables.append({
                "title": title,
                "columns": list(columns),
                "formats": list(columns.values()),
                "rows": [[plain(row.get(head)) for head in columns] for row in its],
            })  # fmt: skip
    words = [each for each in command if each not in ("--save", "--json")]
    machine = asdict(this_machine())
    return {"contest": name, "command": " ".join(words), "machine": machine, "tables": tables}


def show(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a result as JSON or as tables."""
    if as_json:
        print(json.dumps(result, indent=1))
        return
    console = Console(width=_WIDTH, highlight=False)
    console.print(f"machine: {this_machine()}")
    for each in result["tables"]:
        made = Table(title=each["title"])
        cells = [cells_of(each, row) for row in each["rows"]]
        for index, head in enumerate(each["columns"]):
            is_text = any(isinstance(row[index], str) for row in each["rows"])
            made.add_column(head, justify="left" if is_text else "right")
        for row in cells:
            made.add_row(*row)
        console.print(made)
