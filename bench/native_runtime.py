"""Our runtime beside ONNX Runtime and LiteRT: outputs, latency, memory.

    python bench/native_runtime.py [--table[=NAME,...]] [--threads 1,2] [--peers] [--vectors avx2]
                                   [--seconds S] [--rounds N] [--json] [MODEL ...]

Every engine runs in fresh processes, in turn; a latency is the median over the rounds of the ratio
of ours to the other's, so below 1 ours is faster. Without arguments the models are the nine
networks of the `onnx` package, those of `bench/zoo`, and the floating-point models in
`../shared/models`, where present. The weights of the `onnx` package's networks are constants.
`--table` takes the ten networks of floats that engines are usually compared by instead, or some
by their names.
`--peers` runs ONNX models in ncnn and MNN too, where these are installed and take the model.
`--vectors avx2` runs every engine without AVX-512, as `harness/vectors.py` says. On the first
model it shows whether each then leaves the registers of AVX-512 alone, and how much slower it is.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from harness import Spread, bench, emit, note, parser, table
from harness.contest import OURS, Entry, compiled_entry, race
from harness.inputs import each_of, light_networks, shared_onnx, shared_tflite, zoo_file, zoo_files
from harness.peers import PEERS, converted_peers
from harness.vectors import AVX2, limited
from harness.wide_registers import uses_wide_registers
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
    milliseconds: float
    their_milliseconds: float


@dataclass(frozen=True)
class Slowed:
    """What it means to an engine that it may not use the widest vectors.

    Attributes:
        engine: Its name.
        model: What it ran.
        used: Whether it uses registers that AVX-512 alone has, where it may.
        uses: Whether it still does.
        latency: Ratio to that with all vectors.
    """

    engine: str
    model: str
    used: bool
    uses: bool
    latency: Spread


@dataclass(frozen=True)
class Wanted:
    """What is measured of each model.

    Attributes:
        threads: Of all engines.
        rounds: Of fresh processes.
        seconds: That each of these measures.
        peers: Whether ncnn and MNN take part.
        vectors: The widest that engines may use; None for all.
    """

    threads: Sequence[int]
    rounds: int
    seconds: float
    peers: bool
    vectors: str | None


TABLE = (
    "resnet50", "inception-v3", "vgg16", "unet", "densenet121", "light_squeezenet",
    "mobilenet-v1", "mobilenet-v2", "light_shufflenet", "ultraface_rfb320",
)  # fmt: skip


def table_models(names: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield the networks of these names that are there, written to a folder while needed."""
    stored = {path.stem: path for path in (*light_networks(), *shared_onnx())}
    for name in names:
        if name in stored:
            yield stored[name]
        elif name in (*NETWORKS, "vgg16"):
            path = zoo_file(name, folder)
            yield path
            path.unlink()
        else:
            note(f"{name}: left out: it is not in the zoo, nor in ../shared")


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    yield from light_networks()
    yield from zoo_files(NETWORKS, folder)
    yield from shared_onnx()
    yield from shared_tflite(FLOAT_TFLITE)


