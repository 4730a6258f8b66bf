"""Operators that reduce many elements to one."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from arenite.planner.dtypes import DType
from arenite.planner.operators.operator import Operands
from arenite.runtime.operators.base import FLOAT_BYTES, RuntimeOperator
from arenite.runtime.operators.rows import AlongLastAxes, is_one_image

_MOST_SUMMED = 1 << 23
"""Elements of 8 bits whose sum fits 32, whatever they are."""


class ReduceFunction(StrEnum):
    """What a reduction computes."""

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
        """Return the input if all axes reduced have length 1."""
        source, result = operands.source, operands.result
        if source is None or result is None or source.dtype is not result.dtype:
            return ()
        return (0,) if source.num_elements == result.num_elements else ()

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
        """Return the number of axes from its own on."""
        return len(operands.source.shape) - self.axis if operands.source is not None else 0

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether its axis is the last one, and the rows are those of the result."""
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
