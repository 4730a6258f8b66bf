"""The RAM of networks for microcontrollers: of exported C, beside what others publish."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import CRequest, write_c
from arenite.planner import Boundary, Budget
from arenite.runtime.targets.tflm import InterpreterError
from arenite.runtime.targets.tflm import measure_arena as measure_tflm
from arenite.strategies import BandsLimitError, find
from bench.contests.bands import VELA
from bench.harness.contest import Asked, Row, contest, note, required
from bench.harness.inputs import TFLITE_MODELS, shared_tflite


@dataclass(frozen=True, slots=True)
class Published:
    """What others publish for a network, in their own units.

    Attributes:
        name: The network's name there.
        tinyengine: TinyEngine at 0363956, peak memory on an STM32H743, from its README.
        x_cube_ai: X-CUBE-AI 7.3.0, from the same table; of MobileNet v2 from ST's model zoo.
        micro: TensorFlow Lite Micro at 713b6ed, from the same table.
    """

    name: str
    tinyengine: str = ""
    x_cube_ai: str = ""
    micro: str = ""


PUBLISHED: Final[Mapping[str, Published]] = {
    "te_vww": Published("mcunet-vww1", "92 kB", "113 kB", "220 kB"),
    "tf2_mobilenet_v2_1.0_224_ptq": Published("MobileNet v2 1.0 224", x_cube_ai="1,757.21 KiB"),
}
"""TinyEngine's README, and the README of MobileNet v2 in ST's model zoo (STM32Cube.AI 10.0.0,
activations of 1,727.02 KiB with input and output, and 30.19 KiB of the runtime)."""
MODELS: Final = (
    "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "str_ww_ref_model", "person_detect",
    "te_vww", "tf2_mobilenet_v2_1.0_224_ptq",
)  # fmt: skip


@contest(
    {"RAM of networks for microcontrollers": {
        "model": "", "whole": "", "in bands": "", "caller's, in bands": "",
        "TFLM, smallest arena": "", "TFLM": "", "TinyEngine": "", "X-CUBE-AI": "",
        "Vela 5.2, NPU": "",
    }},
    models="those of ../shared/models/tflite",
)  # fmt: skip
def ram_table(asked: Asked) -> Iterator[Row]:
    """Arenas of exported C, in bytes, beside arenas of other tools and what these publish.

    Each export was compiled and its outputs compared before its arena counts. *Whole* and *in
    bands* include graph inputs and outputs, *caller's* leaves them out; none has the stack.
    TensorFlow Lite Micro's smallest arena is measured in its 64-bit interpreter. Columns
    with units are published: TinyEngine, X-CUBE-AI and TFLM of mcunet-vww1 are peaks of SRAM that
    TinyEngine's README states for an STM32H743; X-CUBE-AI of MobileNet v2 is the total RAM that
    ST's model zoo states, input and output inside. Vela's is the arena of its NPU.
    """
    for path in required(asked.models or shared_tflite(MODELS), TFLITE_MODELS):
        whole = _arena(path)
        banded, callers = (_least(path, boundary) for boundary in Boundary)
        note(f"{path.stem}: {whole:,} -> {banded:,} -> {callers:,} B")
        try:
            micro = measure_tflm(path, 1, 1).smallest
        except InterpreterError as error:
            note(str(error))
            micro = None
        asked.require(callers <= banded <= whole, f"{path.stem}: each is at most the one before")
        published = PUBLISHED.get(path.stem, Published(path.stem))
        yield {
            "model": path.stem, "whole": whole, "in bands": banded, "caller's, in bands": callers,
            "TFLM, smallest arena": micro, "TFLM": published.micro,
            "TinyEngine": published.tinyengine, "X-CUBE-AI": published.x_cube_ai,
            "Vela 5.2, NPU": VELA.get(path.stem),
        }  # fmt: skip


def _least(path: Path, boundary: Boundary) -> int:
    """Return the bytes of the smallest arena that bands of rows reach."""
    try:
        return _arena(path, boundary, 1)
    except BandsLimitError as limit:
        return _arena(path, boundary, limit.least)


def _arena(path: Path, boundary: Boundary = Boundary.INCLUDE, budget: int | None = None) -> int:
    """Return the bytes of the arena of a model as C, whose exported test passes."""
    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        request = CRequest(
            path, Path(folder) / "c", Reading(boundary=boundary), find("best"), None,
            budget=None if budget is None else Budget(budget),
        )  # fmt: skip
        exported = write_c(request)
    assert exported.test.num_wrong == 0
    return exported.export.arena_bytes
