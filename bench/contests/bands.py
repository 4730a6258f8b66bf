"""Programs in bands of rows: bytes, and latency of networks and of blocks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.pipeline.making.calibration import measured
from arenite.pipeline.making.costs import DESKTOP, FLOAT, MachineCosts
from arenite.pipeline.making.fitting import Fitting, least_seconds
from arenite.pipeline.making.programs import random_inputs
from arenite.pipeline.making.trading import one_lane
from arenite.pipeline.targets.compiling import Compiled, lower_model, rules, runs_by_rows
from arenite.planner.errors import UnmetBudgetError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.planner.programs.costs import Budget
from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import Boundary
from arenite.planner.rewrites.candidate import Candidate
from arenite.planner.rewrites.derivation import Derivation, derive
from arenite.planner.tensors import TensorKind
from arenite.runtime import Session
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import Kernels, num_by_tile
from arenite.strategies import StripsSearch, find
from arenite.strategies.bands.expand import BandedRegion, expand
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.bands.strips import unfold
from bench.harness.contest import (
    TABLE,
    Asked,
    MissingInputsError,
    Row,
    chosen,
    contest,
    note,
    option,
)
from bench.harness.engines import tigris_bytes
from bench.harness.inputs import reading_of, shared_onnx, shared_tflite, zoo_files
from bench.harness.measuring import (
    Spread,
    interleaved,
    mean_processor_seconds,
    paired_ratios,
    this_machine,
    timed,
)
from bench.zoo.builder import NetworkBuilder

ZOO = (
    "mobilenet-v2-0.35-144", "mobilenet-v1-0.25-96", "mobilenet-v1", "mobilenet-v2", "unet",
    "resnet50", "densenet121", "inception-v3",
)  # fmt: skip
TFLITE = (
    "tf2_mobilenet_v2_1.0_224_ptq", "mobilenet_v1_0.5_160_quant", "person_detect", "vww_96_int8",
    "pretrainedResnet_quant", "kws_ref_model", "deeplabv3_mnv2_dm05_pascal_quant",
)  # fmt: skip
VELA: Mapping[str, int] = {
    "tf2_mobilenet_v2_1.0_224_ptq": 361_984, "mobilenet_v1_0.5_160_quant": 156_160,
    "person_detect": 30_720, "vww_96_int8": 49_152, "pretrainedResnet_quant": 35_840,
    "kws_ref_model": 15_974,
}  # fmt: skip
"""Arena in bytes of Arm's ethos-u-vela 5.2 with `--optimise Size`, for its NPU."""
MSF_CNN: Mapping[str, str] = {
    "mobilenet-v2-0.35-144": "21,288 at 1.30, 15,340 at 1.38, 7,887 at 1.68"
}
"""Bytes at times the multiply-adds, of Huang and Baccelli 2025: a chain of 8-bit layers, graph
input and output left to the caller. Our network is made from its name."""
ASSUMED = MachineCosts("costs of a core of a desktop, assumed", {FLOAT: DESKTOP})
"""The same programs on every machine."""
_ARENAS = "Arenas in bands of rows, in bytes"
_OTHERS = "Graph input and output left to the caller, and others, in bytes"


@contest(
    {
        _ARENAS: {
            "model": "", "whole": "", "least": "", "of whole": ".1%", "bound": "", "steps": "",
            "turns": "", "in strips": "", "multiply-adds": ".3f", "turns in strips": "",
            "search, s": ".1f",
        },
        _OTHERS: {
            "model": "", "caller's": "", "caller's, in strips": "", "multiply-adds": ".3f",
            "msf-CNN": "", "all inside": "", "Vela 5.2, NPU": "", "TiGrIS": "",
        },
    },
    models="the zoo, and models of ../shared",
    options=[option("--tigris", metavar="PROGRAM", help="the program of TiGrIS")],
)  # fmt: skip
def bands(asked: Asked) -> Iterator[Row]:
    """Arenas of networks whole, in bands of rows, and with strips of columns that run again.

    *Least* needs no further multiplication; strips may need a tenth more. Graph input and output,
    alignment and scratch of kernels are counted; every plan is verified. The second table leaves
    graph input and output to the caller, as msf-CNN does. Vela's figures are of its NPU.
    `--tigris` asks TiGrIS (the package `tigris-ml`) for the least fast and slow memory that its
    analyser states. MCUNetV2 as published has 172 kB for MobileNet v2.
    """

    def found() -> Iterator[Path]:
        yield from zoo_files(ZOO, asked.folder)
        yield from shared_tflite(TFLITE)
        yield from shared_onnx()

    for rows in asked.each(found(), partial(_arenas, tigris=asked.given.tigris)):
        yield from rows


