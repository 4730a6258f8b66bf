"""Estimated cycles of models as C source on Cortex-M processors, beside what ST publishes."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bench.boards.board import board
from bench.boards.cycles import executed
from bench.boards.program import BuildError, build, exported
from bench.boards.run import BoardError, joined, random_inputs
from bench.contests.c_code import MODELS, export_c
from bench.harness.contest import Asked, MissingInputsError, Row, contest, note, option, required
from bench.harness.inputs import TFLITE_MODELS, shared_tflite

BOARDS: Final = ("mps2-an386", "mps2-an500", "mps3-an547")
PUBLISHED: Final[Mapping[str, str]] = {
    "vww_96_int8": "10.7 M", "kws_ref_model": "5.2 M", "pretrainedResnet_quant": "19.9 M",
}  # fmt: skip
"""Cycles of X-CUBE-AI 10.2, from its results of MLPerf Tiny v1.3."""


@contest(
    {"C source: estimated cycles of an inference": {
        "model": "", "processor": "", "instructions": "", "taken branches": "", "cycles": "",
        "an instruction": ".2f", "X-CUBE-AI": "",
    }},
    models="those of ../shared/models/tflite",
    options=[
        option("--optimise", default="-O2", help="compiler option (default: %(default)s)"),
        option("--functions", action="store_true", help="also tell where most cycles go"),
    ],
)  # fmt: skip
def c_cycles(asked: Asked) -> Iterator[Row]:
    """Models as C source on a Cortex-M4, M7 and M55: cycles, estimated from what QEMU ran.

    QEMU counts how often each block of instructions ran, and its taken branches. Of a Cortex-M4
    the cycles of every instruction are those of Arm's manual, a taken branch 2 more; of a
    Cortex-M7 and M55 `llvm-mca` estimates each block by its model of the processor. Memory has no
    wait states. No board was measured. X-CUBE-AI's cycles are measured ones of MLPerf Tiny v1.3.
    """
    for name in BOARDS:
        if missing := board(name).missing():
            raise MissingInputsError(f"no compiler or emulator of {name}: {missing}")
    for path in required(asked.models or shared_tflite(MODELS[:4]), TFLITE_MODELS):
        inputs = joined(random_inputs(path, 1))
        with tempfile.TemporaryDirectory(prefix="arenite-") as text:
            folder = Path(text)
            try:
                export_c(path, folder / "c")
                for name in BOARDS:
                    yield _row(path, name, folder, inputs, asked)
            except (BuildError, BoardError) as error:
                note(f"{path.stem}: {error}")
                yield {"model": path.stem, "cycles": "not estimated"}


def _row(path: Path, name: str, folder: Path, inputs: bytes, asked: Asked) -> Row:
    subject = exported(folder / "c", optimised=(asked.given.optimise,))
    found = executed(build(board(name), subject, folder / name), inputs)
    by_function = found.cycles()
    cycles = by_function.total()
    if asked.given.functions:
        for function, spent in by_function.most_common(8):
            note(f"{path.stem}, {found.processor}: {spent / cycles:.1%} {function}")
    return {
        "model": path.stem, "processor": found.processor,
        "instructions": f"{found.instructions / 1e6:,.1f} M",
        "taken branches": f"{found.jumps / 1e6:,.2f} M", "cycles": f"{cycles / 1e6:,.1f} M",
        "an instruction": cycles / found.instructions, "X-CUBE-AI": PUBLISHED.get(path.stem, ""),
    }  # fmt: skip
