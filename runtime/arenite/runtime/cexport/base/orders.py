"""Constants that kernels for some instruction sets read in another order than portable C."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from arenite.planner import Array


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """An instruction set with kernels of its own.

    Attributes:
        name: In names of files; its macro is `HAS_` and this in capital letters.
        condition: Whether a compiler has it, as the kernels ask.
        processors: Those that have it, for people.
    """

    name: str
    condition: str
    processors: str


MVE: Final = InstructionSet(
    "mve", "defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)",
    "Cortex-M55 and M85",
)  # fmt: skip
RVV: Final = InstructionSet(
    "rvv", "defined(__riscv_vector) && __riscv_v_intrinsic >= 12000", "RISC-V with vectors"
)
INSTRUCTION_SETS: Final = (MVE, RVV)

Orders: TypeAlias = Mapping[InstructionSet, Array]
"""What an array is instead for some instruction sets, of the same type and size."""


def in_each_order(array: Array, orders: Orders | None) -> tuple[Array, ...]:
    """Return an array as portable C reads it, then as each instruction set does."""
    return (array, *((orders or {}).get(each, array) for each in INSTRUCTION_SETS))


def little_endian(array: Array) -> bytes:
    """Return the bytes of an array in the memory of a processor."""
    return array.astype(array.dtype.newbyteorder("<")).tobytes()
