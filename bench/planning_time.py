"""How long planning takes: a whole network from file to plan, and strategies by records.

    python bench/planning_time.py [--records 1000 10000] [--rounds N] [--json]

Times are wall-clock seconds, medians of interleaved rounds with their range.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.table import Table

from arenite.planner.importers import read
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import verify
from arenite.strategies import STRATEGIES, find
from harness import Spread, bench, emit, interleaved, parser, table, timed
from harness.inputs import light_networks, required
from random_problems import random_problem

NETWORK = "light_densenet121"


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        what: A stage of planning DenseNet-121, or a strategy.
        num_records: Of the problem.
        seconds: Over the rounds.
    """

    what: str
    num_records: int
    seconds: Spread


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    options = parser(__doc__, rounds=5)
    options.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000])
    parsed = options.parse_args(arguments)
    stages = end_to_end(parsed.rounds)
    strategies = [row for count in parsed.records for row in by_strategy(count, parsed.rounds)]
    emit(
        parsed,
        {"densenet121": stages, "strategies": strategies},
        shown("DenseNet-121, about 1,700 nodes, from file to plan", "stage", stages),
        shown("Random problems, lifetimes of 1 to 40 steps", "strategy", strategies),
    )
    return 0


def end_to_end(num_rounds: int) -> list[Row]:
    """Return the seconds of each stage for DenseNet-121, about 1,700 nodes as a file."""
    paths = [path for path in light_networks() if path.stem == NETWORK]
    (path,) = required(paths, f"{NETWORK}.onnx is not in the installed package onnx")
    problem = read(path).problem
    plan = find("best")(problem)
    stages: dict[str, Callable[[], object]] = {
        "import": lambda: read(path),
        "plan (best)": lambda: find("best")(problem),
        "verify": lambda: verify(problem, plan),
    }
    return measured(stages, problem, num_rounds)


def by_strategy(count: int, num_rounds: int) -> list[Row]:
    """Return the seconds of each quick strategy on a random problem."""
    problem = random_problem(count)
    quick: dict[str, Callable[[], object]] = {
        strategy.name: partial(strategy, problem) for strategy in STRATEGIES if strategy.quick
    }
    return measured(quick, problem, num_rounds)


def measured(
    works: dict[str, Callable[[], object]], problem: Problem, num_rounds: int
) -> list[Row]:
    """Return the rows of some works on one problem."""
    times = interleaved({name: partial(timed, work) for name, work in works.items()}, num_rounds)
    return [
        Row(name, len(problem.records), Spread.of(seconds for seconds, _ in found))
        for name, found in times.items()
    ]


def shown(title: str, what: str, rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        title,
        (what, "records", "s, median (range)"),
        ((row.what, f"{row.num_records:,}", row.seconds.text()) for row in rows),
    )


if __name__ == "__main__":
    sys.exit(main())
