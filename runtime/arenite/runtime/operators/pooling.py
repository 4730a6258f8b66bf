"""Maximum and average pools."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from arenite.planner.operators.operator import Operands
from arenite.planner.operators.windows import Sliding, sliding_over
from arenite.runtime.operators.base import FLOAT_BYTES, NO_PADDING, Clamped, Pair, Sides
from arenite.runtime.operators.rows import makes_one_image


class PoolKind(StrEnum):
    """What a pool computes of its window."""

    MAXIMUM = "maximum"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool2D(Clamped):
    """Maximum or average over windows; with `count_padding`, averages count padding as zeros.

    Of a maximum a second output, int64, is where it lies, counted over N, C, H, W: the first of
    the largest.
    """

    number: ClassVar[int] = 6

    kind: PoolKind
    window: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = NO_PADDING
    count_padding: bool = False

    def sliding(self, operands: Operands) -> Sliding | None:
        """Return how the window slides over the image; its places take another look at it."""
        if len(operands.outputs) > 1:
            return None
        source = operands.source
        channels = source.shape[-1] if source is not None and source.shape else 1
        return sliding_over(
            source, operands.result, kernel=self.window, strides=self.strides,
            dilations=self.dilations, groups=channels, before=(self.padding[0], self.padding[3]),
        )  # fmt: skip

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether it pools one image, tells no places, and sums up no rows as they come."""
        is_image = self.sliding(operands) is not None and makes_one_image(operands)
        return is_image and not self.accumulates_rows(operands)

    def accumulates_rows(self, operands: Operands) -> int:
        """Return the bytes of a sum for each element, if the result of an average has one row."""
        sliding, result = self.sliding(operands), operands.result
        if sliding is None or result is None or self.kind is not PoolKind.AVERAGE:
            return 0
        if sliding.rows.count != 1 or not makes_one_image(operands):
            return 0
        return FLOAT_BYTES * result.num_elements
