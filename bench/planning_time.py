"""How long planning takes: a whole network from file to plan, and strategies by records.

    python bench/planning_time.py [--records 1000 10000] [--json]

Times are wall-clock seconds on this machine, the median of five runs, one after the other;
compare them with each other, not with another machine's.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx
from rich.console import Console
from rich.table import Table

from arenite.planner.importers import read
from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.verify import verify
from arenite.strategies import STRATEGIES, find

DENSENET = Path(onnx.__file__).parent / "backend/test/data/light/light_densenet121.onnx"
RUNS = 5


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    network = end_to_end()
    strategies = {
        strategy.name: [seconds(partial(strategy, problem)) for problem in problems]
        for problems in [[random_problem(count) for count in arguments.records]]
        for strategy in STRATEGIES
        if strategy.quick
    }
    if arguments.json:
        print(json.dumps({"densenet121": network, "strategies": strategies}, indent=1))
        return
    console = Console(width=100)
    console.print(
        f"DenseNet-121: import {network['import']:.3f} s, "
        f"plan (best) {network['plan']:.3f} s, verify {network['verify']:.3f} s"
    )
    table = Table(title="Seconds by number of records; lifetimes of 1 to 40 steps")
    table.add_column("strategy")
    for count in arguments.records:
        table.add_column(f"{count:,}", justify="right")
    for name, times in strategies.items():
        table.add_row(name, *(f"{value:.3f}" for value in times))
    console.print(table)


def end_to_end() -> dict[str, float]:
    """Return the seconds of each stage for DenseNet-121, about 1,700 nodes as a file."""
    problem = read(DENSENET).problem
    plan = find("best")(problem)
    return {
        "import": seconds(lambda: read(DENSENET)),
        "plan": seconds(lambda: find("best")(problem)),
        "verify": seconds(lambda: verify(problem, plan)),
    }


def random_problem(count: int) -> Problem:
    """Return records with the short lifetimes of a network, the same for the same count."""
    generator = random.Random(count)
    records = []
    for index in range(count):
        start = generator.randrange(count)
        end = start + generator.randrange(1, 41)
        records.append(UsageRecord(f"t{index}", generator.randrange(1, 1 << 20), start, end, 16))
    return Problem(tuple(sorted(records, key=lambda record: record.start)))


def seconds(work: Callable[[], object]) -> float:
    """Return the median wall-clock seconds of five runs."""
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


if __name__ == "__main__":
    main()
