"""How time and memory of the quick strategies grow with the number of records.

    python bench/scale.py [--records N...] [--strategy NAME...] [--json]

Every strategy runs in a fresh process, so that its peak memory is its own; that includes Python
and the problem, whose part the row of the problem alone shows. Seconds are one run each.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from rich.table import Table

from arenite.planner.placement.verification import verify
from arenite.strategies import find
from harness import bench, emit, in_fresh_process, parser, peak_rss_bytes, table, timed
from random_problems import random_problem

NO_STRATEGY = "(the problem alone)"
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


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--strategy", nargs="+", default=STRATEGIES)
    parsed = options.parse_args(arguments)
    rows = [
        in_fresh_process(measure, name, count)
        for count, name in product(parsed.records, (NO_STRATEGY, *parsed.strategy))
    ]
    emit(parsed, rows, shown(rows))
    return 0


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Seconds and peak memory by number of records",
        ("strategy", "records", "s", "us per record", "peak RSS, MiB", "gap"),
        (
            (
                row.strategy,
                f"{row.num_records:,}",
                f"{row.seconds:.2f}",
                f"{1e6 * row.seconds / row.num_records:.1f}",
                f"{row.peak_rss_bytes / 2**20:,.0f}",
                "" if row.strategy == NO_STRATEGY else f"{row.gap:.2%}",
            )
            for row in rows
        ),
    )


def measure(name: str, count: int) -> Row:
    """Return what a strategy takes; its plan is verified afterwards."""
    problem = random_problem(count)
    if name == NO_STRATEGY:
        return Row(name, count, 0.0, peak_rss_bytes(), 0.0)
    strategy = find(name)
    seconds, plan = timed(lambda: strategy(problem))
    peak = peak_rss_bytes()
    verify(problem, plan)
    return Row(name, count, round(seconds, 3), peak, plan.gap)


if __name__ == "__main__":
    sys.exit(main())
