"""Operators that carry tensors to another memory and back, on a lane beside the computation."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.operator import Operands
from arenite.runtime.operators.base import RuntimeOperator


@dataclass(frozen=True, slots=True)
class Spill(RuntimeOperator):
    """Copies x to a memory that is spilled to."""

    number: ClassVar[int] = 33

    def bytes_moved(self, operands: Operands) -> tuple[int, int]:
        """Return the bytes of the tensor, and 0."""
        return _size(operands), 0


@dataclass(frozen=True, slots=True)
class Fetch(RuntimeOperator):
    """Copies x, which was spilled, back."""

    number: ClassVar[int] = 34

    def bytes_moved(self, operands: Operands) -> tuple[int, int]:
        """Return 0, and the bytes of the tensor."""
        return 0, _size(operands)


@dataclass(frozen=True, slots=True)
class Wait(RuntimeOperator):
    """Computes nothing: the steps that it awaits are done before it."""

    number: ClassVar[int] = 35

    def bytes_touched(self, operands: Operands) -> int:
        """Return 0."""
        return 0


def _size(operands: Operands) -> int:
    return 0 if operands.source is None else operands.source.size
