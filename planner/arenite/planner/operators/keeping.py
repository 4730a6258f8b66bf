"""Operators whose result may be their first input, unchanged or in another shape."""

from arenite.planner.operators.operator import Operands, Operator, same_layout


class Keeping(Operator):
    """Changes nothing if the first output has the type and shape of the first input."""

    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether type and shape agree."""
        return same_layout(operands.source, operands.result)


class Viewing(Keeping):
    """Its first output holds the bytes of the first input, in another shape."""

    __slots__ = ()

    def is_view(self, operands: Operands) -> bool:
        """Tell whether both operands are there."""
        return operands.source is not None and operands.result is not None
