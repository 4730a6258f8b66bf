"""Our runtime beside ONNX Runtime and LiteRT: outputs, latency, memory.

    python bench/native_runtime.py [--threads 1,2] [--peers] [--rounds N] [--json] [MODEL ...]

Every engine runs in fresh processes, in turn; a latency is the median over the rounds of the ratio
of ours to the other's, so below 1 ours is faster. Without arguments the models are the nine
networks of the `onnx` package, those of `bench/zoo`, and the floating-point models in
`../shared/models`, where present. The weights of the `onnx` package's networks are constants.
`--peers` runs ONNX models in ncnn and MNN too, where these are installed and take the model.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from harness import Spread, bench, emit, note, parser, table
from harness.contest import OURS, compiled_entry, race
from harness.inputs import each_of, light_networks, shared_onnx, shared_tflite, zoo_file
from harness.peers import PEERS, converted_peers
from zoo import NETWORKS

FLOAT_TFLITE = ("hello_world_float", "pretrainedResnet", "ultraface_rfb320", "vww_96_float")
MOST_DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Row:
    """One model on some threads.

    Attributes:
        model: Its name.
        opponent: The engine beside ours.
        threads: Of both.
        steps: How many each backend of ours runs.
        difference: Largest difference of an output, relative to the largest number in it.
        latency: Ratio of ours to the opponent's.
        memory: Our median peak resident memory to the opponent's.
        peak_rss: Ours, in bytes.
        arena: Bytes of our arena.
    """

    model: str
    opponent: str
    threads: int
    steps: dict[str, int]
    difference: float
    latency: Spread
    memory: float
    peak_rss: int
    arena: int


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    yield from light_networks()
    for name in NETWORKS:
        yield zoo_file(name, folder)
    yield from shared_onnx()
    yield from shared_tflite(FLOAT_TFLITE)


def measured_rows(
    model: Path, threads: Sequence[int], rounds: int, *, with_peers: bool = False
) -> list[Row]:
    """Return what was measured of a model, for each number of threads and each engine."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        entry = compiled_entry(model, Path(folder))
        wanted = with_peers and entry.model_format == "onnx"
        peers = dict(converted_peers(model, Path(folder))) if wanted else {}
        for count in threads:
            raced = race(
                entry, [entry.opponent], rounds, threads=count, peers=peers, may_drop=bool(peers)
            )
            own = raced.pop(OURS)
            for opponent, other in raced.items():
                row = Row(
                    model=model.stem.removeprefix("light_"),
                    opponent=opponent,
                    threads=count,
                    steps=entry.backends,
                    difference=difference(own.outputs, other.outputs),
                    latency=own.latency_to(other),
                    memory=own.peak_rss / other.peak_rss,
                    peak_rss=own.peak_rss,
                    arena=entry.arena_bytes,
                )
                rows.append(row)
                note(f"{row.model}, threads {count}: {row.latency.median:.2f} of {row.opponent}")
    return rows


def difference(ours: Sequence[NDArray[Any]], theirs: Sequence[NDArray[Any]]) -> float:
    """Return the largest difference of two sets of outputs, each relative to its largest."""
    pairs = [
        (own.astype(np.float64), other.astype(np.float64))
        for own, other in zip(ours, theirs, strict=True)
    ]
    return max(
        float(np.max(np.abs(a - b), initial=0.0) / max(np.max(np.abs(b), initial=0.0), 1e-12))
        for a, b in pairs
    )


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Our runtime, relative to another's",
        (
            "model", "beside", "steps", "threads", "difference", "latency (range)", "memory",
            "arena, B",
        ),
        (
            (
                row.model,
                row.opponent,
                ", ".join(f"{count} {backend}" for backend, count in row.steps.items()),
                str(row.threads),
                f"{row.difference:.0e}",
                row.latency.text(".2f"),
                f"{row.memory:.2f}",
                f"{row.arena:,}",
            )
            for row in rows
        ),
        num_names=3,
    )  # fmt: skip


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if an output is further off than 1e-4; peers may be."""
    options = parser(__doc__, models="every network of the onnx package and the zoo", rounds=5)
    options.add_argument("--threads", default="1,2", help="numbers of threads (default: 1,2)")
    options.add_argument("--peers", action="store_true", help="beside ncnn and MNN too")
    parsed = options.parse_args(arguments)
    threads = [int(count) for count in parsed.threads.split(",")]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for found in each_of(
            parsed.models,
            default_models(Path(folder)),
            lambda model: measured_rows(model, threads, parsed.rounds, with_peers=parsed.peers),
        ):
            rows += found
    emit(parsed, rows, shown(rows))
    return int(any(row.difference > MOST_DIFFERENCE for row in rows if row.opponent not in PEERS))


if __name__ == "__main__":
    sys.exit(main())
