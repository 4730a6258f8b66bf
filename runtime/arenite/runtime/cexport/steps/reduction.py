"""Pools, reductions and softmax: many elements become one."""

import math
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import DType, Tensor
from arenite.planner.sizes import depends
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import quantised_multiplier, scale_of, zero_of
from arenite.runtime.cexport.base.text import number
from arenite.runtime.cexport.steps import sixteen_bits, tables
from arenite.runtime.cexport.steps.elementwise import look_up
from arenite.runtime.cexport.steps.writer import StepWriter, writes
from arenite.runtime.operators.elementwise import Unary, UnaryFunction
from arenite.runtime.operators.normalisation import L2Norm, LayerNorm, Softmax
from arenite.runtime.operators.reduction import (
    ArgReduce,
    CumulativeSum,
    Pool2D,
    PoolKind,
    Reduce,
    ReduceFunction,
)

_SUFFIXES = {"int8": "s8", "int16": "s16", "float32": "f32"}


@writes(Pool2D)
def pool_2d(t: StepWriter) -> None:
    """Write a pool, one call a plane."""
    operator = t.operator
    assert isinstance(operator, Pool2D)
    source, result = t.input(), t.output()
    if source.dtype is not result.dtype:
        write = _sums_of_rows if source.dtype is DType.INT8 else _average_of_sums
        write(t, operator)
        return
    kind = t.types(*_SUFFIXES)
    if len(t.step.outputs) > 1:
        raise NotWrittenError("output Indices is unsupported")
    if operator.dilations != (1, 1) or operator.count_padding:
        raise NotWrittenError("dilated windows and count_include_pad=1 are unsupported")
    moves = kind != "float32" and source.quantisation != result.quantisation
    size, suffix = source.dtype.bits // 8, _SUFFIXES[kind]
    batch, height, width, depth = source.shape
    out_width = result.shape[2]
    geometry = {
        "height": height, "width": width, "depth": depth, "out_width": out_width,
        "kernel_y": operator.window[0], "kernel_x": operator.window[1],
        "stride_y": operator.strides[0], "stride_x": operator.strides[1],
        "top": operator.padding[0], "left": operator.padding[3],
    }  # fmt: skip
    if kind == "int8" and t.is_even and (moves or operator.kind is PoolKind.AVERAGE):
        low, high = t.clamp(operator.min, operator.max)
        ratio = float(np.float32(scale_of(source)) / np.float32(scale_of(result)))
        layer = t.layer(
            "pool_even_layer", **geometry, in_zero=zero_of(source), out_zero=zero_of(result),
            low=low, high=high, ratio=ratio,
        )  # fmt: skip
        moves, suffix = False, "even_s8"
    elif kind == "int16" and (moves or t.is_even):
        raise NotWrittenError("int16 of two scales, or rounded to even, is unsupported")
    elif kind != "float32":
        # Of another scale, the result is clamped by the table that follows.
        low, high = (-128, 127) if moves else t.clamp(operator.min, operator.max)
        lift = 128 if t.is_shifted else 0
        layer = t.layer("pool_layer", **geometry, lift=lift, low=low, high=high)
    else:
        layer = t.layer("pool_layer_f32", **geometry, low=operator.min, high=operator.max)
    if t.sums:
        if moves or operator.window[0] - operator.padding[0] < height:
            raise NotWrittenError("this average pool is unsupported in bands of rows")
        t.call(
            f"average_pool_by_rows_{suffix}", layer, t.sums,
            t.rows_of(source, width * depth * size), t.rows_to(result, out_width * depth * size),
            0, height,
        )  # fmt: skip
        return
    name = "average_pool" if operator.kind is PoolKind.AVERAGE else "max_pool"
    for plane in t.planes(batch):
        t.call(f"{name}_{suffix}", layer, *t.image_rows(plane))
    if moves:
        clamp = Unary(function=UnaryFunction.CLAMP, alpha=operator.min, beta=operator.max)
        table = tables.unary(clamp, source, result, t.file.rounding)
        look_up(t, table, source=result)


def _sums_of_rows(t: StepWriter, operator: Pool2D) -> None:
    """Write sums over groups of rows."""
    source, result = t.input(), t.output()
    count = math.prod(operator.window)
    geometry = result.shape[1], count, result.shape[3]
    t.call("partial_sums_s8", *geometry, t.address(source), t.address(result))


