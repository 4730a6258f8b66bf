"""How quick the kernels of 3 x 3 convolutions are: the table that they are chosen by.

    python bench/convolution_speeds.py [--rounds N] [--json]

One thread, processor time, kernels in turn, medians. Speeds are thousand millions of the direct
kernel's multiply-adds a second, so that they can be compared; a tile takes fewer. Beside them the
bytes of working memory, and how far results lie apart, relative to the largest.
"""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from arenite.pipeline.making.calibration import convolutions
from arenite.pipeline.targets.compiling import Compiled, rules
from arenite.planner.importers.models import Source
from arenite.planner.rewrites.derivation import derive
from arenite.runtime import Session
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import DIRECT, TILES, all_by
from arenite.strategies import find
from harness import bench, emit, mean_processor_seconds, note, parser, table

CHANNELS = (16, 32, 64, 128, 256, 512)
SIZES = (7, 14, 28, 56, 112, 224)
MOST_BYTES = 16 << 20
"""Of the image: larger ones are not of networks."""
ROUND_S = 0.03


@dataclass(frozen=True)
class Row:
    """One layer.

    Attributes:
        channels: Of image and result.
        size: Their rows and columns.
        speeds: Of the direct kernel, and of tiles of 2 and 4.
        scratch: Bytes of working memory of each.
        differences: From the direct kernel's results, relative to the largest.
    """

    channels: int
    size: int
    speeds: tuple[float, ...]
    scratch: tuple[int, ...]
    differences: tuple[float, ...]


def measured(channels: int, size: int, rounds: int) -> Row:
    """Return what one layer reaches."""
    program = convolutions("float32", (3,), size, channels)
    sessions, scratch = [], []
    for kernel in (DIRECT, *TILES):
        found = derive(all_by(program, kernel), rules())
        (step,) = found.program.steps
        scratch.append(step.operator.scratch(found.program.operands(step)))
        compiled = Compiled(Source("layer", "", found.program, found.problem))
        assembly = compiled.assemble(find("best")(found.problem))
        sessions.append(Session.of_pieces(list(program_pieces(assembly)), "layer"))
    image = np.random.default_rng(0).standard_normal((1, size, size, channels), np.float32)
    results = [next(iter(each.run({"x": image}).values())).copy() for each in sessions]
    rows = [
        [mean_processor_seconds(each.profile, ROUND_S) for each in sessions] for _ in range(rounds)
    ]
    work = size * size * channels * channels * 9
    largest = float(np.abs(results[0]).max())
    return Row(
        channels,
        size,
        tuple(work / statistics.median(times) / 1e9 for times in zip(*rows, strict=True)),
        tuple(scratch),
        tuple(float(np.abs(each - results[0]).max()) / largest for each in results),
    )


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Convolutions of 3 x 3, thousand millions of multiply-adds a second",
        ("channels", "size", "direct", "2 x 2", "4 x 4", "scratch, B", "", "differences", ""),
        (
            (
                str(row.channels), str(row.size), *(f"{each:.1f}" for each in row.speeds),
                *(f"{each:,}" for each in row.scratch[1:]),
                *(f"{each:.1e}" for each in row.differences[1:]),
            )
            for row in rows
        ),
        num_names=0,
    )  # fmt: skip


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if results lie further apart than 2e-5."""
    parsed = parser(__doc__, rounds=9).parse_args(arguments)
    rows = []
    for channels in CHANNELS:
        for size in SIZES:
            if 4 * size * size * channels <= MOST_BYTES:
                rows.append(measured(channels, size, parsed.rounds))
                speeds = ", ".join(f"{each:.1f}" for each in rows[-1].speeds)
                note(f"{channels} channels, {size} x {size}: {speeds}")
    emit(parsed, rows, shown(rows))
    return int(any(max(row.differences) > 2e-5 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
