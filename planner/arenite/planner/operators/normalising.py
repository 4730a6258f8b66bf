"""Operators that normalise groups of elements, such as softmax."""

from typing import ClassVar

from arenite.planner.operators.operator import Operands, Operator, same_places


class Normalising(Operator):
    """Reduces a group of elements of the first input before it writes any of the group.

    Groups do not overlap, so the result may take the place of the first input.
    """

    __slots__ = ()

    reduces_groups: ClassVar[bool] = True

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the first input, if its elements have the width of the result's."""
        return (0,) if same_places(operands.source, operands.result) else ()
