"""The RAM of networks of the zoo as exported C, beside what others publish of the same layers."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import Choose, CRequest, ExportedC, write_c
from arenite.planner import Boundary, Candidate
from arenite.runtime.targets.tflm import InterpreterError
from arenite.runtime.targets.tflm import measure_arena as measure_tflm
from arenite.strategies import StripsSearch, find
from bench.harness.contest import Asked, Row, contest, note
from bench.quantised import quantised_file

MOST_WORK: Final = (1.1, 1.5)
"""Multiply-adds in bands, as multiples of those of the whole program."""


@dataclass(frozen=True, slots=True)
class Published:
    """What others publish for a network, in their own units.

    Attributes:
        tinyengine: TinyEngine at 0363956, peak memory on an STM32H743, from its README.
        x_cube_ai: X-CUBE-AI 7.3.0, from the same table.
        micro: TensorFlow Lite Micro at 713b6ed, from the same table; `OOM` is above 512 kB.
        msf_cnn: msf-CNN, bytes of activations at times the multiply-adds, input and output with
            the caller, from the results in its repository.
    """

    tinyengine: str = ""
    x_cube_ai: str = ""
    micro: str = ""
    msf_cnn: str = ""


PUBLISHED: Final[Mapping[str, Published]] = {
    "anomaly-detector": Published(),
    "msf-mobilenet-v2-0.35-144": Published(
        msf_cnn="67,905 at 1.10, 15,340 at 1.38, 7,887 at 1.68"
    ),
    "mobilenet-v2-0.35-144": Published("295 kB", "296 kB", "OOM"),
    "msf-vww-80": Published(msf_cnn="32,792 at 1.04, 13,376 at 1.35, 12,000 at 1.96"),
    "mcunet-vww-80": Published("92 kB", "113 kB", "220 kB"),
    "msf-imagenet-176": Published(msf_cnn="190,096 at 1.04, 94,184 at 1.45, 42,643 at 2.69"),
    "mcunet-imagenet-176": Published("260 kB", "243 kB", "493 kB"),
}
"""By the network's name in the zoo: README of github.com/mit-han-lab/tinyengine, and the files
`result.json` of github.com/TinyPART/msf-CNN."""


@contest(
    {"RAM of networks of the zoo as C": {
        "network": "", "whole": "", "caller's": "", "to 1.1": "", "at": ".3f", "to 1.5": "",
        "at ": ".3f", "TFLM, smallest arena": "", "TFLM": "", "TinyEngine": "", "X-CUBE-AI": "",
        "msf-CNN": "",
    }},
    models="networks of the zoo in 8 bits, by their names",
)  # fmt: skip
def ram_zoo(asked: Asked) -> Iterator[Row]:
    """Arenas of exported C, in bytes, beside TensorFlow Lite Micro and what others publish.

    Networks of the zoo are quantised and need no download. Each export was compiled and its
    outputs compared before its arena counts. *Whole* includes graph inputs and outputs, all other
    columns of ours leave them to the caller: whole, and the least arena in bands for at most 1.1
    and 1.5 times the multiply-adds. None has the stack. TensorFlow Lite Micro's smallest arena is
    measured in its 64-bit interpreter. Columns with units are published: peaks of SRAM that
    TinyEngine's README states for an STM32H743. msf-CNN's are of its analysis, which counts
    activations without input and output, of networks with its layers: no sums, no classifier.
    """
    for name in map(str, asked.models) if asked.models else PUBLISHED:
        path = quantised_file(name, asked.folder)
        whole, callers = (_exported(path, boundary) for boundary in Boundary)
        found: list[Candidate] = []
        cheap, low = (_exported(path, Boundary.EXCLUDE, _least(most, found)) for most in MOST_WORK)
        sizes = [each.export.arena_bytes for each in (whole, callers, cheap, low)]
        note(f"{name}: " + ", ".join(f"{size:,}" for size in sizes))
        asked.require(
            sizes == sorted(sizes, reverse=True), f"{name}: each is at most the one before"
        )
        try:
            micro = measure_tflm(path, 1, 1).smallest
        except InterpreterError as error:
            note(str(error))
            micro = None
        published = PUBLISHED.get(name, Published())
        yield {
            "network": name, "whole": sizes[0], "caller's": sizes[1], "to 1.1": sizes[2],
            "at": cheap.multiply_adds_ratio, "to 1.5": sizes[3], "at ": low.multiply_adds_ratio,
            "TFLM, smallest arena": micro, "TFLM": published.micro,
            "TinyEngine": published.tinyengine, "X-CUBE-AI": published.x_cube_ai,
            "msf-CNN": published.msf_cnn,
        }  # fmt: skip


def _least(most: float, found: list[Candidate]) -> Choose:
    """Return what picks the smallest program of at most so many times the multiply-adds.

    Args:
        most: That multiple.
        found: Programs of the first search, which a second one would find again.
    """

    def choose(search: StripsSearch) -> Candidate:
        if not found:
            found.extend(search.frontier())
        *_, least = (each for each in found if each.multiply_adds_ratio <= most)
        return least

    return choose


def _exported(path: Path, boundary: Boundary, choose: Choose | None = None) -> ExportedC:
    """Return a model as C, whose exported test passes."""
    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        reading = Reading(boundary=boundary)
        request = CRequest(path, Path(folder) / "c", reading, find("best"), None)
        exported = write_c(request, choose)
    assert exported.test.num_wrong == 0
    return exported
