"""Placement: the exact solver, the paper's tables, and seconds by the number of records."""

import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

from arenite.planner.errors import AreniteError
from arenite.planner.importers import read
from arenite.planner.importers.csv import read_csv
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import Boundary
from arenite.planner.rewrites.activations import fuse_activations
from arenite.planner.tensors import Tensor
from arenite.planner.units import align_up
from arenite.strategies import STRATEGIES, deadline, find
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from bench.harness.contest import TABLE, Asked, Row, chosen, contest, note, option, required
from bench.harness.inputs import SHARED, dims_of, light_networks, zoo_file
from bench.harness.measuring import Spread, in_fresh_process, interleaved, peak_rss_bytes, timed
from bench.placement_instances import INSTANCES
from bench.zoo import NETWORKS

Solve: TypeAlias = Callable[[Path, Problem], tuple[int, ...] | None]
"""From a file and its problem to offsets, None when there is no answer."""
MOST_RECORDS_OF_PEERS = 2_000  # beyond, they only use up their time
_EXACT = {
    "instance": "", "records": "", "bound": "", "greedy by size": "+.1%", "optimal": "",
    "proved": "", "s": ".2f", "MiniMalloc": "", "MiniMalloc, s": ".2f", "omnimalloc": "",
    "omnimalloc, s": ".2f", "CP-SAT": "", "CP-SAT, s": ".2f",
}  # fmt: skip


@contest(
    {"Hard placement instances": _EXACT},
    options=[
        option("folders", type=Path, nargs="*", help="folders of further instances as CSV"),
        option("--time-limit", type=float, default=10.0, help="seconds per instance"),
        option("--minimalloc", type=Path, help="MiniMalloc's program"),
    ],
)
def exact_placement(asked: Asked) -> Iterator[Row]:
    """Run the exact solver on hard placement instances, beside installed peers.

    Instances are those of `assets/instances`, of `../shared/instances` where present, and of the
    folders. MiniMalloc is asked for the capacity in the file name or for the lower bound;
    omnimalloc and CP-SAT take part where installed. Seconds are wall time, one run each; heights
    are distances to the lower bound, a dash where a solver has no answer.
    """
    limit: float = asked.given.time_limit
    solvers = dict(peers(limit, asked.given.minimalloc))
    for path in instances(asked.given.folders):
        problem = read_csv(path).with_capacity(None)
        bound = problem.lower_bound
        seconds, plan = timed(partial(run, Optimal(max_nodes=None), problem, deadline(limit)))
        verify(problem, plan)
        row: Row = {
            "instance": f"{path.parent.name}/{path.stem}", "records": len(problem.records),
            "bound": bound, "greedy by size": GreedyBySize()(problem).height / bound - 1,
            "optimal": _distance(plan.height, bound), "proved": "yes" if plan.optimal else "no",
            "s": seconds,
        }  # fmt: skip
        for name, solver in (
            solvers.items() if len(problem.records) <= MOST_RECORDS_OF_PEERS else ()
        ):
            row[f"{name}, s"], offsets = timed(partial(solver, path, problem))
            height = None
            if offsets is not None:
                found = Plan.of(problem, offsets, "another")
                verify(problem, found)
                height = found.height
            row[name] = _distance(height, bound)
        yield row


def instances(folders: Sequence[Path]) -> list[Path]:
    """Return the project's own instances, those beside the checkout and those of folders.

    Raises:
        MissingInputsError: The project's own are missing, or a folder has none.
    """
    found: list[Path] = []
    for folder, source in (
        (INSTANCES, "python -m bench.placement_instances writes them"),
        *((folder, "name a folder with CSV files, id,lower,upper,size") for folder in folders),
    ):
        found += required(sorted(folder.glob("*.csv")), f"no instance in {folder}; {source}")
    return found + sorted((SHARED / "instances").glob("*/*.csv"))


def _distance(height: int | None, bound: int) -> str:
    if height is None:
        return "-"
    return "0" if height == bound else f"{height / bound - 1:+.2%}"


def peers(time_limit_s: float, minimalloc: Path | None) -> Iterator[tuple[str, Solve]]:
    """Yield the installed solvers."""
    if minimalloc is not None:
        yield "MiniMalloc", partial(_minimalloc, minimalloc, time_limit_s)
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