def _arenas(model: Path, tigris: str | None = None) -> list[Row]:
    fitting = Fitting(model, reading_of(model), ASSUMED)
    seconds, fits = timed(fitting.frontier)
    whole, strips = fits[0], fits[-1]
    least = [fit for fit in fits if fit.multiply_adds_ratio == 1][-1]
    callers, callers_in_strips, ratio = _least_of_callers(fitting)
    note(f"{model.stem}: {whole.height:,} -> {least.height:,} -> {strips.height:,} B")
    return [
        {
            TABLE: _ARENAS, "model": model.stem, "whole": whole.height, "least": least.height,
            "of whole": least.height / whole.height if whole.height else None,
            "bound": least.plan.lower_bound, "steps": len(fitting.program.steps),
            "turns": least.num_turns, "in strips": strips.height,
            "multiply-adds": strips.multiply_adds_ratio, "turns in strips": strips.num_turns,
            "search, s": seconds,
        },
        {
            TABLE: _OTHERS, "model": model.stem, "caller's": callers.height,
            "caller's, in strips": callers_in_strips.height, "multiply-adds": ratio,
            "msf-CNN": MSF_CNN.get(model.stem), "all inside": strips.height,
            "Vela 5.2, NPU": VELA.get(model.stem), "TiGrIS": tigris_bytes(tigris, model) or None,
        },
    ]  # fmt: skip


def _least_of_callers(fitting: Fitting) -> tuple[Candidate, Candidate, float]:
    """Return the least where the caller holds input and output: without and with strips.

    The last is the multiply-adds of the second over those of the whole program.
    """
    program = fitting.program
    ways = StripsSearch(
        program, replace(rules(), boundary=Boundary.EXCLUDE), one_lane(DESKTOP), _placed,
        is_allowed=partial(runs_by_rows, program),
    )  # fmt: skip
    found = list(ways.frontier())
    work = ways.whole.multiply_adds
    plain = [banded for banded in found if banded.multiply_adds == work]
    return plain[-1], found[-1], found[-1].multiply_adds / work if work else 1.0


def _placed(problem: Problem) -> Plan:
    plan = run(find("best"), problem)
    verify(problem, plan)
    return plan


_SHARES = (50, 25)
_NETWORK_S, _BLOCK_S = 0.1, 0.03
"""Seconds that each program runs in a round, at least."""


@contest(
    {
        "Networks in bands of rows, relative to themselves whole": {
            "model": "", "arena": "", "bytes": "", "of whole": ".1%", "turns": "", "ms": ".2f",
            "latency": ".2f", "predicted": ".2f", "same bits": "",
        },
    },
    models="MobileNet v2 and U-Net, and TFLite models of ../shared", rounds=7,
)  # fmt: skip
def banded_latency(asked: Asked) -> Iterator[Row]:
    """Latency of networks in bands of rows beside themselves whole, predicted and measured.

    The machine's costs are measured first, as `arenite calibrate` does. Each model runs whole, in
    a half and a quarter of that arena, and in the least arena, on one thread, in turn; above 1
    bands are slower.
    """
    machine = MachineCosts(f"costs of {this_machine().processor}, measured", measured())

    def found() -> Iterator[Path]:
        yield from zoo_files(("mobilenet-v2", "unet"), asked.folder)
        yield from shared_tflite((*TFLITE[:2], "vww_96_int8", "pretrainedResnet_quant"))

    for rows in asked.each(found(), lambda model: _network(model, machine, asked)):
        yield from rows


