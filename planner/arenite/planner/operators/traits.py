"""Traits that operators share: element-wise, keeping, viewing, normalising."""

from typing import ClassVar

from arenite.planner.operators.operator import (
    Operands,
    Operator,
    Region,
    broadcast_region,
    same_layout,
    same_places,
    whole,
)
from arenite.planner.operators.streams import Along


class ElementWise(Operator):
    """Each element of the first output depends on the same element of each input.

    Inputs broadcast. An element is read before its place is written, so the result may take
    the place of any input with the same layout.
    """

    __slots__ = ()

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the inputs that are not broadcast and have elements of the same width."""
        return tuple(
            position
            for position, tensor in enumerate(operands.inputs)
            if same_places(tensor, operands.result)
        )

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the same region, less the axes along which the input is broadcast."""
        tensor, result = operands.inputs[position], operands.result
        assert tensor is not None
        return whole(tensor) if result is None else broadcast_region(tensor, result, region)

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> Operator | None:
        """Return the same: it makes every element alike."""
        return self


class Keeping(Operator):
    """Changes nothing if the first output has the type and shape of the first input."""

    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        return same_layout(operands.source, operands.result)


class Viewing(Keeping):
    """Its first output holds the bytes of the first input, in another shape."""

    __slots__ = ()

    def is_view(self, operands: Operands) -> bool:
        return operands.source is not None and operands.result is not None


class Normalising(Operator):
    """Reduces a group of elements of the first input before it writes any of the group.

    Groups do not overlap, so the result may take the place of the first input.
    """

    __slots__ = ()

    reduces_groups: ClassVar[bool] = True

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the first input, if its elements have the width of the result's."""
        return (0,) if same_places(operands.source, operands.result) else ()
