"""Operators that rescale groups of elements by what each group as a whole amounts to."""

from typing import ClassVar

from arenite.planner.operators.operator import Operands, Operator, same_places


class Normalising(Operator):
    """Reduces a group of elements of the first input before it writes any of the group.

    Groups do not overlap, so the result may take the place of the first input.
    """

    __slots__ = ()

    reduces_groups: ClassVar[bool] = True

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the first input, if its elements are as wide as those of the result."""
        return (0,) if same_places(operands.source, operands.result) else ()
