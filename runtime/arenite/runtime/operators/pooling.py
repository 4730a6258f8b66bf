"""Pools: the largest or the mean of what a window lies over."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from arenite.planner.operators.operator import Operands, Region
from arenite.planner.operators.sliding import Sliding
from arenite.runtime.operators.base import NO_PADDING, Clamped, Pair, Sides
from arenite.runtime.operators.convolution import sliding_over


class PoolKind(StrEnum):
    """What a pool makes of its window."""

    MAXIMUM = "maximum"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool2D(Clamped):
    """Maximum or average over windows; `count_padding`: an average takes padding as zeros."""

    number: ClassVar[int] = 6

    kind: PoolKind
    window: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = NO_PADDING
    count_padding: bool = False

    def sliding(self, operands: Operands) -> Sliding | None:
        """Return how the window slides over the image."""
        source = operands.source
        channels = source.shape[-1] if source is not None and source.shape else 1
        return sliding_over(
            operands, self.window, self.strides, self.dilations, self.padding, channels
        )

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the part of the image under the windows."""
        sliding, source, result = self.sliding(operands), operands.source, operands.result
        if sliding is None or source is None or result is None:
            return super().input_region(operands, position, region)
        return sliding.input_region(region, source.shape[3], result.shape[3])
