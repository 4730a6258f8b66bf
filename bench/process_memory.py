"""Peak resident memory of a process that loads a model and runs it, runtime by runtime.

    python bench/process_memory.py [--runner FILE] [--rounds N] [--json] [MODEL ...]

`arenite-run` is a C process; the others are Python with numpy and the one runtime. Each is
started afresh every round, on the same random input, with one thread; the figure is the median of
the peaks that the processes report (`VmHWM`). Without arguments the models are MobileNet v2: that
of the zoo with random weights, the same as a QDQ model, and the trained int8 one of
`../shared/models`, where present. `arenite-run` is built into `build/capi` unless it is given.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from harness import Spread, bench, emit, parser, table
from harness.contest import compiled_entry, race
from harness.inputs import required, shared_tflite, zoo_file
from harness.runner import RUNNER, build_runner, run_program
from quantised_networks import quantised_networks

NETWORK = "mobilenet-v2"
TRAINED = "tf2_mobilenet_v2_1.0_224_ptq"
OTHERS = {"onnx": ("onnxruntime",), "tflite": ("litert-xnnpack", "litert")}
NUM_RUNS = 20


@dataclass(frozen=True)
class Row:
    """One model.

    Attributes:
        model: Its name.
        arena: Bytes of our arena.
        peak_rss: Bytes of each process, over the rounds.
    """

    model: str
    arena: int
    peak_rss: dict[str, Spread]


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of ONNX written to a folder."""
    yield zoo_file(NETWORK, folder)
    yield next(quantised_networks(folder, (NETWORK,)))
    yield from shared_tflite((TRAINED,))


def measured_row(model: Path, runner: Path, rounds: int) -> Row:
    """Return what was measured of a model."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        entry = compiled_entry(model, folder)
        files = [folder / f"{number}.raw" for number in range(len(entry.inputs[0]))]
        for file, array in zip(files, entry.inputs[0], strict=True):
            array.tofile(file)
        peaks = {
            RUNNER: Spread.of(
                run_program(runner, entry.program, files, NUM_RUNS).peak_rss_bytes
                for _ in range(rounds)
            )
        }
        for name, raced in race(entry, OTHERS[entry.model_format], rounds, may_drop=True).items():
            peaks[name] = Spread.of(raced.peaks_bytes)
        return Row(model.stem, entry.arena_bytes, peaks)


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people, in MiB."""
    engines = list(dict.fromkeys(engine for row in rows for engine in row.peak_rss))

    def cell(row: Row, engine: str) -> str:
        peak = row.peak_rss.get(engine)
        return "-" if peak is None else f"{peak.median / 2**20:.1f}"

    return table(
        "Peak resident memory, MiB",
        ("model", "arena", *engines),
        (
            (row.model, f"{row.arena / 2**20:.1f}", *(cell(row, engine) for engine in engines))
            for row in rows
        ),
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a Python process had less than `arenite-run`."""
    options = parser(__doc__, models="MobileNet v2, fp32 and int8", rounds=5)
    options.add_argument("--runner", type=Path, help="arenite-run (default: built here)")
    parsed = options.parse_args(arguments)
    named = parsed.models and required(parsed.models, "name ONNX or TFLite files")
    runner = parsed.runner or build_runner()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measured_row(model, runner, parsed.rounds)
            for model in named or default_models(Path(folder))
        ]
    emit(parsed, rows, shown(rows))
    return int(
        any(
            peak.median < row.peak_rss[RUNNER].median
            for row in rows
            for peak in row.peak_rss.values()
        )
    )


if __name__ == "__main__":
    sys.exit(main())
