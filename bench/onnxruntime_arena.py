"""ONNX Runtime's default arena beside ours, on the same models, outputs compared bit for bit.

    python bench/onnxruntime_arena.py [--json] [MODEL.onnx ...]

Everything runs on one thread. Resident memory is the peak of a fresh process that loads the
model and runs it; latencies are ratios of paired runs, the two sessions taking turns. Without
arguments the models are the nine networks of the `onnx` package, MobileNet v2 from `bench/zoo`,
and those in `../shared/models/onnx`, where present.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from arenite.runtime.targets.onnxruntime import (
    PlannedSession,
    stock_memory,
    stock_options,
    stock_session,
)
from arenite.strategies import find
from harness import (
    Spread,
    bench,
    emit,
    in_fresh_process,
    interleaved,
    paired_ratios,
    parser,
    peak_rss_bytes,
    table,
    timed,
)
from harness.inputs import SHAPES, each_of, light_networks, shared_onnx, zoo_file

VALUES = {"sr": 16_000}
"""Inputs that cannot be random: the sample rate of silero."""

NUM_RUNS = 4
MIN_PAIRS, SECONDS = 7, 4.0
SEED = 0


@dataclass(frozen=True)
class Row:
    """One model; sizes in bytes, weights left out but for `rss`.

    Attributes:
        model: Its file name.
        stock_in_use: Most that its arena has in use, rounding and kernel scratch included.
        stock_held: What its arena has taken from the system.
        outputs: Bytes of the outputs; in the stock arena, and with us the caller's.
        arena: Ours.
        inside: Ours if the outputs lie in it too, until the next run.
        lower_bound: Of ours.
        served: Allocations of a steady run that our arena served.
        outside: Those that it did not.
        identical: Outputs on random inputs, bit for bit.
        stock_rss: Peak resident memory of a fresh process with the stock session.
        rss: The same with ours.
        latency: Ratio of ours to stock, over pairs of runs.
    """

    model: str
    stock_in_use: int
    stock_held: int
    outputs: int
    arena: int
    inside: int
    lower_bound: int
    served: int
    outside: int
    identical: bool
    stock_rss: int
    rss: int
    latency: Spread


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a claim fails."""
    options = parser(__doc__, models="networks of the onnx package, MobileNet v2, and others")
    parsed = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(
            each_of(
                parsed.models,
                default_models(Path(folder)),
                lambda path: in_fresh_process(compare, path),
            )
        )
    emit(parsed, rows, shown(rows))
    return int(
        not all(
            row.identical and not row.outside and row.inside <= row.stock_in_use for row in rows
        )
    )


def default_models(folder: Path) -> list[Path]:
    """Return the models to compare on, MobileNet v2 written to the folder."""
    return [*light_networks(), zoo_file("mobilenet-v2", folder), *shared_onnx()]


def compare(path: Path) -> Row:
    """Return the row of a model."""
    planned, stock = open_session(path, True), open_session(path, False)
    inside = PlannedSession(path, strategy=find("best"), outputs_in_arena=True)
    random = np.random.default_rng(SEED)
    identical = True
    for _ in range(NUM_RUNS):
        feeds = drawn(path, stock, random)
        ours, theirs = planned.run(None, feeds), stock.run(None, feeds)
        expected = [each.tobytes() for each in theirs]
        for found in (ours, inside.run(None, feeds)):
            identical = identical and [each.tobytes() for each in found] == expected
    inside_bytes = inside.arena_bytes or 0
    del inside
    latency = latency_ratios(planned, stock, drawn(path, stock, random))
    arena = stock_memory(path, stock_options(), drawn(path, stock, random), num_runs=NUM_RUNS)
    return Row(
        path.name,
        arena.in_use,
        arena.held,
        sum(each.nbytes for each in ours),
        planned.plan.height,
        inside_bytes,
        planned.plan.lower_bound,
        planned.last_run.inside,
        planned.num_outside,
        identical,
        in_fresh_process(peak_resident, path, False),
        in_fresh_process(peak_resident, path, True),
        latency,
    )


def open_session(path: Path, planned: bool) -> Any:
    """Return our session or the stock one."""
    if planned:
        return PlannedSession(path, strategy=find("best"))
    return stock_session(path, stock_options())


def peak_resident(path: Path, planned: bool) -> int:
    """Return the peak resident memory of this process after some runs."""
    session = open_session(path, planned)
    feeds = drawn(path, session, np.random.default_rng(SEED))
    for _ in range(NUM_RUNS):
        session.run(None, feeds)
    return peak_rss_bytes()


def latency_ratios(planned: Any, stock: Any, feeds: dict[str, Any]) -> Spread:
    """Return latencies of ours to stock's, run in turns, each first every other time."""
    found = interleaved(
        {
            "stock": lambda: timed(lambda: stock.run(None, feeds))[0],
            "planned": lambda: timed(lambda: planned.run(None, feeds))[0],
        },
        MIN_PAIRS,
        at_least_s=SECONDS,
    )
    return paired_ratios(found["planned"], found["stock"])


def drawn(path: Path, session: Any, random: np.random.Generator) -> dict[str, Any]:
    """Return random inputs for a model."""
    feeds = {}
    for value in session.get_inputs():
        shape = SHAPES.get(path.stem, {}).get(value.name, value.shape)
        feeds[value.name] = (
            np.array(VALUES[value.name], np.int64)
            if value.name in VALUES
            else random.standard_normal(shape, np.float32)
        )
    return feeds


def shown(rows: list[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "ONNX Runtime, one thread; bytes, weights left out but for RSS",
        (
            "model", "stock in use", "stock holds", "arena", "outputs", "against in use",
            "with outputs", "bound", "served", "outside", "same", "stock RSS", "RSS", "latency",
        ),
        (
            (
                row.model,
                *(f"{each:,}" for each in (row.stock_in_use, row.stock_held)),
                f"{row.arena:,}",
                f"{row.outputs:,}",
                f"{(row.arena + row.outputs) / row.stock_in_use - 1:+.1%}",
                f"{row.inside:,}",
                "reached" if row.arena == row.lower_bound else f"{row.lower_bound:,}",
                str(row.served),
                str(row.outside),
                "yes" if row.identical else "NO",
                f"{row.stock_rss / 2**20:.1f} MiB",
                f"{row.rss / 2**20:.1f} MiB",
                f"{row.latency.median:.3f}",
            )
            for row in rows
        ),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
