"""One program for all sizes of a range, beside a program for each size and ONNX Runtime."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from arenite.pipeline.base.ranges import sizes_text
from arenite.pipeline.making.building import Built, build_model
from arenite.pipeline.making.programs import random_array
from arenite.pipeline.targets.compiling import Compiled
from arenite.planner import Plan, Program
from arenite.planner.placement import size_at
from arenite.planner.programs import RowPlaces
from arenite.planner.sizes import at, highest_sizes
from arenite.planner.tensors import ROW_AXIS, TensorKind, row_bytes
from arenite.runtime import Session
from arenite.runtime.rewrites import Kernels
from bench.arm.emulation import here
from bench.harness.allocations import counter
from bench.harness.contest import TABLE, Asked, Row, contest, note, option
from bench.harness.measuring import Spread, interleaved, mean_processor_seconds, paired_ratios
from bench.ranged_models import COMPARED, RangedModel, ranged_models

_RUNS = "Runs at random sizes"
_LATENCIES = "Latency at a size, over that of the program for this size alone"
_INSTRUCTIONS = "Instructions at a size, over those of the program for this size alone"
_ALLOCATIONS = "Allocations at random sizes"
_TOUCHED = "Pages that a size touches"
_PAGE = 4096
_RESIZING_SECONDS = 0.1
_RUNNING_SECONDS = 0.03
_ROUNDING = 1e-3
"""Of the largest element, as an output differs from ONNX Runtime's at most."""


_one_case = option("--case", metavar="TEXT", help="only models whose name contains it")

_CHILD = """
import json, sys
import numpy as np

def resident(key):
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) << 10 for line in stream if line.startswith(key))

engine, path, sizes_path, values = sys.argv[1:5]
with open(sizes_path) as stream:
    given = json.load(stream)
if engine == "arenite":
    from arenite.runtime import Session
else:
    import onnxruntime
before = resident("VmRSS:")
if engine == "arenite":
    session = Session(path)
    run = lambda feeds: session.run(feeds, copy=False)
else:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    fixed = {name: np.array(int(value)) for name, value in json.loads(values).items()}
    run = lambda feeds: session.run(None, feeds | fixed)
random = np.random.default_rng(0)
marks = []
for number, shapes in enumerate(given):
    feeds = {
        name: random.random(shape).astype(dtype) if dtype.startswith("float")
        else random.integers(0, 2, shape).astype(dtype)
        for name, (shape, dtype) in shapes.items()
    }
    run(feeds)
    if number in (len(given) // 4, len(given) - 1):
        marks.append(resident("RssAnon:"))  # without code, which is mapped when it first runs
json.dump({"before": before, "peak": resident("VmHWM:"), "marks": marks}, sys.stdout)
"""

_COUNTED = """
import ctypes, json, sys
import numpy as np
from arenite.runtime import Session
counter = ctypes.CDLL(sys.argv[1])
counter.stop.restype = ctypes.c_long

def counted(run, *given):
    counter.start()
    run(*given)
    return counter.stop()

with open(sys.argv[3]) as stream:
    given = json.load(stream)
session = Session(sys.argv[2])
native, random = session._native, np.random.default_rng(0)
found = {"resizing": 0, "running": 0, "control": counted(bytearray, 1 << 20)}
for sizes in given:
    found["resizing"] += counted(native.resize, sizes)
    found["resizing"] -= counted(native.resize, sizes)  # the call alone, of the same sizes
    for port in session.inputs:
        port.view[...] = random.integers(0, 2, port.shape)
    found["running"] += counted(native.run, 0, native.num_turns)
json.dump(found, sys.stdout)
"""