def _network(model: Path, machine: MachineCosts, asked: Asked) -> list[Row]:
    fitting = Fitting(model, reading_of(model), machine)
    frontier = fitting.frontier()
    fits = {"whole": frontier[0]}
    for share in _SHARES:
        try:
            fits[f"{share} %"] = fitting.within(Budget(share, is_percent=True), None)
        except UnmetBudgetError as error:
            note(f"{model.stem}: {error}")
    fits["least"] = frontier[-1]
    arrays = random_inputs(fitting.program, 0)
    with ExitStack() as stack:
        sessions = {name: stack.enter_context(fitting.session(fit)) for name, fit in fits.items()}
        made = {
            name: {key: array.tobytes() for key, array in session.run(arrays).items()}
            for name, session in sessions.items()
        }
        runs = {
            name: partial(least_seconds, session, arrays, _NETWORK_S)
            for name, session in sessions.items()
        }
        seconds = interleaved(runs, asked.rounds)
    return [
        {
            "model": model.stem, "arena": name, "bytes": fit.height,
            "of whole": fit.height / frontier[0].height, "turns": fit.num_turns,
            "ms": 1000 * Spread.of(seconds[name]).median,
            "latency": paired_ratios(seconds[name], seconds["whole"]),
            "predicted": 1 + fit.slowdown,
            "same bits": asked.require(made[name] == made["whole"], f"{name}: the same bits"),
        }
        for name, fit in fits.items()
    ]  # fmt: skip


Build = Callable[[NetworkBuilder], str]


def inverted(size: int, inputs: int, inner: int, outputs: int, stride: int = 1) -> Build:
    """Return an inverted residual of MobileNet v2."""

    def build(net: NetworkBuilder) -> str:
        x = y = net.input("image", 1, inputs, size, size)
        if inner != inputs:
            y = net.conv(y, inner, activation="relu6")
        y = net.depthwise(y, stride, activation="relu6")
        y = net.conv(y, outputs)
        return net.add(x, y) if stride == 1 and inputs == outputs else y

    return build


def bottleneck(size: int, channels: int) -> Build:
    """Return a bottleneck of ResNet-50."""

    def build(net: NetworkBuilder) -> str:
        x = net.input("image", 1, 4 * channels, size, size)
        y = net.conv(x, channels, activation="relu")
        y = net.conv(y, channels, 3, activation="relu")
        return net.add(x, net.conv(y, 4 * channels), activation="relu")

    return build


def level(size: int, inputs: int, channels: int) -> Build:
    """Return the two convolutions of a level of a U-Net."""

    def build(net: NetworkBuilder) -> str:
        x = net.conv(net.input("image", 1, inputs, size, size), channels, 3, activation="relu")
        return net.conv(x, channels, 3, activation="relu")

    return build


BLOCKS: Mapping[str, Build] = {
    "mobilenet-112-32-32-16": inverted(112, 32, 32, 16),
    "mobilenet-112-16-96-24-stride-2": inverted(112, 16, 96, 24, 2),
    "mobilenet-56-24-144-24": inverted(56, 24, 144, 24),
    "mobilenet-28-32-192-32": inverted(28, 32, 192, 32),
    "mobilenet-14-96-576-96": inverted(14, 96, 576, 96),
    "mobilenet-7-160-960-160": inverted(7, 160, 960, 160),
    "resnet-56-256-64-256": bottleneck(56, 64),
    "resnet-28-512-128-512": bottleneck(28, 128),
    "resnet-14-1024-256-1024": bottleneck(14, 256),
    "resnet-7-2048-512-2048": bottleneck(7, 512),
    "unet-128-32-64-64": level(128, 32, 64),
}
WHOLE, TILES = "whole", "whole, by tiles"


