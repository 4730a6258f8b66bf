"""Models as C source on emulated boards: RAM in all, flash, instructions, beside other runtimes.

    python bench/c_source.py [--json] [--banded] [--optimise=-O2] [--tigris PROGRAM] [MODEL ...]

Each model is exported with `arenite export --to c`, compiled for a Cortex-M4 and a Cortex-M55,
and run in QEMU; those that bands of rows make smaller a second time, in the least arena that
`--budget` reaches (`--banded`: only so). Outputs are compared bit for bit with TensorFlow Lite
Micro's interpreter, or with LiteRT's reference kernels where that refuses the model. RAM is the
arena, with graph inputs and outputs in it, `.data`, `.bss`, and the stack, painted and measured;
flash is instructions, weights and what is taken of the compiler's libraries. TensorFlow Lite
Micro's arena is the smallest in which its 64-bit interpreter works, without its stack, code and
variables. TiGrIS (the package `tigris-ml`) is asked by `--tigris`: the least fast and slow memory
together that its analyser states over a range of budgets; it is not run. TinyEngine is not
measured; `c_onnx.py` measures onnx2c.

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

import numpy as np
from rich.table import Table

from arenite.runtime.targets.tflm import InterpreterError
from arenite.runtime.targets.tflm import measure_arena as measure_tflm
from boards.board import Board, board
from boards.build import BuildError, build
from boards.exported import exported
from boards.reference import Array, joined, litert_outputs, random_inputs, tflm_outputs
from boards.run import BoardError, run
from boards.sections import footprint
from harness import MissingInputsError, bench, emit, note, parser, table
from harness.inputs import TFLITE_MODELS, required, shared_tflite
from harness.tigris import tigris_bytes

MODELS: Final = (
    "vww_96_int8", "kws_ref_model", "pretrainedResnet_quant", "person_detect",
    "mobilenet_v1_0.5_160_quant", "tf2_mobilenet_v2_1.0_224_ptq", "ad_toycar_hybrid",
)  # fmt: skip
BUDGETS: Final = {
    "vww_96_int8": 28_032, "kws_ref_model": 3_888, "pretrainedResnet_quant": 10_304,
    "person_detect": 12_288, "tf2_mobilenet_v2_1.0_224_ptq": 190_624,
}  # fmt: skip
"""The least arenas that bands of rows reach."""
M4, M55 = "mps2-an386", "mps3-an547"
FLOAT_TOLERANCE: Final = 1e-5
"""Sums of floats run in another order, and exponentials of two libraries differ."""
HYBRID_TOLERANCE: Final = 0.02
"""Where weights alone are bytes, LiteRT rounds what they meet to bytes too; ours stays float."""
LARGE: Final = 1 << 20
"""Bytes of a model that is run on one input, not on three: emulation takes its time."""


@dataclass(frozen=True)
class OnBoard:
    """What a board measured.

    Attributes:
        stack: Bytes of stack.
        variables: Bytes of `.data` and `.bss`.
        flash: Bytes of flash.
        text: Bytes of flash that are the model's own instructions.
        instructions: Instructions of an inference.
        distance: Largest difference of an output from the reference, in parts of the largest.
        sound: Whether nothing was touched round the arena, nor at the end of the stack.
    """

    stack: int
    variables: int
    flash: int
    text: int
    instructions: int
    distance: float
    sound: bool


@dataclass(frozen=True)
class Row:
    """One model, in bytes; or why it was not measured.

    Attributes:
        model: Its file name.
        budget: Most bytes of the arena, for which parts run in bands of rows; 0 if it runs whole.
        arena: Bytes of the arena.
        m4: On a Cortex-M4.
        m55: On a Cortex-M55.
        reference: What computed the outputs it is compared with.
        tolerance: The distance from them that is right; 0 unless they are floats.
        tflm: The smallest arena of TensorFlow Lite Micro; 0 where it refuses the model.
        tigris: Fast and slow memory of TiGrIS; 0 where it was not asked, or refuses the model.
        not_measured: Why not; then the rest says nothing.
    """

    model: str
    budget: int = 0
    arena: int = 0
    m4: OnBoard | None = None
    m55: OnBoard | None = None
    reference: str = ""
    tolerance: float = 0
    tflm: int = 0
    tigris: int = 0
    not_measured: str = ""

    @property
    def ram(self) -> int:
        """Arena, variables and stack on the Cortex-M4."""
        return self.arena + (self.m4.variables + self.m4.stack if self.m4 else 0)


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if outputs differ, or RAM in all is above the peer's arena."""
    asked = parser(__doc__, models="those of ../shared/models/tflite")
    asked.add_argument("--optimise", default="-Os", help="compiler option (default: %(default)s)")
    asked.add_argument("--banded", action="store_true", help="only in bands of rows")
    asked.add_argument("--tigris", metavar="PROGRAM", help="the program of TiGrIS")
    options = asked.parse_args(arguments)
    paths = required(options.models or shared_tflite(MODELS), TFLITE_MODELS)
    for name in (M4, M55):
        if missing := board(name).missing():
            raise MissingInputsError(f"no compiler or emulator of {name}: {missing}")
    ways = [
        (path, budget)
        for path in paths
        for budget in (0, BUDGETS.get(path.stem, 0))[options.banded :]
        if budget or not options.banded
    ]
    rows = [
        measured(path, budget, options.optimise, options.tigris)
        for path, budget in dict.fromkeys(ways)
    ]
    emit(options, rows, shown(rows, options.optimise))
    return int(not all(row.not_measured or holds(row) for row in rows))


