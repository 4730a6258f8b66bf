"""What the operators of our own runtime have in common.

Images are stored channels last: N, H, W, C. Axes count stored axes. Padding is top, right,
bottom, left.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from arenite.planner.operators.operator import Operands, Operator

Pair: TypeAlias = tuple[int, int]
Sides: TypeAlias = tuple[int, int, int, int]
NO_PADDING: Sides = (0, 0, 0, 0)
FLOAT_BYTES = 4
PANEL = 16
"""Output channels that lie side by side in a packed filter, or columns in a packed matrix."""
UNSTORED = "unstored"
"""Metadata of a field that the program file does not have."""

# Numbers that the program file does not store in 32 bits.
Offset: TypeAlias = Annotated[int, "ulong"]
Lengths: TypeAlias = Annotated[tuple[int, ...], "[ulong]"]
Strides: TypeAlias = Annotated[tuple[int, ...], "[long]"]


class RuntimeOperator(Operator):
    """An operator that the core runs: a dataclass of its attributes in the program file.

    Attributes:
        number: Its number in the program file, never given to another operator.
    """

    __slots__ = ()

    number: ClassVar[int]
    repeatable: ClassVar[bool] = True

    def has_kernel_by_rows(self, operands: Operands) -> bool:
        """Tell whether the core makes rows of it apart, if that can be (`makes_rows`)."""
        return True


@dataclass(frozen=True, slots=True)
class Clamped(RuntimeOperator):
    """An operator whose kernel clamps the result to [min, max] as it writes it."""

    takes_clamp: ClassVar[bool] = True

    min: float = -math.inf
    max: float = math.inf
