"""Peak resident memory of a process that loads a model and runs it, runtime by runtime.

    python bench/process_memory.py [--runner FILE] [--rounds N] [--json] [MODEL ...]

`arenite-run` is a C process; the others are Python with numpy and the one runtime. Each is
started afresh every round, on the same random input, with one thread; of the peaks that the
processes say (`VmHWM`) the median counts. Without arguments the models are MobileNet v2: that of
the zoo with random weights, the same as a QDQ model, and the trained int8 one of
`../shared/models`, where present. `arenite-run` is built into `build/capi` unless it is given.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

from arenite.cli.commands.bench.engines import OURS
from arenite.cli.commands.bench.rounds import Contest, EngineError, measure
from arenite.cli.planning.programs import build_program, random_inputs
from arenite.planner.importers import model_format
from quantised_models import quantised_networks
from zoo import NETWORKS

CHECKOUT = Path(__file__).resolve().parents[1]
SHARED = CHECKOUT.parent / "shared" / "models" / "tflite"
NETWORK = "mobilenet-v2"
TRAINED = "tf2_mobilenet_v2_1.0_224_ptq"
RUNNER = "arenite-run"
OTHERS = {"onnx": ("onnxruntime",), "tflite": ("litert-xnnpack", "litert")}
SECONDS = 0.5


@dataclass(frozen=True)
class Row:
    """One model.

    Attributes:
        model: Its name.
        arena: Bytes of our arena.
        peak_rss: Bytes of each process.
    """

    model: str
    arena: int
    peak_rss: dict[str, int]


def build_runner() -> Path:
    """Return `arenite-run`, built and installed under `build`."""
    folder = CHECKOUT / "build" / "capi"
    prefix = folder / "installed"
    commands: tuple[list[str | Path], ...] = (
        ["-S", CHECKOUT / "runtime" / "capi", "-B", folder, f"-DCMAKE_INSTALL_PREFIX={prefix}",
         "-DCMAKE_INSTALL_LIBDIR=lib"],
        ["--build", folder],
        ["--install", folder],
    )  # fmt: skip
    for command in commands:
        subprocess.run(["cmake", *command], check=True, stdout=subprocess.DEVNULL)
    return prefix / "bin" / RUNNER


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of ONNX written to a folder."""
    path = folder / f"{NETWORK}.onnx"
    onnx.save(NETWORKS[NETWORK](), path)
    yield path
    yield next(quantised_networks(folder, (NETWORK,)))
    trained = SHARED / f"{TRAINED}.tflite"
    if trained.is_file():
        yield trained


def measured_row(model: Path, runner: Path, rounds: int) -> Row:
    """Return what was measured of a model."""
    kind = model_format(model)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "model.arena"
        compiled = build_program(model, program, dims={}, shapes={})
        arrays = list(random_inputs(compiled.lowered, 0).values())
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, *arrays)
        files = {OURS: program, **dict.fromkeys(OTHERS[kind], model)}
        contest = Contest(kind, files, inputs, 1, SECONDS, may_drop=True)
        peaks = {RUNNER: runner_peak(runner, program, arrays, rounds)}
        arena = 0
        for each in measure(contest, rounds, lambda _number, _engine: None):
            peaks[each.engine] = int(statistics.median(s.peak_rss_bytes for s in each.samples))
            arena = each.samples[0].arena_bytes or arena if each.engine == OURS else arena
        return Row(model.stem, arena, peaks)


def runner_peak(runner: Path, program: Path, arrays: Sequence[np.ndarray], rounds: int) -> int:
    """Return the median peak of `arenite-run` in bytes."""
    command: list[str | Path] = [runner, program, "--runs", "20"]
    for number, array in enumerate(arrays):
        raw = program.with_name(f"{number}.raw")
        array.tofile(raw)
        command += ["--input", raw]
    peaks = []
    for _ in range(rounds):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"^memory +(\d+) KiB", done.stdout, re.MULTILINE)
        if done.returncode != 0 or found is None:
            raise EngineError(RUNNER, done.stderr.strip())
        peaks.append(int(found[1]) * 1024)
    return int(statistics.median(peaks))


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for people, in MiB."""
    engines = list(dict.fromkeys(engine for row in rows for engine in row.peak_rss))
    found = Table("MiB", "arena", *engines)
    for row in rows:
        cells = [row.arena, *(row.peak_rss.get(engine) for engine in engines)]
        found.add_row(
            row.model, *("-" if cell is None else f"{cell / 2**20:.1f}" for cell in cells)
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a Python process had less than `arenite-run`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--runner", type=Path, help="arenite-run (default: built here)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    runner = options.runner or build_runner()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measured_row(model, runner, options.rounds)
            for model in options.models or default_models(Path(folder))
        ]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        Console(width=140).print(table(rows))
    return int(any(min(row.peak_rss.values()) < row.peak_rss[RUNNER] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