def _minimalloc(
    program: Path, time_limit_s: float, path: Path, problem: Problem
) -> tuple[int, ...] | None:
    """Return MiniMalloc's offsets; it answers within its capacity or not at all."""
    capacity = read_csv(path).capacity or problem.lower_bound
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "offsets.csv"
        done = subprocess.run(
            [program, f"--capacity={capacity}", f"--input={path}", f"--output={output}",
             f"--timeout={time_limit_s}s"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not output.exists():
            return None
        header, *lines = output.read_text().split()
        column = header.split(",").index("offset")
        offsets = {line.split(",")[0]: int(line.split(",")[column]) for line in lines}
    return tuple(offsets[record.name] for record in problem.records)


@contest({
    "Exact placement of networks, bytes": {
        "model": "", "records": "", "lower bound": "", "greedy": "+.1%", "height": "",
        "proved": "", "s": ".3f",
    },
})  # fmt: skip
def exact_models(asked: Asked) -> Iterator[Row]:
    """Prove the optimal placement of every network in under a second.

    The networks inside the `onnx` package, those of the zoo and of `../shared`, each in its given
    order, nothing aliased, offsets aligned to 16 B. Seconds are those of the search, one run each.
    """

    def problems() -> Iterator[tuple[str, Problem]]:
        models = SHARED / "models"
        shared = (*sorted(models.glob("*/*.onnx")), *sorted(models.glob("*/*.tflite")))
        for path in (*light_networks(), *shared):
            try:
                yield path.name, read(path, dims=dims_of(path)).problem
            except AreniteError as error:
                note(f"{path.name}: left out: {error}")
        for name in NETWORKS:
            yield f"zoo/{name}", read(zoo_file(name, asked.folder)).problem

    for name, problem in problems():
        seconds, plan = timed(partial(Optimal(), problem))
        verify(problem, plan)
        asked.require(plan.optimal and seconds < 1, f"{name}: proved in less than a second")
        yield {
            "model": name, "records": len(problem.records), "lower bound": problem.lower_bound,
            "greedy": GreedyBySize()(problem).height / problem.lower_bound - 1,
            "height": plan.height, "proved": plan.optimal, "s": seconds,
        }  # fmt: skip


OBJECTS = {
    "objects-by-size": "greedy by size",
    "objects-by-size-improved": "greedy by size, improved",
    "objects-by-breadth": "greedy by breadth",
    "objects-in-order": "greedy in order (Lee 2019)",
    "objects-min-cost-flow": "min-cost flow (Lee 2019)",
}
"""Rows of table 1: strategies for shared objects."""
OFFSETS = {
    "greedy-by-size": "greedy by size",
    "greedy-by-breadth": "greedy by breadth",
    "objects-in-order": "greedy in order (Lee 2019)",
    "strip-packing": "strip packing (Sekiyama 2018)",
}
"""Rows of table 2: strategies for offsets."""
PAPER: Mapping[str, Mapping[str, float]] = {
    "mobilenet-v1": {"naive": 19.248, "offsets-bound": 4.594},
    "mobilenet-v2": {"naive": 26.313, "offsets-bound": 5.742, "objects-bound": 6.604},
    "deeplab-v3": {"naive": 48.642, "offsets-bound": 4.320},
    "inception-v3": {"naive": 54.010, "offsets-bound": 7.914},
    "posenet": {"naive": 27.556, "offsets-bound": 6.271},
    "blazeface": {"naive": 2.698, "offsets-bound": 0.492},
}
"""MiB, the cells we know of; from memory, so open the paper before quoting one."""
_CELLS = {"": "", **dict.fromkeys(PAPER, "")}


@contest(
    {"Table 1: shared objects, MiB": _CELLS, "Table 2: offsets, MiB": _CELLS},
    options=[
        option("networks", nargs="*", metavar="NETWORK", help=", ".join(PAPER)),
        option("--channels-in-fours", action="store_true",
               help="round the channels of feature maps up to four, as GPU textures hold them"),
    ],
)  # fmt: skip
def paper_tables(asked: Asked) -> Iterator[Row]:
    """Both tables of Pisarchyk and Lee 2020 (arXiv 2001.03288), for the networks of the zoo.

    Graph inputs and outputs are left out, activations are fused into the operators before them,
    and nothing is aligned, as in the paper. Every plan is verified. A cell that begins with `=` is
    the paper's; in brackets stands the paper's figure, where ours differs.
    """
    networks = chosen(asked.given.networks, PAPER, "network")
    in_fours = asked.given.channels_in_fours
    found = {name: footprint(name, channels_in_fours=in_fours) for name in networks}
    for title, strategies, bound in (
        ("Table 1: shared objects, MiB", OBJECTS, "objects-bound"),
        ("Table 2: offsets, MiB", OFFSETS, "offsets-bound"),
    ):
        for cell, label in {**strategies, bound: "lower bound", "naive": "naive"}.items():
            row: Row = {TABLE: title, "": label}
            row.update({name: paper_cell(name, cell, its[cell]) for name, its in found.items()})
            yield row


def footprint(network: str, *, channels_in_fours: bool = False) -> dict[str, int]:
    """Return the bytes of a network by each strategy, with its bounds and records."""
    with tempfile.TemporaryDirectory() as folder:
        program = fuse_activations(read_onnx(zoo_file(network, Path(folder))))
    if channels_in_fours:
        program = _in_fours(program)
    problem = liveness(program, boundary=Boundary.EXCLUDE, alignment=1)
    cells = {
        "records": len(problem.records), "naive": problem.naive,
        "offsets-bound": problem.lower_bound,
    }  # fmt: skip
    for name in OBJECTS | OFFSETS:
        plan = run(find(name), problem)
        verify(problem, plan)
        cells[name] = plan.height
        if plan.objects is not None:
            cells["objects-bound"] = plan.objects.lower_bound
    return cells


def paper_cell(network: str, row: str, size: int) -> str:
    """Return a cell in MiB, beside the paper's figure where it is known."""
    ours, paper = f"{size / 2**20:.3f}", PAPER[network].get(row)
    if paper is None:
        return ours
    return f"= {ours}" if ours == f"{paper:.3f}" else f"({paper:.3f}) {ours}"


def _in_fours(program: Program) -> Program:
    def rounded(tensor: Tensor) -> Tensor:
        if len(tensor.shape) != 4:
            return tensor
        batch, channels, height, width = tensor.shape
        return replace(tensor, shape=(batch, align_up(channels, 4), height, width))

    return replace(program, tensors={name: rounded(t) for name, t in program.tensors.items()})


def random_problem(count: int) -> Problem:
    """Return records that live for 1 to 40 steps, the same for the same count.

    There are as many steps as records; sizes are up to 1 MiB, the alignment is 16.
    """
    generator = random.Random(count)
    records = []
    for index in range(count):
        start = generator.randrange(count)
        end = start + generator.randrange(1, 41)
        records.append(UsageRecord(f"t{index}", generator.randrange(1, 1 << 20), start, end, 16))
    return Problem(tuple(sorted(records, key=lambda record: record.start)))


DENSENET = "light_densenet121"
_STAGES = {"stage": "", "records": "", "s": ".3f"}


@contest(
    {"DenseNet-121, about 1,700 nodes, from file to plan": _STAGES,
     "Random problems, lifetimes of 1 to 40 steps": _STAGES},
    rounds=5,
    options=[option("--records", type=int, nargs="+", default=[1_000, 10_000])],
)  # fmt: skip
def planning_time(asked: Asked) -> Iterator[Row]:
    """Seconds of planning: DenseNet-121 from file to plan, and quick strategies by records."""
    paths = [path for path in light_networks() if path.stem == DENSENET]
    (path,) = required(paths, f"{DENSENET}.onnx is not in the installed package onnx")
    problem = read(path).problem
    plan = find("best")(problem)
    yield from _times(
        "DenseNet-121, about 1,700 nodes, from file to plan", problem, asked.rounds,
        {"import": partial(read, path), "plan (best)": partial(find("best"), problem),
         "verify": partial(verify, problem, plan)},
    )  # fmt: skip
    for count in asked.given.records:
        problem = random_problem(count)
        quick = {each.name: partial(each, problem) for each in STRATEGIES if each.quick}
        title = "Random problems, lifetimes of 1 to 40 steps"
        yield from _times(title, problem, asked.rounds, quick)


def _times(
    title: str, problem: Problem, rounds: int, works: Mapping[str, Callable[[], object]]
) -> Iterator[Row]:
    found = interleaved({name: partial(timed, work) for name, work in works.items()}, rounds)
    for name, times in found.items():
        seconds = Spread.of(each for each, _ in times)
        yield {TABLE: title, "stage": name, "records": len(problem.records), "s": seconds}


_ALONE = "(the problem alone)"
_AT_SCALE = (
    "greedy-by-size", "greedy-by-breadth", "greedy-by-area", "greedy-by-lifetime", "tflm",
    "xla-best-fit",
)  # fmt: skip


@contest(
    {"Seconds and peak memory by number of records": {
        "strategy": "", "records": "", "s": ".2f", "us per record": ".1f",
        "peak RSS, MiB": ",.0f", "gap": ".2%",
    }},
    options=[
        option("--records", type=int, nargs="+", default=[10_000, 100_000, 1_000_000]),
        option("--strategy", nargs="+", default=_AT_SCALE),
    ],
)  # fmt: skip
def scale(asked: Asked) -> Iterator[Row]:
    """Seconds and peak memory of the quick strategies by the number of records.

    Each strategy runs in a fresh process; its peak includes Python and the problem, which the row
    of the problem alone shows. Seconds are one run each.
    """
    for count, name in product(asked.given.records, (_ALONE, *asked.given.strategy)):
        yield in_fresh_process(at_scale, name, count)


def at_scale(name: str, count: int) -> Row:
    """Return seconds and memory of a strategy; its plan is verified afterwards."""
    problem = random_problem(count)
    row: Row = {"strategy": name, "records": count}
    if name == _ALONE:
        return {**row, "s": 0.0, "peak RSS, MiB": peak_rss_bytes() / 2**20}
    seconds, plan = timed(partial(find(name), problem))
    peak = peak_rss_bytes()
    verify(problem, plan)
    return {
        **row, "s": seconds, "us per record": 1e6 * seconds / count, "peak RSS, MiB": peak / 2**20,
        "gap": plan.gap,
    }  # fmt: skip
