"""Operators that compute each element of the result from the same element of each input."""

from arenite.planner.operators.operator import (
    Operands,
    Operator,
    Region,
    broadcast_region,
    same_places,
    whole,
)


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
