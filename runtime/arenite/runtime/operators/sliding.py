"""Operators that slide a window over an image."""

from arenite.planner.operators.operator import Operands, Region
from arenite.planner.operators.sliding import Sliding, Window
from arenite.runtime.operators.base import Clamped, Pair, Sides


def sliding_over(
    operands: Operands, kernel: Pair, strides: Pair, dilations: Pair, padding: Sides, groups: int
) -> Sliding | None:
    """Return how a window slides over the first input, None if there is no image."""
    source, result = operands.source, operands.result
    if source is None or result is None or len(source.shape) != 4 or len(result.shape) != 4:
        return None
    if 0 in (*source.shape, *result.shape):
        return None
    rows, columns = (
        Window(
            source.shape[1 + axis], result.shape[1 + axis], kernel[axis], strides[axis],
            dilations[axis], padding[0] if axis == 0 else padding[3],
        )
        for axis in range(2)
    )  # fmt: skip
    return Sliding(rows, columns, row_axis=1, channel_axis=3, groups=groups)


class SlidingOperator(Clamped):
    """Slides a window over an image that is its first input."""

    __slots__ = ()

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the region of the image under the windows, and the whole of other inputs."""
        sliding, source, result = self.sliding(operands), operands.source, operands.result
        if position or sliding is None or source is None or result is None:
            return super().input_region(operands, position, region)
        return sliding.input_region(region, source.shape[3], result.shape[3])
