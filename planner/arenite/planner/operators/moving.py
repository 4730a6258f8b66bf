"""Operators that a schedule adds: they move a tensor to another memory and back, or recode it.

A spilled tensor takes four steps. Those of the second line are on a lane of their own::

    compute    a   b   wait   c   d        wait   e     a writes x, e reads it
    link          spill             fetch

`Spill` copies x to another memory; the step that waits for it is the last to touch x, so its bytes
are free from c on. `Fetch` copies it back into a new tensor, which takes bytes from d on.
"""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.operators.traits import ElementWise


@dataclass(frozen=True, slots=True)
class Spill(Operator):
    """Copies its input to another memory.

    Attributes:
        moved: Bytes that are expected to cross the link, where they are coded on the way; the
            place for them is that of the tensor as it is. None for all its bytes.
    """

    repeatable: ClassVar[bool] = True

    moved: int | None = None

    def bytes_moved(self, operands: Operands) -> tuple[int, int]:
        """Return the bytes over the link, and 0."""
        return _moved(self.moved, operands), 0


@dataclass(frozen=True, slots=True)
class Fetch(Operator):
    """Copies its input, which lies in another memory, back.

    Attributes:
        moved: Bytes that are expected to cross the link; None for all those of the tensor.
    """

    repeatable: ClassVar[bool] = True

    moved: int | None = None

    def bytes_moved(self, operands: Operands) -> tuple[int, int]:
        """Return 0, and the bytes over the link."""
        return 0, _moved(self.moved, operands)


@dataclass(frozen=True, slots=True)
class Wait(Operator):
    """Waits until steps of other lanes are done with its inputs, and computes nothing."""

    repeatable: ClassVar[bool] = True

    def bytes_touched(self, operands: Operands) -> int:
        return 0


def _moved(stated: int | None, operands: Operands) -> int:
    if stated is not None:
        return stated
    return 0 if operands.source is None else operands.source.size


@dataclass(frozen=True, slots=True)
class Narrow(ElementWise):
    """Rounds 32-bit floats to 16-bit ones."""

    repeatable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Widen(ElementWise):
    """Makes 32-bit floats of 16-bit ones."""

    repeatable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Pack(Operator):
    """Keeps booleans as bits: a byte for 8 elements."""

    repeatable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Unpack(Operator):
    """Makes booleans of the bits that they were packed to."""

    repeatable: ClassVar[bool] = True
