"""Our C kernels and those of CMSIS-NN, by instructions on emulated boards.

    python bench/c_kernels.py --cmsis-nn FOLDER [--json] [--optimise=-O2] [MODEL ...]

Each model is exported twice with `arenite export --to c`, the second time with `--kernels
cmsis-nn`, and run in QEMU on a Cortex-M3, for which CMSIS-NN is plain C, on a Cortex-M4 with its
DSP kernels, and on a Cortex-M55 with its vectors. FOLDER has CMSIS-NN's `Include`, and in `lib`
the libraries `cortex-m3.a`, `cortex-m4.a` and `cortex-m55.a`, built by you; `--optimise` is for
our source alone. Outputs of both are compared with TensorFlow Lite Micro's interpreter, bit for
bit. Flash holds what is linked of the library. No board is measured, and no cycle.

Without arguments the models are those of `../shared/models/tflite`, where present.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from boards.board import LARGE_M3, Board, board
from boards.build import build
from boards.exported import exported, with_cmsis_nn
from boards.reference import joined, random_inputs, tflm_outputs
from boards.run import run
from boards.sections import footprint
from harness import MissingInputsError, bench, emit, parser, table
from harness.inputs import TFLITE_MODELS, required, shared_tflite

MODELS: Final = ("vww_96_int8", "kws_ref_model", "pretrainedResnet_quant", "person_detect")
BOARDS: Final = ((LARGE_M3, "none"), (board("mps2-an386"), "dsp"), (board("mps3-an547"), "mve"))
MOST_OF_PLAIN_C: Final = 1.3
"""Instructions of ours on a Cortex-M3, at most, in parts of those of CMSIS-NN's plain C."""


@dataclass(frozen=True)
class Measured:
    """One set of kernels.

    Attributes:
        instructions: Of an inference.
        arena: Bytes of the arena.
        stack: Bytes of stack.
        flash: Bytes of flash.
        is_right: Whether the bits are the interpreter's.
    """

    instructions: int
    arena: int
    stack: int
    flash: int
    is_right: bool


@dataclass(frozen=True)
class Row:
    """One model on one board.

    Attributes:
        model: Its file name.
        processor: Of the board.
        extension: What CMSIS-NN computes with.
        ours: Our kernels.
        theirs: Those of CMSIS-NN.
    """

    model: str
    processor: str
    extension: str
    ours: Measured
    theirs: Measured

    @property
    def ratio(self) -> float:
        """Instructions of ours in parts of theirs."""
        return self.ours.instructions / self.theirs.instructions


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if bits differ, or ours take too many instructions in plain C."""
    asked = parser(__doc__, models="those of ../shared/models/tflite")
    asked.add_argument("--cmsis-nn", type=Path, metavar="FOLDER", help="your CMSIS-NN")
    asked.add_argument("--optimise", default="-Os", help="compiler option (default: %(default)s)")
    options = asked.parse_args(arguments)
    if options.cmsis_nn is None:
        raise MissingInputsError("--cmsis-nn must name a folder with Include and lib")
    for target, _ in BOARDS:
        library = options.cmsis_nn / "lib" / f"{target.processor.lower()}.a"
        if missing := target.missing() or ("" if library.is_file() else f"there is no {library}"):
            raise MissingInputsError(f"{target.name}: {missing}")
    paths = required(options.models or shared_tflite(MODELS), TFLITE_MODELS)
    rows = [
        Row(
            path.name, target.processor, extension,
            measured(path, target, options.optimise),
            measured(path, target, options.optimise, extension, options.cmsis_nn),
        )
        for path in paths
        for target, extension in BOARDS
    ]  # fmt: skip
    emit(options, rows, shown(rows, options.optimise))
    return int(not all(map(holds, rows)))


def holds(row: Row) -> bool:
    """Tell whether both give the interpreter's bits, ours in few enough instructions."""
    is_quick = row.extension != "none" or row.ratio <= MOST_OF_PLAIN_C
    return row.ours.is_right and row.theirs.is_right and is_quick


def measured(
    path: Path, target: Board, optimise: str, extension: str = "", cmsis_nn: Path | None = None
) -> Measured:
    """Return what a board measures of a model, for CMSIS-NN if a folder of it is named."""
    kernels = ["--kernels", "cmsis-nn", "--extension", extension] if cmsis_nn else []
    inputs = random_inputs(path, 1)
    with tempfile.TemporaryDirectory(prefix="arenite-") as name:
        folder = Path(name)
        done = subprocess.run(
            [sys.executable, "-m", "arenite", "export", path, "--to", "c", "-o", folder / "c",
             "--json", *kernels],
            capture_output=True, check=True,
        )  # fmt: skip
        subject = exported(folder / "c", optimised=(optimise,))
        if cmsis_nn:
            subject = with_cmsis_nn(subject, target, cmsis_nn)
        program = build(target, subject, folder / "board")
        report, sizes = run(program, joined(inputs)), footprint(program)
        return Measured(
            report.instructions, json.loads(done.stdout)["arena_bytes"], report.stack, sizes.flash,
            report.outputs == joined(tflm_outputs(path, inputs)),
        )  # fmt: skip


def shown(rows: list[Row], optimise: str) -> Table:
    """Return the rows for people."""
    return table(
        f"instructions of an inference, ours compiled with gcc {optimise}; bytes",
        ("model", "processor", "ours", "CMSIS-NN", "ours in parts of it", "arena", "stack",
         "flash", "bits"),
        (_cells(row) for row in rows),
    )  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    ours, theirs = row.ours, row.theirs
    return (
        row.model,
        f"{row.processor}, {row.extension}",
        f"{ours.instructions / 1e6:.1f} M",
        f"{theirs.instructions / 1e6:.1f} M",
        f"{row.ratio:.2f}",
        *(
            f"{one:,} | {other:,}"
            for one, other in (
                (ours.arena, theirs.arena), (ours.stack, theirs.stack), (ours.flash, theirs.flash),
            )
        ),
        "TFLM's" if ours.is_right and theirs.is_right else "DIFFERENT",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
