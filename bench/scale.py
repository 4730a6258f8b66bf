"""What many records cost: seconds and memory of the quick strategies.

    python bench/scale.py [--records N...] [--strategy NAME...] [--json]

Every strategy runs in a process of its own, so that its peak memory is its own; that
includes Python and the problem, whose share the first row shows. Records live for 1 to 40
steps, as many steps as records; sizes up to 1 MiB, alignment 16.
"""

import argparse
import json
import multiprocessing
import resource
import time
from dataclasses import asdict, dataclass
from itertools import product

from rich.console import Console
from rich.table import Table

from arenite.planner.verify import verify
from arenite.strategies import find
from planning_time import random_problem

NOTHING = "(the problem alone)"
STRATEGIES = (
    "greedy-by-size",
    "greedy-by-breadth",
    "greedy-by-area",
    "greedy-by-lifetime",
    "tflm",
    "xla-best-fit",
)


@dataclass(frozen=True)
class Row:
    """One strategy on so many records; the gap is the distance to the lower bound."""

    strategy: str
    num_records: int
    seconds: float
    peak_rss_bytes: int
    gap: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--strategy", nargs="+", default=STRATEGIES)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    rows = []
    for count, name in product(arguments.records, (NOTHING, *arguments.strategy)):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, (name, count)))
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    table = Table(title="Seconds and peak memory by number of records")
    for title in ("strategy", "records", "s", "us a record", "peak RSS, MiB", "gap"):
        table.add_column(title, justify="left" if title == "strategy" else "right")
    for row in rows:
        table.add_row(
            row.strategy,
            f"{row.num_records:,}",
            f"{row.seconds:.2f}",
            f"{1e6 * row.seconds / row.num_records:.1f}",
            f"{row.peak_rss_bytes / 2**20:,.0f}",
            "" if row.strategy == NOTHING else f"{row.gap:.2%}",
        )
    Console(width=100).print(table)


def measure(name: str, count: int) -> Row:
    """Return what a strategy takes; its plan is verified, off the clock."""
    problem = random_problem(count)
    if name == NOTHING:
        return Row(name, count, 0.0, peak_rss_bytes(), 0.0)
    strategy = find(name)
    begin = time.perf_counter()
    plan = strategy(problem)
    seconds = time.perf_counter() - begin
    peak = peak_rss_bytes()
    verify(problem, plan)
    return Row(name, count, round(seconds, 3), peak, plan.gap)


def peak_rss_bytes() -> int:
    """Return the most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
