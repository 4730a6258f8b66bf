"""Proved optimal placement of real networks: the exact solver on every model there is.

    python bench/exact_models.py [--json]

Models: the nine networks inside the `onnx` package, the networks of the zoo and, where
present, those in `../shared/models`. Each is placed in its given order, nothing aliased,
offsets aligned to 16 B. Seconds are those of the search alone, one run each.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx
from rich.console import Console
from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.planner.importers import read
from arenite.planner.problem import Problem
from arenite.planner.verify import verify
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from onnxsim_comparison import DIMS, LIGHT
from zoo import NETWORKS

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"


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


def main() -> int:
    """Print the table; exit 1 if a model is not proved within a second."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    as_json = parser.parse_args().json
    rows = [solve(name, problem) for name, problem in problems()]
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        Console(width=110).print(table(rows))
    return int(any(not row.proved or row.seconds >= 1 for row in rows))


def table(rows: list[Row]) -> Table:
    """Return the rows as a table."""
    out = Table(title="Exact placement of networks, bytes")
    for title in ("model", "records", "lower bound", "greedy", "height", "proved", "s"):
        out.add_column(title, justify="left" if title == "model" else "right")
    for row in rows:
        out.add_row(
            row.model,
            f"{row.num_records:,}",
            f"{row.lower_bound:,}",
            f"{row.greedy_by_size / row.lower_bound - 1:+.1%}",
            f"{row.height:,}",
            "yes" if row.proved else "no",
            f"{row.seconds:.3f}",
        )
    return out


def problems() -> Iterator[tuple[str, Problem]]:
    """Yield a name and what is to be placed."""
    files = [*sorted(LIGHT.glob("light_*.onnx")), *sorted(SHARED.glob("*/*.onnx"))]
    for path in [*files, *sorted(SHARED.glob("*/*.tflite"))]:
        try:
            yield path.name, read(path, dims=DIMS.get(path.name)).problem
        except AreniteError as error:
            print(f"{path.name}: left out: {error}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for name, network in NETWORKS.items():
            path = Path(folder) / f"{name}.onnx"
            onnx.save(network(), path)
            yield f"zoo/{name}", read(path).problem


def solve(name: str, problem: Problem) -> Row:
    """Return what the solver makes of one model."""
    begin = time.perf_counter()
    plan = Optimal()(problem)
    seconds = time.perf_counter() - begin
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
