"""Proved optimal placement of real networks: the exact solver on every model there is.

    python bench/exact_models.py [--json]

Models: the nine networks inside the `onnx` package, the networks of the zoo and, where
present, those in `../shared/models`. Each is placed in its given order, nothing aliased,
offsets aligned to 16 B. Seconds are those of the search alone, one run each.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.planner.importers import read
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import verify
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from harness import bench, emit, note, parser, table, timed
from harness.inputs import SHARED, dims_of, light_networks, zoo_file
from zoo import NETWORKS


@dataclass(frozen=True)
class Row:
    """One model: bytes, whether the height is proved, and seconds."""

    model: str
    num_records: int
    lower_bound: int
    greedy_by_size: int
    height: int
    proved: bool
    seconds: float


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a model is not proved within a second."""
    options = parser(__doc__).parse_args(arguments)
    rows = [solve(name, problem) for name, problem in problems()]
    emit(options, rows, shown(rows))
    return int(any(not row.proved or row.seconds >= 1 for row in rows))


def shown(rows: list[Row]) -> Table:
    """Return the rows as a table."""
    return table(
        "Exact placement of networks, bytes",
        ("model", "records", "lower bound", "greedy", "height", "proved", "s"),
        (
            (
                row.model,
                f"{row.num_records:,}",
                f"{row.lower_bound:,}",
                f"{row.greedy_by_size / row.lower_bound - 1:+.1%}",
                f"{row.height:,}",
                "yes" if row.proved else "no",
                f"{row.seconds:.3f}",
            )
            for row in rows
        ),
    )


def problems() -> Iterator[tuple[str, Problem]]:
    """Yield the name and the problem of each model."""
    models = SHARED / "models"
    for path in (
        *light_networks(),
        *sorted(models.glob("*/*.onnx")),
        *sorted(models.glob("*/*.tflite")),
    ):
        try:
            yield path.name, read(path, dims=dims_of(path)).problem
        except AreniteError as error:
            note(f"{path.name}: left out: {error}")
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            yield f"zoo/{name}", read(zoo_file(name, Path(folder))).problem


def solve(name: str, problem: Problem) -> Row:
    """Return the solver's result on one model."""
    seconds, plan = timed(lambda: Optimal()(problem))
    verify(problem, plan)
    return Row(
        name,
        len(problem.records),
        problem.lower_bound,
        GreedyBySize()(problem).height,
        plan.height,
        plan.optimal,
        round(seconds, 4),
    )


if __name__ == "__main__":
    sys.exit(main())
