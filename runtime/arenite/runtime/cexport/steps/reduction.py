"""Operators that reduce many elements to one."""

import math
from dataclasses import dataclass

from arenite.planner.tensors import Tensor
from arenite.runtime.cexport.arithmetic import quantised_multiplier, scale_of, zero_of
from arenite.runtime.cexport.errors import NotWrittenError
from arenite.runtime.cexport.literals import number
from arenite.runtime.cexport.steps.registry import writes
from arenite.runtime.cexport.steps.writer import StepWriter
from arenite.runtime.operators.reduction import ArgReduce, Reduce, ReduceFunction

R = ReduceFunction

_LEAST_SHIFT = -31


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Axes that are reduced, side by side.

    Attributes:
        before: Elements of the axes before them.
        rows: Length of the first of them.
        columns: Elements of the others.
        after: Elements of the axes behind them.
    """

    before: int
    rows: int
    columns: int
    after: int

    @property
    def count(self) -> int:
        return self.rows * self.columns


def _stretch(source: Tensor, axes: tuple[int, ...]) -> _Stretch:
    long = [axis for axis in axes if source.shape[axis] != 1]
    if not long:
        return _Stretch(1, 1, 1, source.num_elements)
    first, last = long[0], long[-1]
    between = [axis for axis in range(first, last) if source.shape[axis] != 1]
    if any(axis not in long for axis in between):
        raise NotWrittenError("its axes do not lie side by side")
    return _Stretch(
        math.prod(source.shape[:first]),
        source.shape[first],
        math.prod(source.shape[first + 1 : last + 1]),
        math.prod(source.shape[last + 1 :]),
    )


@writes(Reduce)
def reduce(t: StepWriter) -> None:
    """Write a reduction along axes that lie side by side."""
    operator = t.operator
    assert isinstance(operator, Reduce)
    source = t.input()
    kind = t.types("int8", "float32")
    found = _stretch(source, operator.axes)
    if not source.size or operator.function not in (R.SUM, R.MEAN, R.MAXIMUM, R.MINIMUM):
        raise NotWrittenError(f"there is no {operator.function.value} of so many elements")
    size = source.dtype.bits // 8
    places = (
        t.rows_of(source, found.columns * found.after * size),
        t.rows_to(t.output(), found.after * size),
        0,
        found.before,
    )
    if kind == "int8":
        layer = _sum_of_bytes(t, operator.function, found)
        if t.sums:
            t.call("sum_by_rows_s8", layer, t.sums, *places[:2], 0, found.rows)
        else:
            t.call("sum_s8", layer, *places)
        return
    shape = found.rows, found.columns, found.after
    if operator.function not in (R.SUM, R.MEAN):
        t.call(f"{operator.function.value}_of_f32", *shape, *places)
        return
    scale = number(1.0 / found.count if operator.function is R.MEAN else 1.0)
    if t.sums:
        t.call("sum_by_rows_f32", *shape, scale, t.sums, *places[:2], 0, found.rows)
    else:
        t.call("sum_f32", *shape, scale, *places)


def _sum_of_bytes(t: StepWriter, function: ReduceFunction, found: _Stretch) -> str:
    """Return the layer of a sum, or of a mean as TensorFlow Lite rounds it."""
    if function not in (R.SUM, R.MEAN):
        raise NotWrittenError(f"there is no {function.value} of bytes")
    source, result = t.input(), t.output()
    factor, shift = quantised_multiplier(scale_of(source) / scale_of(result))
    if function is R.MEAN:
        # The factor is divided, with as many bits more as the divisor takes away.
        bits = min(found.count.bit_length() - 1, 32, shift - _LEAST_SHIFT)
        factor, shift = (factor << bits) // found.count, shift - bits
    return t.layer(
        "reduce_layer",
        rows=found.rows,
        columns=found.columns,
        depth=found.after,
        offset=-zero_of(source) * found.count,
        factor=factor,
        shift=shift,
        zero=zero_of(result),
    )


@writes(ArgReduce)
def arg_reduce(t: StepWriter) -> None:
    """Write the place of the largest or the smallest along an axis."""
    operator = t.operator
    assert isinstance(operator, ArgReduce)
    source, result = t.input(), t.output()
    kinds = {"int8": "s8", "float32": "f32"}
    widths = {"int32": 32, "int64": 64}
    if source.dtype.label not in kinds or result.dtype.label not in widths:
        raise NotWrittenError(f"it makes {result.dtype.label} of {source.dtype.label}")
    count, depth = source.shape[operator.axis], math.prod(source.shape[operator.axis + 1 :])
    before = math.prod(source.shape[: operator.axis])
    t.call(
        f"arg_{kinds[source.dtype.label]}_{widths[result.dtype.label]}",
        count,
        depth,
        -1 if operator.minimum else 1,
        int(operator.last),
        t.rows_of(source, count * depth * source.dtype.bits // 8),
        t.rows_to(result, depth * result.dtype.bits // 8),
        0,
        before,
    )
