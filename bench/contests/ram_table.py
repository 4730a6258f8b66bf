"""The RAM of networks for microcontrollers: of exported C, beside what others publish."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import Choose, CRequest, ExportedC, write_c
from arenite.planner import Boundary, Candidate
from arenite.runtime.targets.tflm import InterpreterError
from arenite.runtime.targets.tflm import measure_arena as measure_tflm
from arenite.strategies import StripsSearch, find
from bench.contests.bands import VELA
from bench.harness.contest import Asked, Row, contest, note
from bench.harness.inputs import shared_tflite
from bench.quantised import quantised_file

MOST_WORK: Final = 1.1
"""Multiply-adds in bands, as a multiple of those of the whole program, of the middle column."""


@dataclass(frozen=True, slots=True)
class Published:
    """What others publish for a network, in their own units.

    Attributes:
        tinyengine: TinyEngine at 0363956, peak memory on an STM32H743, from its README.
        x_cube_ai: X-CUBE-AI 7.3.0, from the same table; of MobileNet v2 1.0 from ST's model zoo.
        micro: TensorFlow Lite Micro at 713b6ed, from the same table; `OOM` is above 512 kB.
        msf_cnn: msf-CNN, activations in bytes at times the multiply-adds, input and output with
            the caller, from the results in its repository.
    """

    tinyengine: str = ""
    x_cube_ai: str = ""
    micro: str = ""
    msf_cnn: str = ""


PUBLISHED: Final[Mapping[str, Published]] = {
    "mobilenet-v2-0.35-144-int8": Published("295 kB", "296 kB", "OOM"),
    "mcunet-vww-80-int8": Published("92 kB", "113 kB", "220 kB"),
    "mcunet-imagenet-176-int8": Published("260 kB", "243 kB", "493 kB"),
    "msf-mobilenet-v2-0.35-144-int8": Published(
        msf_cnn="67,905 at 1.10, 15,340 at 1.38, 7,887 at 1.68"
    ),
    "msf-vww-80-int8": Published(msf_cnn="32,792 at 1.04, 13,376 at 1.35, 12,000 at 1.96"),
    "msf-imagenet-176-int8": Published(msf_cnn="190,096 at 1.04, 94,184 at 1.45, 42,643 at 2.69"),
    "te_vww": Published("92 kB", "113 kB", "220 kB"),
    "tf2_mobilenet_v2_1.0_224_ptq": Published(x_cube_ai="1,757.21 KiB"),
}
"""TinyEngine's README, the README of MobileNet v2 in ST's model zoo (STM32Cube.AI 10.0.0,
activations of 1,727.02 KiB with input and output, and 30.19 KiB of the runtime), and
`result.json` of github.com/TinyPART/msf-CNN."""
SHARED: Final = (
    "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "str_ww_ref_model", "person_detect",
    "te_vww", "tf2_mobilenet_v2_1.0_224_ptq",
)  # fmt: skip
ZOO: Final = (
    "anomaly-detector", "wake-word", "mobilenet-v2-0.35-144", "msf-mobilenet-v2-0.35-144",
    "mcunet-vww-80", "msf-vww-80", "mcunet-imagenet-176", "msf-imagenet-176",
)  # fmt: skip


@contest(
    {"RAM of networks for microcontrollers": {
        "model": "", "whole": "", "in bands": "", "caller's, to 1.1": "", "at": ".3f",
        "caller's, least": "", "its multiply-adds": ".3f", "TFLM, smallest arena": "", "TFLM": "",
        "TinyEngine": "", "X-CUBE-AI": "", "msf-CNN": "", "Vela 5.2, NPU": "",
    }},
    models="those of the zoo, in 8 bits, and of ../shared/models/tflite",
)  # fmt: skip
def ram_table(asked: Asked) -> Iterator[Row]:
    """Arenas of exported C, in bytes, beside arenas of other tools and what these publish.

    Each export was compiled and its outputs compared before its arena counts. *Whole* and *in
    bands*, the least that bands reach, include graph inputs and outputs; *caller's* leaves them
    out, at most a tenth more multiply-adds and the least. None has the stack.
    TensorFlow Lite Micro's smallest arena is measured in its 64-bit interpreter. Columns
    with units are published: TinyEngine, X-CUBE-AI and TFLM are peaks of SRAM that
    TinyEngine's README states for an STM32H743; X-CUBE-AI of MobileNet v2 1.0 is the total RAM
    that ST's model zoo states, input and output inside. msf-CNN counts activations without the
    caller's, by its analysis, of the layers that networks named after it have. Vela's is the
    arena of its NPU.
    """

    def found() -> Iterator[Path]:
        yield from (quantised_file(name, asked.folder) for name in ZOO)
        yield from shared_tflite(SHARED)

    yield from asked.each(found(), lambda path: _row(asked, path))


def _row(asked: Asked, path: Path) -> Row:
    whole = _exported(path, Boundary.INCLUDE)
    banded = _exported(path, Boundary.INCLUDE, _least)
    found: list[Candidate] = []

    def frontier(search: StripsSearch) -> list[Candidate]:
        found.extend(() if found else search.frontier())
        return found

    callers = _exported(path, Boundary.EXCLUDE, lambda search: frontier(search)[-1])
    cheap = _exported(path, Boundary.EXCLUDE, lambda search: _cheap(frontier(search)))
    sizes = [each.export.arena_bytes for each in (whole, banded, cheap, callers)]
    note(f"{path.stem}: " + ", ".join(f"{size:,}" for size in sizes))
    asked.require(
        sizes[0] >= sizes[1] >= sizes[3] and sizes[2] >= sizes[3],
        f"{path.stem}: bands are not above the whole, and the caller's not above those",
    )
    asked.require(cheap.multiply_adds_ratio <= MOST_WORK, f"{path.stem}: at most {MOST_WORK}")
    try:
        micro = measure_tflm(path, 1, 1).smallest
    except InterpreterError as error:
        note(str(error))
        micro = None
    published = PUBLISHED.get(path.stem, Published())
    return {
        "model": path.stem, "whole": sizes[0], "in bands": sizes[1], "caller's, to 1.1": sizes[2],
        "at": cheap.multiply_adds_ratio, "caller's, least": sizes[3],
        "its multiply-adds": callers.multiply_adds_ratio, "TFLM, smallest arena": micro,
        "TFLM": published.micro, "TinyEngine": published.tinyengine,
        "X-CUBE-AI": published.x_cube_ai, "msf-CNN": published.msf_cnn,
        "Vela 5.2, NPU": VELA.get(path.stem),
    }  # fmt: skip


def _least(search: StripsSearch) -> Candidate:
    """Return the program of the smallest arena."""
    *_, least = search.frontier()
    return least


def _cheap(frontier: Iterable[Candidate]) -> Candidate:
    """Return that of few more multiply-adds."""
    *_, least = (each for each in frontier if each.multiply_adds_ratio <= MOST_WORK)
    return least


def _exported(path: Path, boundary: Boundary, choose: Choose | None = None) -> ExportedC:
    """Return a model as C, whose exported test passes."""
    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        reading = Reading(boundary=boundary)
        request = CRequest(path, Path(folder) / "c", reading, find("best"), None)
        exported = write_c(request, choose)
    assert exported.test.num_wrong == 0
    return exported
