"""Blocks of networks whole and in bands of 1, 2, 4 and 8 rows: time and bytes.

    python bench/banded_blocks.py [--rounds N] [--json] [BLOCK ...]

Blocks of MobileNet v2 and ResNet-50, and a level of a U-Net, each a program of its own with random
weights. All its steps run in bands; by tiles, after Winograd, where convolutions can, the block
runs whole. One thread, processor time, the ways of one block in turn; a latency is the median over
the rounds of the ratio to the direct kernels whole. Bytes are exact: those of the whole arena, and
of what lies between image and result, working memory included. `banded_latency.py` is about whole
networks, and what a budget makes of them.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from rich.table import Table

from arenite.pipeline.making.costs import DESKTOP
from arenite.pipeline.targets.compiling import Compiled, lower_model, rules, runs_by_rows
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import Program
from arenite.planner.rewrites.derivation import Derivation, derive
from arenite.planner.tensors import TensorKind
from arenite.runtime import Session
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import Kernels, num_by_tile
from arenite.strategies import find
from arenite.strategies.bands.expand import BandedRegion, expand
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.bands.strips import unfold
from harness import (
    MissingInputsError,
    Spread,
    bench,
    chosen,
    emit,
    interleaved,
    mean_processor_seconds,
    note,
    paired_ratios,
    parser,
    table,
)
from zoo.builder import NetworkBuilder

ROWS = (1, 2, 4, 8)
WHOLE, TILES = "whole", "whole, by tiles"
_ROUND_S = 0.03

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
        x = net.input("image", 1, inputs, size, size)
        return net.conv(
            net.conv(x, channels, 3, activation="relu"), channels, 3, activation="relu"
        )

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


@dataclass(frozen=True)
class Row:
    """One way to run a block.

    Attributes:
        block: Its name.
        way: Rows of a band, or whole.
        height: Bytes of the arena.
        between: Of it, the most that is neither image nor result.
        turns: Steps that run, each band of one counted.
        latency: Ratio to the direct kernels whole.
        milliseconds: Median.
        same_bits: Whether the result is that of the direct kernels whole.
    """

    block: str
    way: str
    height: int
    between: int
    turns: int
    latency: Spread
    milliseconds: float
    same_bits: bool


@dataclass(frozen=True)
class Way:
    """A program with its plan, ready to run."""

    compiled: Compiled
    pieces: Sequence[bytes | memoryview]
    height: int
    between: int


def in_bands(program: Program, rows: int) -> Derivation:
    """Return a program, all of whose steps run in bands of so many rows."""
    regions = Regions(program, DESKTOP, partial(runs_by_rows, program))
    steps = [each for each in regions.steps if each is not None]
    if len(steps) < len(program.steps):
        raise MissingInputsError(f"{program.name}: a step does not run by rows")
    region = Region(0, len(steps), rows, rows)
    banded = BandedRegion(0, tuple(steps), regions.turns(region), regions.surroundings(region))
    return derive(unfold(expand(program, [banded])), replace(rules(), outlines=True))


def way_of(lowered: Callable[[Derivation], Compiled], found: Derivation, kernels: Kernels) -> Way:
    """Return a program as it runs, planned."""
    compiled = replace(lowered(found), kernels=kernels)
    compiled, plan = compiled.tiled(find("best")(compiled.source.problem))
    problem = compiled.source.problem
    verify(problem, plan)
    ends = {
        name
        for name, tensor in compiled.program.tensors.items()
        if tensor.kind in (TensorKind.INPUT, TensorKind.OUTPUT)
    }
    between = [each for each in problem.records if not ends & set(each.tensors)]
    return Way(
        compiled,
        list(program_pieces(compiled.assemble(plan))),
        plan.height,
        replace(problem, records=tuple(between)).lower_bound,
    )


def ways_of(model: Path) -> dict[str, Way]:
    """Return the ways to run a block, by their names."""
    lowered = lower_model(model)
    whole = derive(lowered.program, rules())
    ways = {WHOLE: way_of(lowered.compiled, whole, Kernels.DIRECT)}
    tiled = way_of(lowered.compiled, whole, Kernels.FASTEST)
    if num_by_tile(tiled.compiled.program):
        ways[TILES] = tiled
    for rows in ROWS:
        found = in_bands(lowered.program, rows)
        ways[str(rows)] = way_of(lowered.compiled, found, Kernels.DIRECT)
    return ways


def measured_rows(name: str, folder: Path, rounds: int) -> list[Row]:
    """Return what was measured of a block."""
    net = NetworkBuilder(name)
    net.output(BLOCKS[name](net), "result")
    model = folder / f"{name}.onnx"
    onnx.save(net.build(), model)
    ways = ways_of(model)
    image = np.random.default_rng(0).standard_normal(net.shapes["image"], np.float32)
    with ExitStack() as stack:
        sessions = {
            way: stack.enter_context(Session.of_pieces(each.pieces, name))
            for way, each in ways.items()
        }
        results = {way: each.run({"image": image})["result"] for way, each in sessions.items()}
        runs = {
            way: partial(mean_processor_seconds, partial(_run, each, image), _ROUND_S)
            for way, each in sessions.items()
        }
        seconds = interleaved(runs, rounds)
    rows = [
        Row(
            name, way, each.height, each.between, len(each.compiled.program.steps),
            paired_ratios(seconds[way], seconds[WHOLE]),
            1000 * Spread.of(seconds[way]).median,
            results[way].tobytes() == results[WHOLE].tobytes(),
        )
        for way, each in ways.items()
    ]  # fmt: skip
    note(f"{name}: " + ", ".join(f"{row.way} {row.latency.median:.2f}" for row in rows))
    return rows


def _run(session: Session, image: NDArray[Any]) -> None:
    (port,) = session.inputs
    port.view[...] = image  # the run before may have overwritten it
    session.invoke()


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Blocks in bands of rows, relative to the direct kernels whole",
        ("block", "rows", "arena, B", "between, B", "turns", "ms", "latency (range)", "same bits"),
        (
            (
                row.block,
                row.way,
                f"{row.height:,}",
                f"{row.between:,}",
                str(row.turns),
                f"{row.milliseconds:.3f}",
                row.latency.text(".2f"),
                "yes" if row.same_bits else "no",
            )
            for row in rows
        ),
        num_names=2,
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if bands make other bits than the direct kernels whole."""
    options = parser(__doc__, rounds=9)
    options.add_argument("blocks", nargs="*", metavar="BLOCK", help=", ".join(BLOCKS))
    parsed = options.parse_args(arguments)
    blocks = chosen(parsed.blocks, BLOCKS, "block")
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for name in blocks for row in measured_rows(name, Path(folder), parsed.rounds)]
    emit(parsed, rows, shown(rows))
    return int(not all(row.same_bits or row.way == TILES for row in rows))


if __name__ == "__main__":
    sys.exit(main())
