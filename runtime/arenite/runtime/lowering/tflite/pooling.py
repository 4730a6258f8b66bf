"""Pools, reductions, softmax and normalisations."""

import math

from arenite.planner import DType
from arenite.runtime.lowering.errors import NotLoweredError, require_type
from arenite.runtime.lowering.layout import Shape
from arenite.runtime.lowering.tflite.translation import (
    TfliteTranslation,
    through_numbers,
    translates,
)
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Convert, Unary, UnaryFunction
from arenite.runtime.operators.normalisation import L2Norm, LocalResponseNorm, Softmax
from arenite.runtime.operators.reduction import (
    ArgReduce,
    CumulativeSum,
    Pool2D,
    PoolKind,
    Reduce,
    ReduceFunction,
)

R = ReduceFunction
REDUCTIONS = {
    "MEAN": R.MEAN, "REDUCE_MAX": R.MAXIMUM, "REDUCE_MIN": R.MINIMUM, "REDUCE_PROD": R.PRODUCT,
    "SUM": R.SUM,
}  # fmt: skip

_TRUTHS = {"REDUCE_ALL": R.MINIMUM, "REDUCE_ANY": R.MAXIMUM}


@translates("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(t: TfliteTranslation) -> None:
    value = t.value()
    window = t.pair("FilterHeight", "FilterWidth")
    strides = t.pair("StrideH", "StrideW")
    is_average = t.kind == "AVERAGE_POOL_2D"
    operator = Pool2D(
        kind=PoolKind.AVERAGE if is_average else PoolKind.MAXIMUM,
        window=window,
        strides=strides,
        padding=t.padding(value.shape[1:3], window, strides, (1, 1)),
    )
    t.finish(t.emit(operator, [value]))


@translates("L2_POOL_2D")
def l2_pool(t: TfliteTranslation) -> None:
    """Translate L2_POOL_2D: the root of the average of squares."""
    _check_float(t)
    value = t.value()
    window, strides = t.pair("FilterHeight", "FilterWidth"), t.pair("StrideH", "StrideW")
    padding = t.padding(value.shape[1:3], window, strides, (1, 1))
    average = Pool2D(kind=PoolKind.AVERAGE, window=window, strides=strides, padding=padding)
    for name, operator, shape in (
        ("squares", Unary(function=UnaryFunction.SQUARE), value.shape),
        ("averages", average, t.shape),
    ):
        value = t.builder.emit_one(operator, [value], f"{t.target}/{name}", shape)
    t.finish(t.emit(Unary(function=UnaryFunction.SQUARE_ROOT), [value]))


@translates(*_TRUTHS)
def truth_reduction(t: TfliteTranslation) -> None:
    """Translate REDUCE_ALL or REDUCE_ANY: the least of zeros and ones, or the largest."""
    value = t.value()
    rank = len(value.shape)
    axes = tuple(sorted({axis % rank for axis in t.integers(1)})) or tuple(range(rank))
    steps: tuple[tuple[str, RuntimeOperator, Shape], ...] = (
        ("integers", Convert(), value.shape),
        ("reduced", Reduce(function=_TRUTHS[t.kind], axes=axes), t.shape),
    )
    for name, operator, shape in steps:
        value = t.builder.emit_one(
            operator, [value], f"{t.target}/{name}", shape, dtype=DType.UINT8
        )
    t.finish(t.emit(Convert(), [value]))


@translates(*REDUCTIONS)
def reduction(t: TfliteTranslation) -> None:
    """Translate a reduction along constant axes."""
    value = t.value()
    rank = len(value.shape)
    axes = tuple(sorted({axis % rank for axis in t.integers(1)})) or tuple(range(rank))
    function = REDUCTIONS[t.kind]
    is_pool = t.builder.means_as_pools and value.dtype is not DType.INT16
    if is_pool and function is R.MEAN and rank == 4 and axes == (1, 2):
        operator = Pool2D.whole(PoolKind.AVERAGE, value.shape[1:3])
        shape = (value.shape[0], 1, 1, value.shape[3])
        t.finish(t.emit(operator, [value], shape=shape))
        return
    t.finish(t.emit(Reduce(function=function, axes=axes), [value]))


@translates("ARG_MAX", "ARG_MIN")
def arg_reduction(t: TfliteTranslation) -> None:
    value = t.value()
    (axis,) = t.integers(1)
    operator = ArgReduce(axis=axis % len(value.shape), minimum=t.kind == "ARG_MIN")
    t.finish(t.emit(operator, [value]))


@translates("CUMSUM")
def cumulative_sum(t: TfliteTranslation) -> None:
    value = t.value()
    (axis,) = t.integers(1)
    operator = CumulativeSum(
        axis=axis % len(value.shape),
        exclusive=bool(t.integer("Exclusive", 0)),
        reverse=bool(t.integer("Reverse", 0)),
    )
    t.finish(t.emit(operator, [value]))


@translates("SOFTMAX", "LOG_SOFTMAX", int16=True)
def softmax(t: TfliteTranslation) -> None:
    is_log = t.kind == "LOG_SOFTMAX"
    operator = Softmax(logarithm=is_log, beta=1.0 if is_log else t.number("Beta", 1.0))
    value = t.value()
    if value.dtype is t.dtype and not (is_log and value.dtype is DType.INT16):
        t.finish(t.emit(operator, [value]))
        return
    through_numbers(t, operator, [value])


@translates("L2_NORMALIZATION", int16=True)
def l2_normalisation(t: TfliteTranslation) -> None:
    """Translate L2_NORMALIZATION; integers are normalised as numbers."""
    through_numbers(t, L2Norm(epsilon=1e-6), [t.value()])


@translates("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalisation(t: TfliteTranslation) -> None:
    _check_float(t)
    size = 2 * t.integer("Radius", 0) + 1
    operator = LocalResponseNorm(
        size=size,
        alpha=t.number("Alpha", 0.0) * size,  # ONNX, and so the core, divides it by the size
        beta=t.number("Beta", 0.0),
        bias=t.number("Bias", 0.0),
    )
    t.finish(t.emit(operator, [t.value()]))


def _check_float(t: TfliteTranslation) -> None:
    require_type(t.dtype, DType.FLOAT32)
    if math.prod(t.shape) == 0:
        raise NotLoweredError(f"an empty output, {t.shape}, is unsupported")
