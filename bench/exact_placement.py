"""The exact solver on hard placement instances, beside other solvers where they are installed.

    python bench/exact_placement.py [FOLDER...] [--time-limit S] [--minimalloc PROGRAM] [--json]

Instances are CSV files (`id,lower,upper,size`): those of `assets/instances`, which the project
makes itself (`placement_instances.py`), those of `../shared/instances` where that folder lies
beside the checkout (google/minimalloc's and training traces), and those of the folders named.
Other solvers are

- MiniMalloc, when its program is given: asked for the capacity in the instance's file name,
  or else for the lower bound;
- SuperMalloc of `omnimalloc`, when installed, with its default settings but the time limit;
- CP-SAT, when `ortools` is installed.

All run one after the other. Seconds are wall-clock, one run each; heights are distances to the
lower bound, a dash where a solver has no answer.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.planner.importers.csv import read_csv
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.strategies import deadline
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from harness import bench, emit, note, parser, table, timed
from harness.inputs import SHARED, required
from placement_instances import INSTANCES

MOST_RECORDS_OF_PEERS = 2_000  # beyond, they only use up their time

Solve: TypeAlias = Callable[[Path, Problem], tuple[int, ...] | None]
"""From a file and its problem to offsets, None when there is no answer."""


@dataclass(frozen=True)
class Answer:
    """The result of one solver on one instance; no height means no answer."""

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


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("folders", type=Path, nargs="*", help="with further instances as CSV")
    options.add_argument("--time-limit", type=float, default=10.0, help="seconds per instance")
    options.add_argument("--minimalloc", type=Path, help="MiniMalloc's program")
    parsed = options.parse_args(arguments)
    paths = instances(parsed.folders)
    solvers = dict(peers(parsed.time_limit, parsed.minimalloc))
    rows = [solve(path, parsed.time_limit, solvers) for path in paths]
    emit(parsed, rows, shown(rows, ["arenite", *solvers]))
    return 0


def instances(folders: Sequence[Path]) -> list[Path]:
    """Return the project's own instances, those beside the checkout and those of folders.

    Raises:
        MissingInputsError: The project's own are missing, or a folder has none.
    """
    found: list[Path] = []
    for folder, source in (
        (INSTANCES, "python bench/placement_instances.py writes them"),
        *((folder, "name a folder with CSV files, id,lower,upper,size") for folder in folders),
    ):
        found += required(sorted(folder.glob("*.csv")), f"no instance in {folder}; {source}")
    return found + sorted((SHARED / "instances").glob("*/*.csv"))


def shown(rows: list[Row], solvers: list[str]) -> Table:
    """Return the rows with two columns for each solver and the seconds summed up."""
    columns = ["instance", "records", "lower bound", "greedy", "proved"]
    footer = ["seconds in all", "", "", "", ""]
    for name in solvers:
        total = sum(row.answers[name].seconds for row in rows if name in row.answers)
        columns += [name, "s"]
        footer += ["", f"{total:.2f}"]
    cells = []
    for row in rows:
        cells.append([
            row.instance,
            f"{row.num_records:,}",
            f"{row.lower_bound:,}",
            f"{row.greedy_by_size / row.lower_bound - 1:+.1%}",
            "yes" if row.proved else "no",
        ])  # fmt: skip
        for name in solvers:
            answer = row.answers.get(name)
            cells[-1].append(distance(answer, row.lower_bound))
            cells[-1].append("" if answer is None else f"{answer.seconds:.2f}")
    return table("Exact placement", columns, cells, footer=footer)


def distance(answer: Answer | None, lower_bound: int) -> str:
    """Return how far a height lies above the bound."""
    if answer is None:
        return ""
    if answer.height is None:
        return "-"
    return "0" if answer.height == lower_bound else f"{answer.height / lower_bound - 1:+.2%}"


def solve(path: Path, time_limit_s: float, solvers: dict[str, Solve]) -> Row:
    """Return the results of all solvers on one instance, ours without the capacity in its name."""
    problem = read_csv(path).with_capacity(None)
    seconds, plan = timed(lambda: run(Optimal(max_nodes=None), problem, deadline(time_limit_s)))
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
    seconds, offsets = timed(lambda: solver(path, problem))
    if offsets is None:
        return Answer(None, round(seconds, 3))
    plan = Plan.of(problem, offsets, "another")
    verify(problem, plan)
    return Answer(plan.height, round(seconds, 3))


def peers(time_limit_s: float, minimalloc: Path | None) -> Iterator[tuple[str, Solve]]:
    """Yield the solvers that are installed."""
    if minimalloc is not None:
        yield (
            "MiniMalloc",
            lambda path, problem: run_minimalloc(minimalloc, path, problem, time_limit_s),
        )
    try:
        from omnimalloc import Allocation, allocate
        from omnimalloc.allocators import SupermallocAllocator
    except ImportError:
        note("omnimalloc is not installed: left out")
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
        note("ortools is not installed: left out")
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
