"""Operators that reduce many elements to one."""

import numpy as np

from arenite.planner.dtypes import DType
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Order, Shape, without_axes
from arenite.runtime.lowering.onnx.registry import translates
from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.operators.pooling import Pool2D, PoolKind
from arenite.runtime.operators.reduction import ArgReduce, CumulativeSum, Reduce, ReduceFunction

R = ReduceFunction
REDUCTIONS = {
    "ReduceL1": R.L1, "ReduceL2": R.L2, "ReduceLogSum": R.LOG_SUM,
    "ReduceLogSumExp": R.LOG_SUM_EXP, "ReduceMax": R.MAXIMUM, "ReduceMean": R.MEAN,
    "ReduceMin": R.MINIMUM, "ReduceProd": R.PRODUCT, "ReduceSum": R.SUM,
    "ReduceSumSquare": R.SUM_SQUARE,
}  # fmt: skip


@translates(*REDUCTIONS)
def reduction(t: Translation) -> None:
    """Translate a reduction along constant axes."""
    value = t.value()
    if value.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
        raise NotLoweredError(f"it computes in {value.dtype.label}")
    rank = len(value.shape)
    axes = t.integers("axes")
    given = t.optional_array(1)
    if given is not None:
        axes = tuple(int(axis) for axis in given.reshape(-1))
    if not axes and t.attribute("noop_with_empty_axes", 0):
        t.finish(value)
        return
    positive = tuple(sorted({axis % rank for axis in axes})) or tuple(range(rank))
    if not positive:
        raise NotLoweredError("it reduces a scalar")
    function = REDUCTIONS[t.kind]
    if function is R.MEAN and _is_image_mean(value, positive):
        whole = (value.shape[2], value.shape[3])
        shape = (*value.shape[:2], 1, 1)
        pool = Pool2D(kind=PoolKind.AVERAGE, window=whole, strides=whole)
        t.finish(t.emit(pool, [value], shape=shape, order=value.order))
        return
    stored = tuple(sorted(value.order.index(axis) for axis in positive))
    shape, order = _without(value, positive, keep=bool(t.attribute("keepdims", 1)))
    t.finish(t.emit(Reduce(function=function, axes=stored), [value], shape=shape, order=order))


@translates("ArgMax", "ArgMin")
def arg_reduction(t: Translation) -> None:
    """Translate ArgMax or ArgMin."""
    value = t.value()
    if value.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
        raise NotLoweredError(f"it compares {value.dtype.label}")
    axis = t.axis(0, len(value.shape))
    operator = ArgReduce(
        axis=value.order.index(axis),
        minimum=t.kind == "ArgMin",
        last=bool(t.attribute("select_last_index", 0)),
    )
    shape, order = _without(value, (axis,), keep=bool(t.attribute("keepdims", 1)))
    t.finish(t.emit(operator, [value], shape=shape, order=order))


@translates("CumSum")
def cumulative_sum(t: Translation) -> None:
    """Translate CumSum along a constant axis."""
    value = t.value()
    if value.dtype is not DType.FLOAT32:
        raise NotLoweredError(f"it computes in {value.dtype.label}")
    axis = int(np.asarray(t.array(1)).reshape(())) % len(value.shape)
    operator = CumulativeSum(
        axis=value.order.index(axis),
        exclusive=bool(t.attribute("exclusive", 0)),
        reverse=bool(t.attribute("reverse", 0)),
    )
    t.finish(t.emit(operator, [value], order=value.order))


def _is_image_mean(value: Value, axes: tuple[int, ...]) -> bool:
    return (
        value.dtype is DType.FLOAT32
        and len(value.shape) == 4
        and axes == (2, 3)
        and value.order == (0, 2, 3, 1)
    )


def _without(value: Value, axes: tuple[int, ...], *, keep: bool) -> tuple[Shape, Order]:
    if keep:
        shape = tuple(1 if axis in axes else n for axis, n in enumerate(value.shape))
        return shape, value.order
    shape = tuple(n for axis, n in enumerate(value.shape) if axis not in axes)
    return shape, without_axes(value.order, axes)
