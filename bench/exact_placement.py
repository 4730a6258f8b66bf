"""The exact solver on hard placement instances, beside others where they are installed.

    python bench/exact_placement.py [FOLDER...] [--time-limit S] [--minimalloc PROGRAM] [--json]

Folders hold instances as CSV (`id,lower,upper,size`); by default those of `../shared/instances`
beside the checkout: google/minimalloc's and training traces. The others are

- MiniMalloc, when its program is given: asked for the capacity in the instance's file name,
  or else for the lower bound;
- SuperMalloc of `omnimalloc`, when installed, with its default settings but the time limit;
- CP-SAT, when `ortools` is installed.

All run one after the other. Seconds are wall-clock on this machine, one run each; heights are
distances to the lower bound, a dash where there is no answer.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.planner.importers.csv import read_csv
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.strategy import run
from arenite.planner.verify import verify
from arenite.strategies.deadline import deadline
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.optimal import Optimal

INSTANCES = Path(__file__).resolve().parents[2] / "shared" / "instances"
MOST_RECORDS_OF_PEERS = 2_000  # beyond, they only use up their time

Solve: TypeAlias = Callable[[Path, Problem], tuple[int, ...] | None]
"""From a file and its problem to offsets, None when there is no answer."""


@dataclass(frozen=True)
class Answer:
    """What one solver makes of one instance; no height means no answer."""

    height: int | None
    seconds: float


@dataclass(frozen=True)
class Row:
    """One instance: bytes, and whether our height is proved."""

    instance: str
    num_records: int
    lower_bound: int
    greedy_by_size: int
    proved: bool
    answers: dict[str, Answer]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", help="with instances as CSV")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds an instance")
    parser.add_argument("--minimalloc", type=Path, help="MiniMalloc's program")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    folders = arguments.folders or sorted(path for path in INSTANCES.glob("*") if path.is_dir())
    paths = [path for folder in folders for path in sorted(folder.glob("*.csv"))]
    if not paths:
        print(f"no instances in {', '.join(map(str, folders)) or INSTANCES}", file=sys.stderr)
        return 0
    solvers = dict(peers(arguments.time_limit, arguments.minimalloc))
    rows = [solve(path, arguments.time_limit, solvers) for path in paths]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        Console(width=140).print(table(rows, ["arenite", *solvers]))
    return 0


def table(rows: list[Row], solvers: list[str]) -> Table:
    """Return the rows with two columns for each solver and the seconds summed up."""
    out = Table(title="Exact placement", show_footer=True)
    out.add_column("instance", footer="seconds in all")
    for title in ("records", "lower bound", "greedy", "proved"):
        out.add_column(title, justify="right")
    for name in solvers:
        total = sum(row.answers[name].seconds for row in rows if name in row.answers)
        out.add_column(name, justify="right")
        out.add_column("s", justify="right", footer=f"{total:.2f}")
    for row in rows:
        cells = [
            row.instance,
            f"{row.num_records:,}",
            f"{row.lower_bound:,}",
            f"{row.greedy_by_size / row.lower_bound - 1:+.1%}",
            "yes" if row.proved else "no",
        ]
        for name in solvers:
            answer = row.answers.get(name)
            cells.append(distance(answer, row.lower_bound))
            cells.append("" if answer is None else f"{answer.seconds:.2f}")
        out.add_row(*cells)
    return out


def distance(answer: Answer | None, lower_bound: int) -> str:
    """Return how far a height lies above the bound."""
    if answer is None:
        return ""
    if answer.height is None:
        return "-"
    return "0" if answer.height == lower_bound else f"{answer.height / lower_bound - 1:+.2%}"


def solve(path: Path, time_limit_s: float, solvers: dict[str, Solve]) -> Row:
    """Return what all make of one instance, ours without the capacity in its name."""
    problem = read_csv(path).with_capacity(None)
    begin = time.perf_counter()
    plan = run(Optimal(max_nodes=None), problem, deadline(time_limit_s))
    seconds = time.perf_counter() - begin
    verify(problem, plan)
    answers = {"arenite": Answer(plan.height, round(seconds, 3))}
    if len(problem.records) <= MOST_RECORDS_OF_PEERS:
        answers |= {name: ask(solver, path, problem) for name, solver in solvers.items()}
    return Row(
        f"{path.parent.name}/{path.stem}",
        len(problem.records),
        problem.lower_bound,
        GreedyBySize()(problem).height,
        plan.optimal,
        answers,
    )


def ask(solver: Solve, path: Path, problem: Problem) -> Answer:
    """Return a solver's answer, verified."""
    begin = time.perf_counter()
    offsets = solver(path, problem)
    seconds = round(time.perf_counter() - begin, 3)
    if offsets is None:
        return Answer(None, seconds)
    plan = Plan.of(problem, offsets, "another")
    verify(problem, plan)
    return Answer(plan.height, seconds)


def peers(time_limit_s: float, minimalloc: Path | None) -> Iterator[tuple[str, Solve]]:
    """Yield the solvers that are here."""
    if minimalloc is not None:
        yield (
            "MiniMalloc",
            lambda path, problem: run_minimalloc(minimalloc, path, problem, time_limit_s),
        )
    try:
        from omnimalloc import Allocation, allocate
        from omnimalloc.allocators import SupermallocAllocator
    except ImportError:
        print("omnimalloc is not installed: left out", file=sys.stderr)
    else:

        def run_omnimalloc(_path: Path, problem: Problem) -> tuple[int, ...]:
            allocations = [
                Allocation(index, record.size, record.start, record.end)
                for index, record in enumerate(problem.records)
            ]
            allocated = allocate(allocations, SupermallocAllocator(timeout=time_limit_s))
            by_id = {allocation.id: allocation.offset for allocation in allocated}
            return tuple(by_id[index] for index in range(len(problem.records)))

        yield "omnimalloc", run_omnimalloc
    try:
        import ortools  # noqa: F401  # only whether it is there
    except ImportError:
        print("ortools is not installed: left out", file=sys.stderr)
    else:

        def run_cp_sat(_path: Path, problem: Problem) -> tuple[int, ...] | None:
            try:
                return run(CpSat(max_work=None), problem, deadline(time_limit_s)).offsets
            except AreniteError:
                return None

        yield "CP-SAT", run_cp_sat


def run_minimalloc(
    program: Path, path: Path, problem: Problem, time_limit_s: float
) -> tuple[int, ...] | None:
    """Return the offsets of MiniMalloc; it answers within its capacity or not at all."""
    capacity = read_csv(path).capacity or problem.lower_bound
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "offsets.csv"
        done = subprocess.run(
            [
                program,
                f"--capacity={capacity}",
                f"--input={path}",
                f"--output={output}",
                f"--timeout={time_limit_s}s",
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 or not output.exists():
            return None
        header, *lines = output.read_text().split()
        column = header.split(",").index("offset")
        offsets = {line.split(",")[0]: int(line.split(",")[column]) for line in lines}
    return tuple(offsets[record.name] for record in problem.records)


if __name__ == "__main__":
    sys.exit(main())
