"""Operators that reduce many elements to one."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from arenite.planner.operators.operator import Operands
from arenite.runtime.operators.base import RuntimeOperator


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgReduce(RuntimeOperator):
    """The index of the largest element along an axis, or of the smallest."""

    number: ClassVar[int] = 12

    axis: int
    minimum: bool = False
    last: bool = False


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
