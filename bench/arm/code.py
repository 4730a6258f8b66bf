"""What machine code is made of: kinds of instructions, and cycles as `llvm-mca` estimates them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from bench.arm.tools import output

KINDS: Final = ("multiplies", "other vector", "loads", "stores", "branches", "scalar")
"""Multiplies are those of vectors and of floats, dot products among them."""
_LLVM: Final = "19"
"""A release that has a model of Neoverse N1; Debian 12 and 13 have the package `llvm-19`."""
_ITERATIONS: Final = 100
_ATTRIBUTES: Final = {
    "aarch64": "--mattr=+v8.2a,+dotprod,+fullfp16,+crypto", "x86_64": "--mattr=",
    "thumbv7em": "--mattr=+dsp,+fp-armv8d16sp",
    "thumbv8.1m.main": "--mattr=+dsp,+mve.fp,+fp-armv8d16",
}  # fmt: skip
_MULTIPLIES: Final[Sequence[tuple[int, int]]] = (
    (0x9F20FC00, 0x0E209400), (0x9F20FC00, 0x0E209C00), (0x9F20FC00, 0x0E20B400),
    (0xBF20FC00, 0x0E20CC00), (0xBF20FC00, 0x2E20DC00), (0xBF60F400, 0x0E400400),
    (0x9F208400, 0x0E008400), (0x9F208C00, 0x0E208000), (0x9F00F400, 0x0F001000),
    (0x9F000400, 0x0F000000), (0xDF000400, 0x5F000000), (0xFF000000, 0x1F000000),
    (0xFF207C00, 0x1E200800),
)  # fmt: skip
"""Mask and bits: MLA and MLS, MUL, SQDMULH, FMLA, FMUL, fp16, dot products, widening, by element,
scalar by element, fused scalars, FMUL of scalars."""


def kinds(code: bytes) -> Mapping[str, int]:
    """Return the number of AArch64 instructions of each kind."""
    words = (int.from_bytes(code[at : at + 4], "little") for at in range(0, len(code), 4))
    return Counter(map(kind_of, words))


@cache
def kind_of(word: int) -> str:
    """Return the kind of an AArch64 instruction.

    Source: Arm Architecture Reference Manual, C4.1, top-level encodings.
    """
    if word >> 27 & 1 and not word >> 25 & 1:
        is_literal, is_single = (
            word >> 27 & 7 == 0b011 and not word >> 24 & 1,
            word >> 27 & 7 == 0b111,
        )
        opc, is_vector = word >> 22 & 3, word >> 26 & 1
        if is_literal or (is_single and opc == 2 and not is_vector):
            return "loads"
        return "loads" if opc & 1 else "stores"
    if word >> 26 & 7 == 0b101:
        return "branches"
    if word >> 25 & 7 != 0b111:
        return "scalar"
    is_multiply = any(word & mask == bits for mask, bits in _MULTIPLIES)
    return "multiplies" if is_multiply else "other vector"


@cache
def cycles_of(
    codes: tuple[bytes, ...], arch: str, processor: str, options: tuple[str, ...] = ()
) -> list[float]:
    """Return the cycles of each piece of code, repeated, with all data in the first cache.

    Args:
        codes: The pieces.
        arch: As LLVM names it.
        processor: Also.
        options: Further options of `llvm-mca`.

    Raises:
        MissingInputsError: LLVM is not installed, or does not understand the code.
    """
    listings = [listing(code, arch, processor) for code in codes]
    regions = "".join(
        f"# LLVM-MCA-BEGIN {index}\n{listing}# LLVM-MCA-END\n"
        for index, listing in enumerate(listings)
    )
    said = _llvm(
        "llvm-mca", f"--mtriple={arch}-linux-gnu", f"--mcpu={processor}", _ATTRIBUTES[arch],
        f"--iterations={_ITERATIONS}", "--all-views=false", "--summary-view",
        "--skip-unsupported-instructions=lack-sched", *options, text=regions,
    )  # fmt: skip
    found = re.findall(r"^Total Cycles: +(\d+)$", said, re.MULTILINE)
    assert len(found) == len(codes), "one summary for each region"
    return [int(each) / _ITERATIONS for each in found]


@cache
def listing(code: bytes, arch: str, processor: str) -> str:
    """Return code in assembly language, an instruction a line."""
    said = _llvm(
        "llvm-mc", "--disassemble", f"--triple={arch}-linux-gnu", f"--mcpu={processor}",
        _ATTRIBUTES[arch],
        text=" ".join(f"0x{each:02x}" for each in code),
    )  # fmt: skip
    return "".join(f"{line}\n" for line in said.splitlines() if not line.startswith("\t."))


def _llvm(program: str, *arguments: str, text: str) -> str:
    return output([f"{program}-{_LLVM}", *arguments], text=text)
