"""Peak resident memory of a process that loads a model and runs it, runtime by runtime.

    python bench/process_memory.py [--runner FILE] [--rounds N] [--json] [MODEL ...]

`arenite-run` is a C process; the others are Python with numpy and the one runtime. Each is
started afresh every round, on the same random input, with one thread; the figure is the median of
the peaks that the processes report (`VmHWM`). Without arguments the models are MobileNet v2: that
of the zoo with random weights, the same as a QDQ model, and the trained int8 one of
`../shared/models`, where present. Then that of the zoo runs as `arenite fit` builds it, in bands,
and in bands with its weights streamed, each with a limit on the process and with its latency
relative to the whole program's with direct kernels, in pairs. `arenite-run` is built into
`build/capi` unless it is given. Exits with 1 if a Python process had less than `arenite-run`, or a
limit does not hold.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.table import Table

from arenite.pipeline.base.placing import place
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import random_inputs, write_program
from arenite.pipeline.targets.arenite import compiled_for
from arenite.planner.programs.costs import Budget
from arenite.runtime.rewrites import Kernels, Loading, WeightBudget, weight_bytes
from arenite.strategies import find
from harness import Spread, bench, emit, interleaved, paired_ratios, parser, table
from harness.contest import compiled_entry, race
from harness.inputs import required, shared_tflite, zoo_file
from harness.runner import RUNNER, Ran, build_runner, run_program
from quantised_networks import quantised_networks

NETWORK = "mobilenet-v2"
WHOLE = "whole"
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


@dataclass(frozen=True)
class Fitted:
    """A way to build the network of the zoo with `arenite fit`.

    Attributes:
        name: What is traded.
        arena: Bytes that the arena may take.
        weights: What of the weights may be resident; None for all.
        limit: Bytes that the process may take, and the weights where all are resident.
    """

    name: str
    arena: int
    weights: WeightBudget | None
    limit: int


FITTED = (
    Fitted("in bands", 800_000, None, 5_000_000),
    *(
        Fitted(
            f"in bands, weights streamed {loading}", 800_000,
            WeightBudget(2_000_000, loading=loading), 8_000_000,
        )
        for loading in Loading
    ),
)  # fmt: skip


@dataclass(frozen=True)
class FittedRow:
    """One way.

    Attributes:
        name: What is traded.
        arena: Bytes of the arena.
        limit: Bytes that the process may take.
        peak_rss: Bytes of each process, over the rounds.
        latency: Relative to the whole program, in pairs.
    """

    name: str
    arena: int
    limit: int
    peak_rss: Spread
    latency: Spread


def fitted_rows(runner: Path, rounds: int) -> list[FittedRow]:
    """Return what was measured of the network in less memory."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        model = zoo_file(NETWORK, folder)
        raw = folder / "input.raw"
        programs: dict[str, Path] = {}
        arenas: dict[str, int] = {}
        limits: dict[str, int] = {}
        for number, way in enumerate(FITTED):
            fitting = Fitting(model, Reading(weight_budget=way.weights))
            fit = fitting.within(Budget(way.arena), None)
            programs[way.name] = folder / f"{number}.arena"
            fitting.write(programs[way.name], fit)
            arenas[way.name] = fit.height
            stays = weight_bytes(fitting.program) if way.weights is None else 0
            limits[way.name] = way.limit + stays
        whole = compiled_for(Reading(), model, kernels=Kernels.DIRECT)
        programs[WHOLE] = folder / "whole.arena"
        write_program(programs[WHOLE], whole, place(find("best"), whole.source.problem))
        random_inputs(whole.program, 0)[whole.program.inputs[0].name].tofile(raw)

        def ran(name: str) -> Ran:
            return run_program(runner, programs[name], [raw], NUM_RUNS)

        found = interleaved({name: partial(ran, name) for name in programs}, rounds)
        base = [each.median_ms for each in found[WHOLE]]
        return [
            FittedRow(
                way.name,
                arenas[way.name],
                limits[way.name],
                Spread.of(each.peak_rss_bytes for each in found[way.name]),
                paired_ratios([each.median_ms for each in found[way.name]], base),
            )
            for way in FITTED
        ]


def fitted_table(rows: Sequence[FittedRow]) -> Table:
    """Return these rows for people, in MB."""
    return table(
        f"Peak resident memory of {RUNNER}, {NETWORK} fp32, MB (10^6 B)",
        ("built by arenite fit", "arena", "peak", "limit", "latency of the whole"),
        (
            (
                row.name,
                f"{row.arena / 1e6:.2f}",
                f"{row.peak_rss.median / 1e6:.2f}",
                f"{row.limit / 1e6:.2f}",
                row.latency.text(".2f"),
            )
            for row in rows
        ),
    )


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
    """Measure, print, and return 1 if a process had more than it should."""
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
    fitted = [] if named else fitted_rows(runner, parsed.rounds)
    emit(
        parsed,
        {"rows": rows, "fitted": fitted},
        shown(rows),
        *([fitted_table(fitted)] if fitted else []),
    )
    is_more = any(
        peak.median < row.peak_rss[RUNNER].median for row in rows for peak in row.peak_rss.values()
    )
    return int(is_more or any(row.peak_rss.median > row.limit for row in fitted))


if __name__ == "__main__":
    sys.exit(main())
