"""Networks in bands of rows beside themselves whole: predicted and measured latency.

    python bench/banded_latency.py [--rounds N] [--json] [MODEL ...]

The machine's costs are measured first, as `arenite calibrate` does. Each model runs whole, within
a half and a quarter of that arena, and in the least arena that bands reach, on one thread, in
turn; a latency is the median over the rounds of the ratio to the whole program's, so above 1 bands
are slower. Without arguments the models are MobileNet v2 and U-Net of `bench/zoo`, and quantised
TFLite models of `../shared`, where present.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from rich.table import Table

from arenite.pipeline.making.calibration import measured
from arenite.pipeline.making.costs import MachineCosts
from arenite.pipeline.making.fitting import Fitting, least_seconds
from arenite.pipeline.making.programs import random_inputs
from arenite.planner.errors import UnmetBudgetError
from arenite.planner.programs.costs import Budget
from arenite.planner.rewrites.candidate import Candidate
from harness import Spread, bench, emit, interleaved, note, paired_ratios, parser, table
from harness.inputs import each_of, reading_of, shared_tflite, zoo_files
from harness.machine import this_machine

ZOO = ("mobilenet-v2", "unet")
TFLITE = (
    "tf2_mobilenet_v2_1.0_224_ptq", "mobilenet_v1_0.5_160_quant", "vww_96_int8",
    "pretrainedResnet_quant",
)  # fmt: skip
_SHARES = (50, 25)
_ROUND_S = 0.1
"""Seconds that each program runs in a round, at least."""
_SEED = 0


@dataclass(frozen=True)
class Row:
    """One program of a model.

    Attributes:
        model: Its name.
        share: What the arena was to be: whole, a percentage, or the least.
        height: Bytes of the arena.
        of_whole: The same over that of the whole program.
        turns: Steps that run, each band of one counted.
        predicted: Time over the whole program's.
        latency: The same as measured.
        milliseconds: Median of the least of each round.
        same_bits: Whether its outputs are those of the whole program.
    """

    model: str
    share: str
    height: int
    of_whole: float
    turns: int
    predicted: float
    latency: Spread
    milliseconds: float
    same_bits: bool


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    yield from zoo_files(ZOO, folder)
    yield from shared_tflite(TFLITE)


def fits_of(fitting: Fitting) -> dict[str, Candidate]:
    """Return the programs that run, by what their arenas were to be."""
    frontier = fitting.frontier()
    found = {"whole": frontier[0]}
    for share in _SHARES:
        try:
            found[f"{share} %"] = fitting.within(Budget(share, is_percent=True), None)
        except UnmetBudgetError as error:
            note(f"{fitting.lowered.name}: {error}")
    found["least"] = frontier[-1]
    return found


def measured_rows(model: Path, machine: MachineCosts, rounds: int) -> list[Row]:
    """Return what was measured of a model."""
    fitting = Fitting(model, reading_of(model), machine)
    fits = fits_of(fitting)
    arrays = random_inputs(fitting.program, _SEED)
    with ExitStack() as stack:
        sessions = {name: stack.enter_context(fitting.session(fit)) for name, fit in fits.items()}
        made = {name: bits(session.run(arrays)) for name, session in sessions.items()}
        runs = {
            name: partial(least_seconds, session, arrays, _ROUND_S)
            for name, session in sessions.items()
        }
        seconds = interleaved(runs, rounds)
    rows = []
    for name, fit in fits.items():
        row = Row(
            model=model.stem,
            share=name,
            height=fit.height,
            of_whole=fit.height / fits["whole"].height,
            turns=fit.num_turns,
            predicted=1 + fit.slowdown,
            latency=paired_ratios(seconds[name], seconds["whole"]),
            milliseconds=1000 * Spread.of(seconds[name]).median,
            same_bits=made[name] == made["whole"],
        )
        rows.append(row)
        ratio = row.latency.median
        note(f"{row.model}, {name}: {ratio:.2f} measured, {row.predicted:.2f} predicted")
    return rows


def bits(outputs: Mapping[str, NDArray[Any]]) -> dict[str, bytes]:
    """Return the bytes of outputs, by name."""
    return {name: array.tobytes() for name, array in outputs.items()}


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Networks in bands of rows, relative to themselves whole",
        (
            "model", "arena", "bytes", "of whole", "turns", "ms", "latency (range)", "predicted",
            "same bits",
        ),
        (
            (
                row.model,
                row.share,
                f"{row.height:,}",
                f"{100 * row.of_whole:.1f} %",
                f"{row.turns:,}",
                f"{row.milliseconds:.2f}",
                row.latency.text(".2f"),
                f"{row.predicted:.2f}",
                "yes" if row.same_bits else "NO",
            )
            for row in rows
        ),
        num_names=2,
    )  # fmt: skip


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if the outputs of some program are not those of the whole."""
    options = parser(
        __doc__, models="MobileNet v2 and U-Net, and TFLite models of ../shared", rounds=7
    )
    parsed = options.parse_args(arguments)
    machine = MachineCosts(f"costs of {this_machine().processor}, measured", measured())
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for found in each_of(
            parsed.models,
            default_models(Path(folder)),
            lambda model: measured_rows(model, machine, parsed.rounds),
        ):
            rows += found
    emit(parsed, rows, shown(rows))
    return int(not all(row.same_bits for row in rows))


if __name__ == "__main__":
    sys.exit(main())