@contest(
    {
        "Blocks in bands of rows, relative to the direct kernels whole": {
            "block": "", "rows": "", "arena, B": "", "between, B": "", "turns": "", "ms": ".3f",
            "latency": ".2f", "same bits": "",
        },
    },
    rounds=9,
    options=[option("blocks", nargs="*", metavar="BLOCK", help=", ".join(BLOCKS))],
)  # fmt: skip
def banded_blocks(asked: Asked) -> Iterator[Row]:
    """Blocks of MobileNet v2, ResNet-50 and a U-Net whole and in bands of 1, 2, 4 and 8 rows.

    Each block is a program of its own with random weights; all its steps run in bands. One thread,
    processor time, the ways of one block in turn. Bytes are exact: those of the whole arena, and
    of the tensors between image and result, scratch included.
    """
    for name in chosen(asked.given.blocks, BLOCKS, "block"):
        yield from block_rows(name, BLOCKS[name], asked, _BLOCK_S)


@dataclass(frozen=True, slots=True)
class Way:
    """A program with its plan, ready to run."""

    compiled: Compiled
    pieces: Sequence[bytes | memoryview]
    height: int
    between: int


def block_rows(name: str, build: Build, asked: Asked, round_s: float) -> Iterator[Row]:
    """Yield the measurements of a block."""
    net = NetworkBuilder(name)
    net.output(build(net), "result")
    model = asked.folder / f"{name}.onnx"
    onnx.save(net.build(), model)
    ways = _ways(model)
    image = np.random.default_rng(0).standard_normal(net.shapes["image"], np.float32)
    with ExitStack() as stack:
        sessions = {
            way: stack.enter_context(Session.of_pieces(each.pieces, name))
            for way, each in ways.items()
        }
        results = {way: each.run({"image": image})["result"] for way, each in sessions.items()}
        runs = {
            way: partial(mean_processor_seconds, partial(_run, each, image), round_s)
            for way, each in sessions.items()
        }
        seconds = interleaved(runs, asked.rounds)
    for way, each in ways.items():
        is_same = results[way].tobytes() == results[WHOLE].tobytes()
        asked.require(is_same or way == TILES, f"{name}, {way}: the same bits")
        yield {
            "block": name, "rows": way, "arena, B": each.height, "between, B": each.between,
            "turns": len(each.compiled.program.steps),
            "ms": 1000 * Spread.of(seconds[way]).median,
            "latency": paired_ratios(seconds[way], seconds[WHOLE]), "same bits": is_same,
        }  # fmt: skip


def _ways(model: Path) -> dict[str, Way]:
    lowered = lower_model(model)
    whole = derive(lowered.program, rules())
    ways = {WHOLE: _way(lowered.compiled, whole, Kernels.DIRECT)}
    tiled = _way(lowered.compiled, whole, Kernels.FASTEST)
    if num_by_tile(tiled.compiled.program):
        ways[TILES] = tiled
    for rows in (1, 2, 4, 8):
        found = _in_bands(lowered.program, rows)
        ways[str(rows)] = _way(lowered.compiled, found, Kernels.DIRECT)
    return ways


def _in_bands(program: Program, rows: int) -> Derivation:
    regions = Regions(program, DESKTOP, partial(runs_by_rows, program))
    steps = [each for each in regions.steps if each is not None]
    if len(steps) < len(program.steps):
        raise MissingInputsError(f"{program.name}: a step does not run by rows")
    region = Region(0, len(steps), rows, rows)
    banded = BandedRegion(0, tuple(steps), regions.turns(region), regions.surroundings(region))
    return derive(unfold(expand(program, [banded])), replace(rules(), outlines=True))


def _way(lowered: Callable[[Derivation], Compiled], found: Derivation, kernels: Kernels) -> Way:
    compiled = replace(lowered(found), kernels=kernels)
    compiled, plan = compiled.tiled(find("best")(compiled.source.problem))
    problem = compiled.source.problem
    verify(problem, plan)
    ends = {
        name
        for name, tensor in compiled.program.tensors.items()
        if tensor.kind in (TensorKind.INPUT, TensorKind.OUTPUT)
    }
    between = tuple(each for each in problem.records if not ends & set(each.tensors))
    return Way(
        compiled, list(program_pieces(compiled.assemble(plan))), plan.height,
        replace(problem, records=between).lower_bound,
    )  # fmt: skip


def _run(session: Session, image: NDArray[Any]) -> None:
    (port,) = session.inputs
    port.view[...] = image  # the run before may have overwritten it
    session.invoke()