def measured_rows(model: Path, wanted: Wanted, slowed: list[Slowed]) -> list[Row]:
    """Return what was measured of a model, for each number of threads and each engine.

    Args:
        model: An ONNX or TFLite file.
        wanted: What is measured.
        slowed: Takes what fewer vectors mean on the first model.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        entry = compiled_entry(model, Path(folder))
        has_peers = wanted.peers and entry.model_format == "onnx"
        peers = dict(converted_peers(model, Path(folder))) if has_peers else {}
        files = {OURS: entry.program, entry.opponent: model, **peers}
        run = partial(
            race, entry, [entry.opponent], wanted.rounds, peers=peers, may_drop=bool(peers),
            seconds=wanted.seconds,
        )  # fmt: skip
        for count in wanted.threads:
            with limited(files) if wanted.vectors else nullcontext():
                raced = run(threads=count)
                uses = wide(entry, files, raced) if wanted.vectors and not slowed else {}
            if uses:
                used, free = wide(entry, files, raced), run(threads=count)
                slowed += [
                    Slowed(each, model.stem, used[each], uses[each], found.latency_to(free[each]))
                    for each, found in raced.items()
                ]
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
                    milliseconds=statistics.median(own.latencies_ms),
                    their_milliseconds=statistics.median(other.latencies_ms),
                )
                rows.append(row)
                note(f"{row.model}, threads {count}: {row.latency.median:.2f} of {row.opponent}")
    return rows


def wide(entry: Entry, files: Mapping[str, Path], engines: Iterable[str]) -> dict[str, bool]:
    """Return which engines use registers that AVX-512 alone has, on the inputs they ran with."""
    inputs = entry.program.with_name("inputs.npz")
    return {
        engine: uses_wide_registers(entry.model_format, engine, files[engine], inputs)
        for engine in engines
    }


def difference(ours: Sequence[NDArray[Any]], theirs: Sequence[NDArray[Any]]) -> float:
    """Return the largest difference of two sets of outputs, each relative to its largest.

    An engine that converts models may have outputs of several shapes in another order.
    """
    left = list(theirs)
    pairs = []
    for own in ours:
        fitting = (number for number, other in enumerate(left) if other.shape == own.shape)
        other = left.pop(next(fitting, 0))
        pairs.append((own.astype(np.float64), other.astype(np.float64)))
    return max(
        float(np.max(np.abs(a - b), initial=0.0) / max(np.max(np.abs(b), initial=0.0), 1e-12))
        for a, b in pairs
    )


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Our runtime, relative to another's",
        (
            "model", "beside", "steps", "threads", "difference", "latency (range)", "ms",
            "theirs", "memory", "arena, B",
        ),
        (
            (
                row.model,
                row.opponent,
                ", ".join(f"{count} {backend}" for backend, count in row.steps.items()),
                str(row.threads),
                f"{row.difference:.0e}",
                row.latency.text(".2f"),
                f"{row.milliseconds:.2f}",
                f"{row.their_milliseconds:.2f}",
                f"{row.memory:.2f}",
                f"{row.arena:,}",
            )
            for row in rows
        ),
        num_names=3,
    )  # fmt: skip


def shown_slowed(rows: Sequence[Slowed]) -> Table:
    """Return what fewer vectors mean, for people."""
    return table(
        "Without AVX-512, relative to the same engine with it",
        ("engine", "model", "its registers with it", "without", "latency (range)"),
        (
            (
                row.engine,
                row.model,
                "used" if row.used else "not used",
                "USED" if row.uses else "not used",
                row.latency.text(".2f"),
            )
            for row in rows
        ),
        num_names=4,
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if an output is further off than 1e-4; peers may be.

    The same if an engine uses vectors that it may not.
    """
    options = parser(__doc__, models="every network of the onnx package and the zoo", rounds=5)
    options.add_argument("--threads", default="1,2", help="numbers of threads (default: 1,2)")
    options.add_argument(
        "--table", nargs="?", const=",".join(TABLE), metavar="NAME,...",
        help="ten usual networks of floats, or those of these names",
    )  # fmt: skip
    options.add_argument("--peers", action="store_true", help="beside ncnn and MNN too")
    options.add_argument("--vectors", choices=[AVX2], help="the widest that engines may use")
    options.add_argument(
        "--seconds", type=float, default=0.5, help="that each process measures (default: 0.5)"
    )
    parsed = options.parse_args(arguments)
    threads = [int(count) for count in parsed.threads.split(",")]
    wanted = Wanted(threads, parsed.rounds, parsed.seconds, parsed.peers, parsed.vectors)
    find = partial(table_models, parsed.table.split(",")) if parsed.table else default_models
    rows: list[Row] = []
    slowed: list[Slowed] = []
    with tempfile.TemporaryDirectory() as folder:
        for found in each_of(
            parsed.models,
            find(Path(folder)),
            lambda model: measured_rows(model, wanted, slowed),
        ):
            rows += found
    tables = [shown(rows), *([shown_slowed(slowed)] if slowed else [])]
    emit(parsed, {"rows": rows, "slowed": slowed} if slowed else rows, *tables)
    are_off = any(row.difference > MOST_DIFFERENCE for row in rows if row.opponent not in PEERS)
    return int(are_off or any(row.uses for row in slowed))


if __name__ == "__main__":
    sys.exit(main())
