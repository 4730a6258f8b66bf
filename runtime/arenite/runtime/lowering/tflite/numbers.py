"""Operators that our core computes in numbers, around integers that stand for numbers."""

from collections.abc import Sequence

from arenite.planner.dtypes import DType
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Convert


def as_numbers(t: Translation, value: Value) -> Value:
    """Return the value as 32-bit floats, with a step that converts it if needed."""
    if value.dtype is DType.FLOAT32:
        return value
    (result,) = t.builder.emit(
        Convert(),
        [value],
        [(f"{t.target}/numbers", value.shape, value.order)],
        dtype=DType.FLOAT32,
    )
    return result


def through_numbers(t: Translation, operator: RuntimeOperator, values: Sequence[Value]) -> None:
    """Make the first output by an operator of numbers, whatever the types of its operands."""
    numbers: list[Value | None] = [as_numbers(t, value) for value in values]
    if t.dtype is DType.FLOAT32:
        t.finish(t.emit(operator, numbers))
        return
    (made,) = t.builder.emit(
        operator,
        numbers,
        [(f"{t.target}/made", t.shape, as_written(len(t.shape)))],
        dtype=DType.FLOAT32,
    )
    t.finish(t.emit(Convert(), [made]))
