"""How many bytes of flash the code of an export takes, and how many cycles a run: estimates.

Both are for a Cortex-M4 and GCC 12.2 with -O2. Bytes of functions are those of a table, a tenth
less since the compiler makes them for the arguments of an export; a call, and what surrounds it,
takes `_CALL`. Cycles are those that `python -m bench run c-cycles` estimates, as a number for each
multiply-add and each result of a kernel.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from arenite.runtime.cexport import kernels

_CALL: Final = 24
"""Bytes of instructions for a call of a kernel."""
_SPECIALISED: Final = 0.9
"""Bytes of a function in an export, in parts of those of the table."""
_SIZES: Final = {"int32_t": 4, "float": 4, "int16_t": 2, "int8_t": 1, "uint8_t": 1, "int64_t": 8}
_FUNCTION = re.compile(r"^(?:KERNEL|static [^\n(]*?) ?\*?(\w+)\(", re.MULTILINE)
_KERNEL_CALL = re.compile(r"^ *\w+\(.*\);$", re.MULTILINE)
_LAYER = re.compile(r"\bstatic const (\w+) \w+ =")

CYCLES: Final[Mapping[str, tuple[float, float]]] = {
    "conv_pairs_s8": (1.9, 11), "pointwise_pairs_s8": (1.9, 11), "depthwise_fours_s8": (5, 27),
    "conv_s8": (4.85, 45), "pointwise_s8": (5, 30), "depthwise_s8": (13, 50),
    "pointwise_sums_pairs_s8": (1.9, 33), "pointwise_sums_s8": (5, 30), "add_s8": (0, 88),
}  # fmt: skip
"""Cycles of each multiply-add and of each result."""
_OTHER: Final = 30
"""Cycles of each element of other kernels, which multiply nothing."""
CYCLES_OF_DECODING: Final = 30
"""Cycles of a byte of weights that is decoded."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a step computes.

    Attributes:
        kernel: Its first kernel.
        multiply_adds: Their number.
        results: Elements of its results.
        elements: Elements of its largest operand or result.
    """

    kernel: str
    multiply_adds: int
    results: int
    elements: int

    @property
    def cycles(self) -> float | None:
        """Cycles, None if a kernel without figures multiplies."""
        if self.kernel in CYCLES:
            by_product, by_result = CYCLES[self.kernel]
            return by_product * self.multiply_adds + by_result * self.results
        return None if self.multiply_adds else float(_OTHER * self.elements)


def cycles_of(work: Sequence[Work], decoded: int = 0) -> int | None:
    """Return the cycles of a run, None if they are not estimated.

    Args:
        work: What its steps compute.
        decoded: Bytes of weights that it decodes.
    """
    found = [each.cycles for each in work]
    if not found or None in found:
        return None
    return round(sum(filter(None, found))) + CYCLES_OF_DECODING * decoded


def code_bytes(source: str, calls: Iterable[str], layers: Sequence[str]) -> int:
    """Return the bytes of functions and of structures of layers.

    Args:
        source: The kernels.
        calls: Those of all steps.
        layers: Definitions of structures.
    """
    sizes = _sizes()
    functions = sum(sizes.get(name, 0) for name in set(_FUNCTION.findall(source)))
    num_calls = len(_KERNEL_CALL.findall("\n".join(calls)))
    structures = (_structure(name) for each in layers for name in _LAYER.findall(each))
    return round(_SPECIALISED * functions) + _CALL * num_calls + sum(structures)


@cache
def _structure(name: str) -> int:
    try:
        types = kernels.fields(name).values()
    except KeyError:
        return 0
    return -(-sum(_SIZES.get(each.removeprefix("const "), 4) for each in types) // 4) * 4


@cache
def _sizes() -> Mapping[str, int]:
    text = files(kernels.__name__).joinpath("sizes.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {name: int(size) for name, size in rows}
