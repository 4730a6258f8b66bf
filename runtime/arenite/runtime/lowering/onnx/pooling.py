"""Pools over windows and over whole images."""

import math

from arenite.planner.dtypes import DType
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import channels_last
from arenite.runtime.lowering.onnx.registry import translates
from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.lowering.onnx.windows import pair, window
from arenite.runtime.lowering.translators import Layout
from arenite.runtime.operators.pooling import Pool2D, PoolKind
from arenite.runtime.operators.reduction import Reduce, ReduceFunction


@translates("MaxPool", layout=Layout.CHANNELS_LAST)
def max_pool(t: Translation) -> None:
    """Translate MaxPool, with indices or without."""
    if any(t.step.outputs[1:]) and t.attribute("storage_order", 0):
        raise NotLoweredError("its indices count columns first")
    _pool(t, PoolKind.MAXIMUM)


@translates("AveragePool", layout=Layout.CHANNELS_LAST)
def average_pool(t: Translation) -> None:
    """Translate AveragePool."""
    _pool(t, PoolKind.AVERAGE)


@translates("GlobalAveragePool", layout=Layout.CHANNELS_LAST)
def global_average_pool(t: Translation) -> None:
    """Translate GlobalAveragePool."""
    _global(t, ReduceFunction.MEAN)


@translates("GlobalMaxPool", layout=Layout.CHANNELS_LAST)
def global_max_pool(t: Translation) -> None:
    """Translate GlobalMaxPool."""
    _global(t, ReduceFunction.MAXIMUM)


def _global(t: Translation, function: ReduceFunction) -> None:
    _check_type(t)
    value = t.value()
    rank = len(value.shape)
    value = t.builder.in_order(value, channels_last(rank), t.target)
    axes = tuple(range(1, rank - 1))
    if function is ReduceFunction.MEAN and rank == 4:
        whole = (value.shape[2], value.shape[3])
        pool = Pool2D(kind=PoolKind.AVERAGE, window=whole, strides=whole)
        t.finish(t.emit(pool, [value], order=channels_last(rank)))
        return
    t.finish(t.emit(Reduce(function=function, axes=axes), [value], order=channels_last(rank)))


def _pool(t: Translation, kind: PoolKind) -> None:
    _check_type(t)
    value = t.image()
    kernel = pair(t.integers("kernel_shape"))
    is_ceil = bool(t.attribute("ceil_mode", 0))
    opening = window(t, value.shape, kernel, ceil=is_ceil)
    counts_padding = kind is PoolKind.AVERAGE and bool(t.attribute("count_include_pad", 0))
    height_width = (1, *t.shape[2:]) if len(t.shape) == 3 else t.shape[2:]
    if opening.output != height_width:
        raise NotLoweredError(f"its windows make {opening.output}, not {height_width}")
    has_padding = max(opening.padding) > 0
    if counts_padding and is_ceil and has_padding:
        raise NotLoweredError("it counts padding beyond the image and rounds up")
    operator = Pool2D(
        kind=kind,
        window=kernel,
        strides=opening.strides,
        dilations=opening.dilations,
        padding=opening.padding,
        count_padding=counts_padding and has_padding,
    )
    shape = (*value.shape[:2], *opening.output)
    names = [name for name in t.step.outputs if name]
    made = t.builder.emit(
        operator,
        [value],
        [(name, shape, channels_last(4)) for name in names],
        dtype=[DType.FLOAT32, DType.INT64][: len(names)],
        step=t.step.name,
    )
    for name, result in zip(names, made, strict=True):
        t.builder.bind(name, t.builder.reshaped(result, t.shape, name))


def _check_type(t: Translation) -> None:
    if t.dtype is not DType.FLOAT32 or math.prod(t.shape) == 0:
        raise NotLoweredError(f"it computes in {t.dtype.label}")