@contest(
    {
        _RUNS: {
            "model": "", "range": "", "arena, B": "", "fixed at the highest, B": "",
            "sizes compared": "", "equal": "", "as ONNX Runtime": "", "resize, us": ".1f",
            "steps": "", "growth over runs, B": "", "peak, MB": ".2f", "ONNX Runtime, MB": ".2f",
        },
        _ALLOCATIONS: {"model": "", "runs": "", "in resizing": "", "in running": ""},
        _LATENCIES: {"model": "", "sizes": "", "ms": ".3f", "ratio": ".3f"},
    },
    models="networks of the zoo, ../shared",
    rounds=5,
    options=[
        option("--runs", type=int, default=1000, metavar="N", help="runs (default: %(default)s)"),
        option("--equal", type=int, default=12, metavar="N",
               help="sizes at which outputs are compared (default: %(default)s)"),
        _one_case,
    ],
)  # fmt: skip
def varying_sizes(asked: Asked) -> Iterator[Row]:
    """One program for a range of sizes: outputs, bytes and latency.

    Each model is built once for its range, and runs at random sizes in a fresh process, as ONNX
    Runtime does at the same sizes; anonymous memory is compared after a quarter of the runs and
    after all of them. In another process, requests to the heap are counted while a session takes
    these sizes and runs. At some random sizes, the lowest and the highest, outputs must equal
    those of the program that is built for this size alone, bit for bit; both have direct kernels
    then, as Winograd's tiles depend on the room in the arena. They are compared with ONNX
    Runtime's but for rounding, by which two boxes of equal scores may change places. The arena
    must be that of the fixed size at the highest.
    """
    for case in ranged_models(asked.folder, asked.given.case):
        yield from _measured(case, asked)


def _measured(case: RangedModel, asked: Asked) -> Iterator[Row]:
    generator = random.Random(0)
    ranged = asked.folder / "ranged.arena"
    build_model(case.path, case.reading(), kernels=Kernels.DIRECT).write(ranged)
    sizes = [
        *case.sizes_between(),
        *(case.random_sizes(generator) for _ in range(asked.given.equal - COMPARED)),
    ]
    with Session(ranged) as session:
        peer = onnxruntime.InferenceSession(case.path, providers=["CPUExecutionProvider"])
        compared = [_compared(case, session, peer, each, asked) for each in sizes]
        equal, alike = map(sum, zip(*compared, strict=True))
        asked.require(equal == len(sizes), f"{case.name}: outputs equal at all sizes")
        shapes, values = [], []
        for _ in range(asked.given.runs):
            session.resize(case.random_sizes(generator))
            values.append([session.sizes[each.name] for each in session.dimensions])
            shapes.append({p.name: (p.shape, p.dtype.name) for p in session.inputs})
        resize = _resize_seconds(session, sizes)
        steps, arena = len(session.backends()), session.arena_bytes
    listed = asked.folder / "shapes.json"
    listed.write_text(json.dumps(shapes), encoding="utf-8")
    ours, theirs = (
        _in_process(engine, path, listed, case.values)
        for engine, path in (("arenite", ranged), ("onnxruntime", case.path))
    )
    highest = {each.name: each.high for each in case.ranges}
    fixed = build_model(case.path, case.reading(highest), kernels=Kernels.DIRECT).arena_bytes
    asked.require(arena <= fixed, f"{case.name}: no more than the arena of the highest size")
    yield {
        TABLE: _RUNS, "model": case.name, "range": ", ".join(map(str, case.ranges)),
        "arena, B": arena, "fixed at the highest, B": fixed, "sizes compared": len(sizes),
        "equal": equal, "as ONNX Runtime": None if case.has_8_bits else alike,
        "resize, us": resize * 1e6, "steps": steps,
        "growth over runs, B": ours["marks"][1] - ours["marks"][0],
        "peak, MB": (ours["peak"] - ours["before"]) / 1e6,
        "ONNX Runtime, MB": (theirs["peak"] - theirs["before"]) / 1e6,
    }  # fmt: skip
    yield _allocations(case, ranged, values, asked)
    yield from _latencies(case, asked)


def _feeds(session: Session) -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(1)
    return {port.name: random_array(generator, port.dtype, port.shape) for port in session.inputs}