def _average_of_sums(t: StepWriter, operator: Pool2D) -> None:
    """Write an average of bytes of which there are sums, rounded as that of a pool."""
    source, result = t.input(), t.output()
    groups, depth, count = source.shape[1], source.shape[3], math.prod(operator.window)
    geometry = {"groups": groups, "depth": depth, "count": count}
    assert source.quantisation is not None
    of_bytes = replace(source.quantisation, zero_point=zero_of(source) * groups // count)
    moves = of_bytes != result.quantisation and not t.is_even
    # Of another scale, the result is clamped by the table that follows.
    low, high = (-128, 127) if moves else t.clamp(operator.min, operator.max)
    if t.is_even:
        ratio = float(np.float32(scale_of(source)) / np.float32(scale_of(result)))
        layer = t.layer(
            "average_even_layer", **geometry, in_zero=zero_of(source), out_zero=zero_of(result),
            low=low, high=high, ratio=ratio,
        )  # fmt: skip
    else:
        layer = t.layer("average_layer", **geometry, low=low, high=high)
    even = "even_" if t.is_even else ""
    t.call(f"average_sums_{even}s8", layer, t.address(source), t.address(result))
    if moves:
        clamp = Unary(function=UnaryFunction.CLAMP, alpha=operator.min, beta=operator.max)
        averages = replace(source, dtype=DType.INT8, quantisation=of_bytes)
        look_up(t, tables.unary(clamp, averages, result, t.file.rounding), source=result)


R = ReduceFunction

_LEAST_SHIFT = -31


@dataclass(frozen=True, slots=True)
class _ReducedAxes:
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


def _stretch(source: Tensor, axes: tuple[int, ...]) -> _ReducedAxes:
    long = [axis for axis in axes if source.shape[axis] != 1]
    if not long:
        return _ReducedAxes(1, 1, 1, source.num_elements)
    first, last = long[0], long[-1]
    between = [axis for axis in range(first, last) if source.shape[axis] != 1]
    if any(axis not in long for axis in between):
        raise NotWrittenError(f"axes={list(axes)} is unsupported, supported: adjacent axes")
    return _ReducedAxes(
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
    kind = t.types(*_SUFFIXES)
    found = _stretch(source, operator.axes)
    if not source.size or operator.function not in (R.SUM, R.MEAN, R.MAXIMUM, R.MINIMUM):
        raise NotWrittenError(f"{operator.function.value} of shape {source.shape} is unsupported")
    size = source.dtype.bits // 8
    places = (
        t.rows_of(source, found.columns * found.after * size),
        t.rows_to(t.output(), found.after * size),
        0,
        found.before,
    )
    shape = found.rows, found.columns, found.after
    if operator.function not in (R.SUM, R.MEAN):
        if source.quantisation != t.output().quantisation:
            raise NotWrittenError(f"{operator.function.value} of another scale is unsupported")
        t.call(f"{operator.function.value}_of_{_SUFFIXES[kind]}", *shape, *places)
        return
    if kind != "float32":
        layer = _sum_of_integers(t, operator.function, found)
        suffix = "even_s8" if t.is_even else _SUFFIXES[kind]
        if t.sums:
            t.call(f"sum_by_rows_{suffix}", layer, t.sums, *places[:2], 0, found.rows)
        else:
            t.call(f"sum_{suffix}", layer, *places)
        return
    count, factors = found.count, [number(1.0), number(1.0)]
    if operator.function is R.MEAN:
        # As our runtime rounds: means of images are pools, which multiply.
        if len(source.shape) > 2 and operator.axes == tuple(range(1, len(source.shape) - 1)):
            factors[0] = f"(float)(1.0 / {count})" if t.is_ranged else number(1.0 / count)
        else:
            factors[1] = f"(float){count}" if t.is_ranged else number(float(count))
    if t.sums:
        t.call("sum_by_rows_f32", *shape, *factors, t.sums, *places[:2], 0, found.rows)
    else:
        t.call("sum_f32", *shape, *factors, *places)


def _sum_of_integers(t: StepWriter, function: ReduceFunction, found: _ReducedAxes) -> str:
    """Return the layer of a sum, or of a mean as TensorFlow Lite rounds it."""
    source, result = t.input(), t.output()
    if source.dtype is DType.INT16:
        t.refuse_even("int16")
    sizes = {
        "rows": found.rows, "columns": found.columns, "depth": found.after,
        "offset": -zero_of(source) * found.count, "zero": zero_of(result),
    }  # fmt: skip
    if t.is_even:
        count = found.count if function is R.MEAN else 1
        scales = {"scale": scale_of(source), "out_scale": scale_of(result)}
        number_of = f"(float){count}" if t.is_ranged else float(count)
        return t.layer("reduce_even_layer", **sizes, **scales, count=number_of)
    factor, shift = quantised_multiplier(scale_of(source) / scale_of(result))
    if function is R.MEAN:
        if depends(found.count):
            raise NotWrittenError("a mean of integers over a range of sizes is unsupported")
        # The factor is divided, with as many bits more as the divisor takes away.
        bits = min(found.count.bit_length() - 1, 32, shift - _LEAST_SHIFT)
        factor, shift = (factor << bits) // found.count, shift - bits
    return t.layer("reduce_layer", **sizes, factor=factor, shift=shift)


@writes(ArgReduce)
def arg_reduce(t: StepWriter) -> None:
    """Write the place of the largest or the smallest along an axis."""
    operator = t.operator
    assert isinstance(operator, ArgReduce)
    source, result = t.input(), t.output()
    kinds = {"int8": "s8", "float32": "f32"}
    widths = {"int32": 32, "int64": 64}
    if source.dtype.label not in kinds or result.dtype.label not in widths:
        raise NotWrittenError(
            f"indices of {result.dtype.label} for an input of {source.dtype.label} are unsupported"
        )
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


@writes(CumulativeSum)
def cumulative_sum(t: StepWriter) -> None:
    """Write running sums along an axis."""
    operator, source = t.operator, t.input()
    assert isinstance(operator, CumulativeSum)
    kinds = {"float32": "f32", "int32": "s32", "int64": "s64"}
    axis = operator.axis
    t.call(
        f"cumulative_{kinds[t.types(*kinds)]}",
        math.prod(source.shape[:axis]),
        source.shape[axis],
        math.prod(source.shape[axis + 1 :]),
        int(operator.exclusive),
        int(operator.reverse),
        t.address(source),
        t.address(t.output()),
    )


def check_256ths(result: Tensor) -> None:
    """Check that a result of bytes is of 256ths, from 0 to 1.

    Raises:
        NotWrittenError: It is not.
    """
    if (scale_of(result), zero_of(result)) != (1 / 256, -128):
        raise NotWrittenError(
            f"output scale {scale_of(result):g} and zero point {zero_of(result)} are unsupported, "
            "supported: 1/256 and -128"
        )


@writes(Softmax)
def softmax(t: StepWriter) -> None:
    """Write a softmax over the last axis: of bytes by a table of exponentials."""
    operator = t.operator
    assert isinstance(operator, Softmax)
    source, result = t.input(), t.output()
    if operator.logarithm:
        raise NotWrittenError("LogSoftmax is unsupported")
    if t.types(*_SUFFIXES) == "int16":
        sixteen_bits.softmax(t, operator)
        return
    width = source.shape[-1]
    places = t.row_pairs((source.num_elements // width, width))
    if t.types("int8", "float32") == "float32":
        t.call("softmax_f32", width, number(float(operator.beta)), *places)
        return
    t.call(
        f"softmax_{'even_' if t.is_even else ''}s8",
        byte_softmax(t, source, result, operator.beta),
        *places,
    )


def byte_softmax(t: StepWriter, source: Tensor, result: Tensor, beta: float) -> str:
    """Return the layer of a softmax of bytes along the last axis."""
    width = source.shape[-1]
    if t.is_even:
        table = tables.float_exponentials(scale_of(source), beta)
        return t.layer(
            "softmax_even_layer", width=width, out_zero=zero_of(result),
            out_scale=scale_of(result), exponentials=t.constant(table, "exponentials"),
        )  # fmt: skip
    check_256ths(result)
    table = tables.exponentials(scale_of(source), beta)
    return t.layer(
        "softmax_layer", width=width, least=len(table) - 1,
        exponentials=t.constant(table, "exponentials"),
    )  # fmt: skip


@writes(L2Norm)
def l2_norm(t: StepWriter) -> None:
    """Write a division of floats by the norm of each row."""
    operator = t.operator
    assert isinstance(operator, L2Norm)
    t.types("float32")
    source = t.input()
    width = source.shape[-1]
    t.call(
        "l2_norm_f32", width, number(float(operator.epsilon)),
        *t.row_pairs((source.num_elements // width, width)),
    )  # fmt: skip


@writes(LayerNorm)
def layer_norm(t: StepWriter) -> None:
    """Write a normalisation of floats over the last axes."""
    operator = t.operator
    assert isinstance(operator, LayerNorm)
    t.types("float32")
    source = t.input()
    width = math.prod(source.shape[-operator.num_axes :])
    factors, terms = (
        t.constant(t.array(position), hint) if t.has(position) else "NULL"
        for position, hint in ((1, "factors"), (2, "terms"))
    )
    t.call(
        "layer_norm_f32", width, number(float(operator.epsilon)), int(operator.centres), factors,
        terms, *t.row_pairs((source.num_elements // width, width)),
    )  # fmt: skip
