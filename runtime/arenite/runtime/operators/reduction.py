"""Pools and reductions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from arenite.planner import DType
from arenite.planner.operators import Along, Operands, Sliding, sliding_over
from arenite.planner.sizes import same
from arenite.runtime.operators.base import (
    FLOAT_BYTES,
    NO_PADDING,
    AlongLastAxes,
    Clamped,
    Pair,
    RuntimeOperator,
    Sides,
    SumsOfParts,
    has_16_bits,
    has_fixed_top,
    is_one_image,
    makes_one_image,
    padding_at_border,
    without_padding,
)
from arenite.runtime.operators.halves import has_halves


class PoolKind(StrEnum):
    """Function of a pool."""

    MAXIMUM = "maximum"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool2D(Clamped):
    """Maximum or average over windows; with `count_padding`, averages count padding as zeros.

    Of a maximum a second output, int64, is where it lies, counted over N, C, H, W: the first of
    the largest. An average of bytes may be made by way of sums of 16 bits: the sums of a scale
    are those of the bytes, with the sum of their zero points. A pool from bytes to 16 bits makes
    them over whole rows, and one from 16 bits to bytes, whose window is that of all bytes, their
    average.
    """

    number: ClassVar[int] = 6

    kind: PoolKind
    window: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = NO_PADDING
    count_padding: bool = False

    @classmethod
    def whole(cls, kind: PoolKind, extents: Sequence[int]) -> "Pool2D":
        """Return the pool over all of an image, of so many rows and columns."""
        rows, columns = extents
        # It has one position at any size, so its strides are those of the highest.
        return cls(kind=kind, window=(rows, columns), strides=(int(rows), int(columns)))

    def sliding(self, operands: Operands) -> Sliding | None:
        if len(operands.outputs) > 1:
            return None
        source = operands.source
        channels = source.shape[-1] if source is not None and source.shape else 1
        return sliding_over(
            source, operands.result, kernel=self.window, strides=self.strides,
            dilations=self.dilations, groups=channels, before=(self.padding[0], self.padding[3]),
        )  # fmt: skip

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Pool2D":
        return replace(self, padding=without_padding(self.padding, along.axis))

    def cut_at_border(self, along: Along, made: Pair, taken: Pair) -> "Pool2D":
        return replace(self, padding=padding_at_border(self.padding, along, made, taken))

    def makes_rows(self, operands: Operands) -> bool:
        is_image = self.sliding(operands) is not None and makes_one_image(operands)
        if self.takes_sums(operands):
            return False
        return is_image and not self._has_one_row(operands) and has_fixed_top(self.padding)

    def has_kernel_by_rows(self, operands: Operands) -> bool:
        return not has_16_bits(operands)

    def accumulates_rows(self, operands: Operands) -> int:
        """Return the bytes of a sum for each element, if the result of an average has one row."""
        result = operands.result
        if result is None or has_halves(operands) or self.takes_sums(operands):
            return 0
        if not self._has_one_row(operands):
            return 0
        return FLOAT_BYTES * result.num_elements

    def _has_one_row(self, operands: Operands) -> bool:
        """Tell whether it is an average whose result is one row of an image."""
        sliding = self.sliding(operands)
        if sliding is None or self.kind is not PoolKind.AVERAGE:
            return False
        return sliding.rows.count == 1 and makes_one_image(operands)

    def in_parts(self, operands: Operands, rows: int) -> SumsOfParts | None:
        source, result = operands.source, operands.result
        if source is None or result is None or source.dtype is not DType.INT8:
            return None
        _, height, width, depth = source.shape
        is_whole = self.window == (height, width) and result.shape[1:3] == (1, 1)
        if not (self._has_one_row(operands) and is_whole) or self.padding != NO_PADDING:
            return None
        each, stated = rows * width, source.quantisation
        if each > _MOST_IN_16_BITS or height * width > _MOST_SUMMED or self.dilations != (1, 1):
            return None
        sums = replace(
            source,
            shape=(1, height // rows, 1, depth),
            dtype=DType.INT16,
            quantisation=stated and replace(stated, zero_point=each * stated.zero_point),
        )
        return SumsOfParts(Pool2D.whole(self.kind, (rows, width)), sums)

    def takes_sums(self, operands: Operands) -> bool:
        """Tell whether it makes sums of bytes, or an average of such sums."""
        source, result = operands.source, operands.result
        return source is not None and result is not None and source.dtype is not result.dtype


_MOST_SUMMED = 1 << 23
"""Most elements of 8 bits whose sum always fits 32 bits."""
_MOST_IN_16_BITS = 256
"""Most elements of 8 bits whose sum always fits 16 bits."""


class ReduceFunction(StrEnum):
    """Function of a reduction."""

    SUM = "sum"
    MEAN = "mean"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    PRODUCT = "product"
    L1 = "l1"
    L2 = "l2"
    SUM_SQUARE = "sum_square"
    LOG_SUM = "log_sum"
    LOG_SUM_EXP = "log_sum_exp"


_SUMS = (ReduceFunction.SUM, ReduceFunction.MEAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(RuntimeOperator):
    """Reduces all elements along some axes to one."""

    number: ClassVar[int] = 11

    function: ReduceFunction
    axes: tuple[int, ...]

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        source, result = operands.source, operands.result
        if source is None or result is None or source.dtype is not result.dtype:
            return ()
        return (0,) if same(source.num_elements, result.num_elements) else ()

    def accumulates_rows(self, operands: Operands) -> int:
        """Return the bytes of a sum for each channel, if it sums up rows and columns."""
        source = operands.source
        if source is None or not is_one_image(source) or len(operands.outputs) != 1:
            return 0
        spatial = set(range(1, len(source.shape) - 1))
        if self.function not in _SUMS or set(self.axes) - {0} != spatial:
            return 0
        channels = source.shape[-1]
        if source.dtype not in (DType.FLOAT32, DType.INT8, DType.UINT8):
            return 0
        if source.num_elements // channels > _MOST_SUMMED:
            return 0
        return FLOAT_BYTES * channels


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgReduce(AlongLastAxes, RuntimeOperator):
    """The index of the largest element along an axis, or of the smallest."""

    number: ClassVar[int] = 12

    axis: int
    minimum: bool = False
    last: bool = False

    def num_whole_axes(self, operands: Operands) -> int:
        return len(operands.source.shape) - self.axis if operands.source is not None else 0

    def makes_rows(self, operands: Operands) -> bool:
        source = operands.source
        if source is None or self.axis != len(source.shape) - 1:
            return False
        return AlongLastAxes.makes_rows(self, operands)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(RuntimeOperator):
    """The largest elements along the last axis, as many as fit the outputs, and their indices.

    They are sorted; of equal elements the first comes first.
    """

    number: ClassVar[int] = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSum(RuntimeOperator):
    """Cumulative sum along an axis."""

    number: ClassVar[int] = 17

    axis: int
    exclusive: bool = False
    reverse: bool = False