def _compared(
    case: RangedModel,
    session: Session,
    peer: onnxruntime.InferenceSession,
    sizes: dict[str, int],
    asked: Asked,
) -> tuple[bool, bool]:
    """Tell whether outputs are those of the program for these sizes alone, and ONNX Runtime's."""
    fixed = asked.folder / "fixed.arena"
    build_model(case.path, case.reading(sizes), kernels=Kernels.DIRECT).write(fixed)
    session.resize(sizes)
    feeds = _feeds(session)
    found = session.run(feeds)
    with Session(fixed) as alone:
        expected = alone.run(feeds)
    same = {name: _same(found[name], expected[name]) for name in expected}
    for name in (name for name, holds in same.items() if not holds):
        note(f"{case.name}: {name!r} differs at {sizes}")
    theirs, given = {port.name for port in peer.get_inputs()}, feeds | case.fixed
    reference = peer.run([*found], {name: each for name, each in given.items() if name in theirs})
    alike = {
        name: _is_alike(found[name], other) for name, other in zip(found, reference, strict=True)
    }
    for name in (name for name, holds in alike.items() if not holds and not case.has_8_bits):
        note(f"{case.name}: {name!r} is not ONNX Runtime's at {sizes}")
    return all(same.values()), all(alike.values())


def _is_alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Tell whether shapes are equal, and elements but for their rounding."""
    if one.shape != other.shape or not other.size:
        return one.shape == other.shape
    limit = _ROUNDING * float(np.abs(other).max())
    return bool(np.abs(one.astype(np.float64) - other).max() <= limit)


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _resize_seconds(session: Session, sizes: list[dict[str, int]]) -> float:
    """Return the mean time of setting one of these sizes after another."""

    def all_of_them() -> None:
        for each in sizes:
            session.resize(each)

    return mean_processor_seconds(all_of_them, _RESIZING_SECONDS) / len(sizes)


def _in_process(
    engine: str, path: Path, shapes: Path, values: Mapping[str, float]
) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, engine, path, shapes, json.dumps(dict(values))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _allocations(
    case: RangedModel, program: Path, sizes: list[list[int]], asked: Asked
) -> dict[str, Any]:
    """Return how often memory is asked for at these sizes, which the dimensions have in turn."""
    library, listed = counter(asked.folder), asked.folder / "sizes.json"
    listed.write_text(json.dumps(sizes), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _COUNTED, library, program, listed],
        env=os.environ | {"LD_PRELOAD": str(library)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    asked.require(found["control"] > 0, f"{case.name}: allocations are counted")
    asked.require(found["resizing"] + found["running"] == 0, f"{case.name}: no allocations")
    return {
        TABLE: _ALLOCATIONS, "model": case.name, "runs": len(sizes),
        "in resizing": found["resizing"], "in running": found["running"],
    }  # fmt: skip


def _latencies(case: RangedModel, asked: Asked) -> Iterator[Row]:
    """Measure both programs in sessions that each round opens anew.

    Where pages of a session lie changes its latency by some percent for as long as it is open.
    """
    ranged, fixed = asked.folder / "ranged.arena", asked.folder / "fixed.arena"
    build_model(case.path, case.reading()).write(ranged)
    for sizes in case.sizes_between():
        build_model(case.path, case.reading(sizes)).write(fixed)
        times = interleaved(
            {"ours": partial(_latency, ranged, sizes), "alone": partial(_latency, fixed, {})},
            asked.rounds,
        )
        yield {
            TABLE: _LATENCIES, "model": case.name,
            "sizes": sizes_text(sizes),
            "ms": Spread.of(1e3 * each for each in times["ours"]),
            "ratio": paired_ratios(times["ours"], times["alone"]),
        }  # fmt: skip


def _latency(program: Path, sizes: Mapping[str, int]) -> float:
    """Return the seconds of a run at these sizes, but for the first."""
    with Session(program) as session:
        session.resize(sizes)
        feeds = _feeds(session)
        session.run(feeds)
        return mean_processor_seconds(partial(session.run, feeds), _RUNNING_SECONDS)


@contest(
    {_INSTRUCTIONS: {"model": "", "sizes": "", "millions": ".2f", "ratio": ".3f"}},
    models="networks of the zoo, ../shared",
    rounds=None,
    options=[_one_case],
)  # fmt: skip
def counted_sizes(asked: Asked) -> Iterator[Row]:
    """Instructions of a run at a size, by one program for a range and by one for the size.

    On x86-64 with AVX2 under QEMU, with what Python does for a run: the same on every machine,
    whatever else it does.
    """
    ranged, fixed = asked.folder / "ranged.arena", asked.folder / "fixed.arena"
    inputs = asked.folder / "inputs.npz"
    for case in ranged_models(asked.folder, asked.given.case):
        build_model(case.path, case.reading()).write(ranged)
        for sizes in case.sizes_between():
            build_model(case.path, case.reading(sizes)).write(fixed)
            with Session(fixed) as session:
                np.savez(inputs, allow_pickle=False, **_feeds(session))
            ours, alone = (here(each, inputs, 1).per_run for each in (ranged, fixed))
            yield {
                "model": case.name, "sizes": sizes_text(sizes), "millions": ours / 1e6,
                "ratio": ours / alone,
            }  # fmt: skip


@contest(
    {_TOUCHED: {"model": "", "sizes": "", "one plan, B": "", "its own plan, B": ""}},
    models="networks of the zoo, ../shared",
    rounds=None,
)
def touched_pages(asked: Asked) -> Iterator[Row]:
    """What sizes of a range touch of the arena, by the one plan and by plans of their own.

    Pages of 4 KiB that hold no byte of a tensor take no memory of a system that maps pages when
    they are first written.
    """
    for case in ranged_models(asked.folder):
        whole = build_model(case.path, case.reading(), kernels=Kernels.DIRECT)
        for sizes in case.sizes_between():
            single = build_model(case.path, case.reading(sizes), kernels=Kernels.DIRECT)
            yield {
                "model": case.name, "sizes": sizes_text(sizes),
                "one plan, B": _touched(whole, sizes), "its own plan, B": _touched(single, sizes),
            }  # fmt: skip


def _touched(built: Built, sizes: dict[str, int]) -> int:
    """Return the bytes of the pages that hold tensors at some sizes."""
    compiled, plan = _for(built, sizes)
    program = compiled.program
    values = {**highest_sizes(program.dimensions), **sizes}  # of what a run counts: the most
    used = {name for step in program.steps for name in (*step.reads, *step.writes)}
    # Tensors lie inside the storage that they share, and so do most rows.
    places = RowPlaces(program)
    left_out = {name for name in places.pieces if program.root(name)[0] != name} | {
        each.name
        for each in program.tensors.values()
        if each.kind is TensorKind.SCRATCH and each.name not in used
    }
    pages: set[tuple[str, int]] = set()
    for record, offset in zip(compiled.source.problem.records, plan.offsets, strict=True):
        parts = [(0, size_at(record, values))] if not record.tensors else []
        for name in record.tensors:
            if name not in left_out:
                count = _rows_kept(program, places, name, values)
                parts += _parts(program, name, values, count)
        for begin, end in parts:
            if begin < end:
                last = offset + min(end, record.size) - 1
                taken = range((offset + begin) // _PAGE, last // _PAGE + 1)
                pages.update((record.memory, page) for page in taken)
    return len(pages) * _PAGE


def _for(built: Built, sizes: Mapping[str, int]) -> tuple[Compiled, Plan]:
    """Return the program that runs these sizes, and its plan."""
    for part, plan in built.subranges:
        if all(sizes[each.name] <= each.high for each in part.program.dimensions):
            return part, plan
    return built.compiled, built.plan


def _rows_kept(program: Program, places: RowPlaces, name: str, values: Mapping[str, int]) -> int:
    """Return how many rows that keep their first bytes a tensor has, -1 if they do not."""
    if not places.keeps(name):
        return -1
    rows = program.tensors[name].shape[ROW_AXIS]
    if name not in places.pieces:
        return at(rows, values)
    whole, first = places.pieces[name]
    return max(0, min(at(places.shapes[whole][ROW_AXIS], values) - first, int(rows)))


def _parts(
    program: Program, name: str, values: Mapping[str, int], rows: int
) -> Iterator[tuple[int, int]]:
    """Yield the bytes of its storage that a tensor takes at some sizes.

    Args:
        rows: How many lie where they do at the highest sizes; -1 if they lie end to end.
    """
    tensor, begin = program.tensors[name], at(program.root(name)[1], values)
    if rows < 0:
        yield begin, begin + at(tensor.size, values)
    for number in range(rows):
        first = begin + number * int(row_bytes(tensor))
        yield first, first + at(row_bytes(tensor), values)