def holds(row: Row) -> bool:
    """Tell whether outputs are the reference's, in less RAM than the interpreter's arena alone."""
    right = all(
        each is not None and each.sound and each.distance <= row.tolerance
        for each in (row.m4, row.m55)
    )
    return right and (not row.tflm or row.ram < row.tflm)


def measured(path: Path, budget: int, optimise: str, tigris: str | None) -> Row:
    """Return the row of a model, in bands of rows if there is a budget."""
    within = ["--budget", str(budget)] if budget else []
    with tempfile.TemporaryDirectory(prefix="arenite-") as name:
        folder = Path(name)
        source = folder / "c"
        done = subprocess.run(
            [sys.executable, "-m", "arenite", "export", path, "--to", "c", "-o", source, "--json",
             *within],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return Row(path.name, budget, not_measured=done.stderr.strip())
        inputs = random_inputs(path, 1 if path.stat().st_size > LARGE else 3)
        reference, outputs = expected(path, inputs)
        try:
            m4, m55 = (
                on_board(board(each), source, folder / each, inputs, outputs, optimise)
                for each in (M4, M55)
            )
        except (BuildError, BoardError) as error:
            return Row(path.name, budget, not_measured=str(error))
        return Row(
            path.name, budget, json.loads(done.stdout)["arena_bytes"], m4, m55, reference,
            tolerance_of(reference, outputs),
            smallest_tflm(path, len(inputs[0])), tigris_bytes(tigris, path),
        )  # fmt: skip


def expected(path: Path, inputs: Sequence[Sequence[Array]]) -> tuple[str, list[list[Array]]]:
    """Return whose outputs they are, and the outputs."""
    try:
        return "TFLM", tflm_outputs(path, inputs)
    except RuntimeError:
        return "LiteRT", litert_outputs(path, inputs)


def tolerance_of(reference: str, outputs: Sequence[Sequence[Array]]) -> float:
    """Return how far our outputs may be from the reference, in parts of the largest."""
    if all(array.dtype.kind != "f" for array in outputs[0]):
        return 0
    return FLOAT_TOLERANCE if reference == "TFLM" else HYBRID_TOLERANCE


def on_board(
    target: Board, source: Path, folder: Path, inputs: Sequence[Sequence[Array]],
    outputs: Sequence[Sequence[Array]], optimise: str,
) -> OnBoard:  # fmt: skip
    """Return what a board measures.

    Raises:
        BuildError: The compiler or the linker refuses.
        BoardError: The program does not come to its end.
    """
    program = build(target, exported(source, optimised=(optimise,)), folder)
    report, sizes = run(program, joined(inputs)), footprint(program)
    sound = not (report.canaries_harmed or report.stack_overflowed)
    return OnBoard(
        report.stack, sizes.data + sizes.bss, sizes.flash, sizes.text, report.instructions,
        distance(report.outputs, outputs), sound,
    )  # fmt: skip


def distance(found: bytes, outputs: Sequence[Sequence[Array]]) -> float:
    """Return the largest difference of an output, in parts of the largest there is."""
    if found == joined(outputs):
        return 0
    worst, start = 0.0, 0
    for theirs in (array for each in outputs for array in each):
        ours = np.frombuffer(found, theirs.dtype, theirs.size, start).reshape(theirs.shape)
        start += theirs.nbytes
        differences = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        worst = max(worst, float(differences.max() / max(np.abs(theirs).max(), 1e-30)))
    return worst or 1.0


def smallest_tflm(path: Path, num_inputs: int) -> int:
    """Return the smallest arena of the interpreter, 0 if it refuses the model."""
    try:
        return measure_tflm(path, num_inputs, 1).smallest
    except InterpreterError as error:
        note(str(error))
        return 0


def shown(rows: list[Row], optimise: str) -> Table:
    """Return the rows for people."""
    return table(
        f"C source, gcc {optimise}, emulated: bytes, and instructions of an inference",
        ("model", "RAM in all", "arena", "variables", "stack", "flash", "text", "M4", "M55",
         "outputs", "TFLM arena", "TiGrIS"),
        (_cells(row) for row in rows),
    )  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    if row.m4 is None or row.m55 is None:
        note(f"{row.model}: {row.not_measured}")
        return (row.model, "not measured", *[""] * 10)
    worst = max(row.m4.distance, row.m55.distance)
    right = row.m4.sound and row.m55.sound and worst <= row.tolerance
    outputs = f"{row.reference}'s" + (f" to {worst:.0e}" if worst else "")
    return (
        row.model + (", in bands" if row.budget else ""),
        f"{row.ram:,}",
        f"{row.arena:,}",
        f"{row.m4.variables:,}",
        f"{row.m4.stack:,}",
        f"{row.m4.flash:,}",
        f"{row.m4.text:,}",
        f"{row.m4.instructions / 1e6:.1f} M",
        f"{row.m55.instructions / 1e6:.1f} M",
        outputs if right else f"DIFFERENT by {worst:.0e}",
        f"{row.tflm:,} ({row.ram / row.tflm - 1:+.1%})" if row.tflm else "refused",
        f"{row.tigris:,}" if row.tigris else "-",
    )


if __name__ == "__main__":
    sys.exit(main())
