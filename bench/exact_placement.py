"""The exact solver on hard placement instances.

    python bench/exact_placement.py [--time-limit S] [--json]

Reads `../shared/instances` beside the checkout: instances of google/minimalloc and training
traces. Seconds are wall-clock on this machine, one run each; heights are exact.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from arenite.planner.importers.csv import read_csv
from arenite.planner.verify import verify
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.optimal import Optimal

INSTANCES = Path(__file__).resolve().parents[2] / "shared" / "instances"


@dataclass(frozen=True)
class Row:
    """One instance: bytes, whether the height is proved, and seconds."""

    instance: str
    num_records: int
    lower_bound: int
    greedy_by_size: int
    height: int
    proved: bool
    seconds: float


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds an instance")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    paths = sorted(INSTANCES.glob("*/*.csv"))
    if not paths:
        print(f"no instances in {INSTANCES}", file=sys.stderr)
        return 0
    rows = [solve(path, arguments.time_limit) for path in paths]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return 0
    table = Table(title="Exact placement")
    for title in Row.__dataclass_fields__:
        table.add_column(
            title.replace("_", " "), justify="left" if title == "instance" else "right"
        )
    for row in rows:
        table.add_row(
            row.instance,
            f"{row.num_records:,}",
            f"{row.lower_bound:,}",
            f"{row.greedy_by_size / row.lower_bound - 1:+.1%}",
            f"{row.height / row.lower_bound - 1:+.1%}",
            "yes" if row.proved else "no",
            f"{row.seconds:.2f}",
        )
    Console(width=110).print(table)
    return 0


def solve(path: Path, time_limit_s: float) -> Row:
    """Return what the solver makes of one instance, without the capacity in its name."""
    problem = replace(read_csv(path), capacity=None)
    begin = time.perf_counter()
    plan = Optimal(time_limit_s=time_limit_s)(problem)
    seconds = time.perf_counter() - begin
    verify(problem, plan)
    return Row(
        f"{path.parent.name}/{path.stem}",
        len(problem.records),
        problem.lower_bound,
        GreedyBySize()(problem).height,
        plan.height,
        plan.optimal,
        round(seconds, 3),
    )


if __name__ == "__main__":
    sys.exit(main())
