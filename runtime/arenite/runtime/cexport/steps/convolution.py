"""Convolutions and products of matrices."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.operators import Operands
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import quantised_multiplier, scale_of, zero_of
from arenite.runtime.cexport.steps import sixteen_bits
from arenite.runtime.cexport.steps.elementwise import broadcast_axes
from arenite.runtime.cexport.steps.hybrid import multiplies_in_turn, scales_of
from arenite.runtime.cexport.steps.packing import blocks, fits_pairs, in_blocks, in_pairs
from arenite.runtime.cexport.steps.quick_convolution import Quantities, quick
from arenite.runtime.cexport.steps.writer import Plane, StepWriter, writes
from arenite.runtime.operators.base import Clamped, Pair, Sides
from arenite.runtime.operators.convolution import (
    Conv2D,
    Convolution,
    DepthwiseConv2D,
    TransposedConv2D,
)
from arenite.runtime.operators.linear import FullyConnected, MatMul


@writes(Conv2D)
def conv_2d(t: StepWriter) -> None:
    """Write a convolution, one call a plane."""
    operator = t.operator
    assert isinstance(operator, Conv2D)
    weights = t.array(1)
    if weights.ndim != 4 or weights.shape[0] % operator.groups:
        raise NotWrittenError(f"filter {weights.shape} does not fit {operator.groups} groups")
    is_pointwise = (
        weights.shape[1:3] == (1, 1) and operator.groups == 1 and not any(operator.padding)
        and not _is_hybrid(t)
    )  # fmt: skip
    kernel = "pointwise" if is_pointwise else "conv"
    _write_spatial(t, kernel, weights, weights.shape[1:3], operator, operator.groups)


@writes(DepthwiseConv2D)
def depthwise_conv_2d(t: StepWriter) -> None:
    """Write a depthwise convolution, one call a plane."""
    operator = t.operator
    assert isinstance(operator, DepthwiseConv2D)
    weights = t.array(1)
    if t.input().shape[-1] == 1:
        # Of one channel every output reads the same: a convolution, whose kernel is quicker.
        t = t.as_step(
            Conv2D(
                strides=operator.strides, dilations=operator.dilations,
                padding=operator.padding, min=operator.min, max=operator.max,
            )
        )  # fmt: skip
        weights = np.moveaxis(weights, 3, 0).reshape(-1, *weights.shape[1:3], 1)
        _write_spatial(t, "conv", weights, weights.shape[1:3], operator, 1)
        return
    _write_spatial(t, "depthwise", weights, weights.shape[1:3], operator, 1)


@writes(FullyConnected)
def fully_connected(t: StepWriter) -> None:
    """Write a product with a matrix: a window of one pixel over rows of one."""
    operator = t.operator
    assert isinstance(operator, FullyConnected)
    source, result, (outputs, depth) = t.input(), t.output(), t.input(1).shape
    rows = source.num_elements // depth
    if not t.layout.is_weights(t.input(1).name) and t.types("int8", "float32") == "int8":
        bias = (
            t.constant(per_output(t.array(2), np.int32, outputs), "bias") if t.has(2) else "NULL"
        )
        layer_of_two = {
            "batches": 1, "matrices": 1, "rows": rows, "columns": outputs, "depth": depth,
            "batch_a": 0, "matrix_a": 0, "batch_b": 0, "matrix_b": 0, "row_a": depth, "step_a": 1,
            "column_b": depth, "step_b": 1,
        }  # fmt: skip
        _call_matmul(t, "int8", layer_of_two, operator.min, operator.max, bias)
        return
    weights = t.array(1)
    size = source.dtype.bits // 8
    kernel, layer = _layer(
        t, "conv" if _is_hybrid(t) else "pointwise", weights.reshape(outputs, 1, 1, depth),
        operator, height=rows, width=1, depth=depth, out_width=1,
        out_depth=outputs,
    )  # fmt: skip
    t.call(
        kernel, layer, *_beside_layer(t, 0),
        t.rows_of(source, depth * size),
        t.rows_to(result, outputs * result.dtype.bits // 8), 0, rows,
    )  # fmt: skip


class UnbufferedTransposedConv2D(TransposedConv2D):
    """A TransposedConv2D whose kernel needs no working memory."""

    __slots__ = ()

    def scratch(self, operands: Operands) -> int:
        """Return 0: each product is added to its sum."""
        return 0


@writes(UnbufferedTransposedConv2D)
def transposed_conv_2d(t: StepWriter) -> None:
    """Write a transposed convolution, one call a plane."""
    operator = t.operator
    assert isinstance(operator, TransposedConv2D)
    if operator.by_inputs:
        raise NotWrittenError("a filter computed in the run is unsupported")
    weights = t.array(1)
    _write_spatial(t, "transposed", weights, weights.shape[1:3], operator, operator.groups)


class UnpackedMatMul(MatMul):
    """A MatMul whose kernel needs no working memory."""

    __slots__ = ()

    def scratch(self, operands: Operands) -> int:
        """Return 0: the kernel reads the second matrix where it lies."""
        return 0


@writes(UnpackedMatMul)
def matmul(t: StepWriter) -> None:
    """Write the products of two batches of matrices."""
    operator = t.operator
    assert isinstance(operator, MatMul)
    one, other, result = t.input(0), t.input(1), t.output()
    kind = t.types("int8", "float32")
    if one.dtype != other.dtype:
        raise NotWrittenError(
            f"operands of {one.dtype.label} and {other.dtype.label} are unsupported"
        )
    *outer, batches, matrices = broadcast_axes(
        [one.shape[:-2], other.shape[:-2]], result.shape[:-2]
    )
    (rows, columns), depth = result.shape[-2:], one.shape[-2 if operator.transpose_a else -1]
    elements = (rows * depth, columns * depth, rows * columns)
    layer = {
        "batches": batches[0], "matrices": matrices[0], "rows": rows, "columns": columns,
        "depth": depth, "batch_a": batches[1][0] * elements[0],
        "matrix_a": matrices[1][0] * elements[0], "batch_b": batches[1][1] * elements[1],
        "matrix_b": matrices[1][1] * elements[1],
        "row_a": 1 if operator.transpose_a else depth,
        "step_a": rows if operator.transpose_a else 1,
        "column_b": depth if operator.transpose_b else 1,
        "step_b": 1 if operator.transpose_b else columns,
    }  # fmt: skip
    shifts = t.loops(outer, [each * one.dtype.bits // 8 for each in elements])
    _call_matmul(t, kind, layer, -math.inf, math.inf, "NULL", shifts)


def _call_matmul(
    t: StepWriter, kind: str, layer: dict[str, int], low: float, high: float, bias: str,
    shifts: Sequence[str] = ("", "", ""),
) -> None:  # fmt: skip
    one, other, result = t.input(0), t.input(1), t.output()
    suffix = {"float32": "f32", "int8": "s8"}[kind]
    if kind == "float32":
        name = t.layer("matmul_layer_f32", **layer)
    else:
        t.refuse_even("int8")
        ratio = scale_of(one) * scale_of(other) / scale_of(result)
        factor, shift = quantised_multiplier(ratio)
        least, most = t.clamp(low, high)
        name = t.layer(
            "matmul_layer", **layer, offset_a=-zero_of(one), offset_b=-zero_of(other),
            factor=factor, shift=shift, out_zero=zero_of(result), low=least, high=most, bias=bias,
        )  # fmt: skip
    places = (
        t.address(each) + shift for each, shift in zip((one, other, result), shifts, strict=True)
    )
    t.call(f"matmul_{suffix}", name, *places)


def _beside_layer(t: StepWriter, plane: Plane) -> list[str]:
    """Return what a kernel is handed beside the layer: scales of the source, or sums so far."""
    if _is_hybrid(t):
        return [scales_of(t, plane)]
    if not _adds_up(t):
        return []
    if not t.has(Convolution.ADDEND):
        return ["NULL"]
    addend = t.input(Convolution.ADDEND)
    return [t.address(addend, plane, addend.size // addend.shape[0])]


def _adds_up(t: StepWriter) -> bool:
    """Tell whether products of bytes become sums of 32 bits, or are added to such."""
    is_summed = t.has(Convolution.ADDEND) and t.input(Convolution.ADDEND).dtype is DType.INT32
    return t.input().dtype is DType.INT8 and (is_summed or t.output().dtype is DType.INT32)


def _is_hybrid(t: StepWriter) -> bool:
    """Tell whether what is multiplied are bytes, and the result is floats."""
    return (t.input().dtype, t.output().dtype) == (DType.INT8, DType.FLOAT32)


def _write_spatial(
    t: StepWriter,
    kernel: str,
    filter_: Array,
    window: tuple[int, ...],
    operator: Conv2D | DepthwiseConv2D | TransposedConv2D,
    groups: int,
) -> None:
    source, result = t.input(), t.output()
    if len(source.shape) != 4 or len(result.shape) != 4:
        raise NotWrittenError(f"input rank {len(source.shape)} is unsupported, supported: 4")
    if t.has(Convolution.ADDEND) and not _adds_up(t):
        raise NotWrittenError("a fused addition is unsupported")
    batch, height, width, depth = source.shape
    out_width, out_depth = result.shape[2:]
    kernel, layer = _layer(
        t, kernel, filter_, operator, height=height, width=width, depth=depth, out_width=out_width,
        out_depth=out_depth, groups=groups, window=(window[0], window[1]),
        strides=operator.strides, dilations=operator.dilations, padding=operator.padding,
    )  # fmt: skip
    for plane in t.planes(batch):
        t.call(kernel, layer, *_beside_layer(t, plane), *t.image_rows(plane))


def _layer(
    t: StepWriter,
    kernel: str,
    filter_: Array,
    operator: Clamped,
    *,
    height: int,
    width: int,
    depth: int,
    out_width: int,
    out_depth: int,
    groups: int = 1,
    window: Pair = (1, 1),
    strides: Pair = (1, 1),
    dilations: Pair = (1, 1),
    padding: Sides = (0, 0, 0, 0),
) -> tuple[str, str]:
    """Return the name of a kernel for its types, and the address of a layer.

    Args:
        t: The step.
        kernel: Name of the kernel, without types.
        filter_: outputs, rows, columns, inputs; of depthwise ones rows, columns, outputs.
        operator: States the bounds of the result.
    """
    geometry = {
        "height": height, "width": width, "depth": depth, "out_width": out_width,
        "out_depth": out_depth, "groups": groups, "kernel_y": window[0], "kernel_x": window[1],
        "stride_y": strides[0], "stride_x": strides[1], "dilation_y": dilations[0],
        "dilation_x": dilations[1], "top": padding[0], "left": padding[3],
    }  # fmt: skip
    if _adds_up(t):
        if kernel != "pointwise" or strides != (1, 1):
            raise NotWrittenError("sums of 32 bits are unsupported for windows and strides")
        return _layer_of_sums(t, geometry, filter_, operator)
    is_blocked = kernel not in ("depthwise", "transposed")
    kind = "" if _is_hybrid(t) else t.types("int8", "int16", "float32")
    if kind == "int16":
        name = "conv" if is_blocked else kernel
        return sixteen_bits.conv_layer(t, name, geometry, filter_, operator)
    if kind == "int8":
        return _layer_s8(t, kernel, geometry, filter_, operator, is_blocked=is_blocked)
    packed = blocks(filter_, groups) if is_blocked else filter_
    if _is_hybrid(t):
        layer = _hybrid_layer(t, geometry, packed, operator, is_blocked=is_blocked)
        return f"{kernel}_hybrid", layer
    bias = per_output(t.array(2) if t.has(2) else None, np.float32, out_depth)
    suffix, (stored,) = t.weights(packed)
    return f"{kernel}_{suffix}", t.layer(
        f"conv_layer_{suffix}",
        **geometry,
        low=operator.min,
        high=operator.max,
        filter=t.constant(stored, "weights"),
        bias=t.constant(in_blocks(bias, groups) if is_blocked else bias, "bias"),
    )


def _layer_s8(
    t: StepWriter, kernel: str, geometry: dict[str, int], filter_: Array, operator: Clamped, *,
    is_blocked: bool,
) -> tuple[str, str]:  # fmt: skip
    source, result = t.input(), t.output()
    stated = t.input(1).quantisation
    if stated is None or filter_.dtype not in (np.int8, np.uint8):
        raise NotWrittenError("a filter without 8-bit quantisation is unsupported")
    filter_zero = stated.zero_point
    if filter_.dtype == np.uint8:
        filter_, filter_zero = (filter_ ^ np.uint8(0x80)).view(np.int8), filter_zero - 128
    factors, shifts = multipliers(t)
    bias = per_output(t.array(2) if t.has(2) else None, np.int32, geometry["out_depth"])
    of_whole = _with_offsets(bias, filter_, filter_zero, zero_of(source), is_first=is_blocked)
    low, high = t.clamp(operator.min, operator.max)
    handed = Quantities(
        filter_, of_whole, factors, shifts, zero_of(result), low, high, t.file.rounding
    )
    is_quick = t.file.is_quick and not filter_zero
    found = quick(kernel, geometry, handed) if is_quick else None
    if found is not None:
        kernel, handed = found
    else:
        if filter_zero:
            t.need("FILTER_ZERO_POINTS")
        if kernel in ("conv", "transposed"):
            handed = replace(handed, bias=bias)
        if is_blocked:
            handed = _blocked(handed, geometry["groups"])
    orders_of_weights, orders_of_bias, orders_of_shifts = handed.orders
    return f"{kernel}_s8", t.layer(
        "conv_layer",
        **geometry,
        in_offset=-zero_of(source),
        filter_offset=-filter_zero,
        out_zero=handed.zero,
        low=low,
        high=high,
        factor_step=int(len(factors) > 1),
        filter=t.filter(handed.weights, orders_of_weights),
        bias=t.constant(handed.bias, "bias", orders_of_bias),
        factors=t.constant(handed.factors, "factors") if handed.factors.size else "NULL",
        shifts="NULL" if t.is_even else t.constant(handed.shifts, "shifts", orders_of_shifts),
    )


def _layer_of_sums(
    t: StepWriter, geometry: dict[str, int], filter_: Array, operator: Clamped
) -> tuple[str, str]:
    stated, result = t.input(1).quantisation, t.output()
    if stated is None or stated.zero_point or filter_.dtype != np.int8:
        raise NotWrittenError("sums of 32 bits need weights of bytes without a zero point")
    bias = per_output(t.array(2) if t.has(2) else None, np.int32, geometry["out_depth"])
    zero = zero_of(t.input())
    scaling: dict[str, int | str] = {
        "out_zero": 0, "low": 0, "high": 0, "factor_step": 0, "factors": "NULL", "shifts": "NULL",
    }  # fmt: skip
    if result.dtype is DType.INT8:
        factors, shifts = multipliers(t)
        low, high = t.clamp(operator.min, operator.max)
        scaling = {
            "out_zero": zero_of(result), "low": low, "high": high,
            "factor_step": int(len(factors) > 1), "factors": t.constant(factors, "factors"),
            "shifts": "NULL" if t.is_even else t.constant(shifts, "shifts"),
        }  # fmt: skip
    is_quick = t.file.is_quick and fits_pairs(filter_)
    return f"pointwise_sums{'_pairs' if is_quick else ''}_s8", t.layer(
        "conv_layer",
        **geometry,
        **scaling,
        in_offset=-zero,
        filter_offset=0,
        filter=t.filter(*(in_pairs(filter_) if is_quick else (blocks(filter_, 1),))),
        bias=t.constant(_with_offsets(bias, filter_, 0, zero, is_first=True), "bias"),
    )


def _blocked(given: Quantities, groups: int) -> Quantities:
    """Return what the general kernels are handed: all in blocks of outputs."""
    bias, weights = in_blocks(given.bias, groups), blocks(given.weights, groups)
    if len(given.factors) == 1:
        return replace(given, bias=bias, weights=weights)
    factors, shifts = in_blocks(given.factors, groups), in_blocks(given.shifts, groups)
    return replace(given, bias=bias, weights=weights, factors=factors, shifts=shifts)


def _hybrid_layer(
    t: StepWriter, geometry: dict[str, int], filter_: Array, operator: Clamped, *, is_blocked: bool
) -> str:
    stated = t.input(1).quantisation
    assert stated is not None
    scales = np.array(stated.scales, np.float32)
    bias = per_output(t.array(2) if t.has(2) else None, np.float32, geometry["out_depth"])
    if is_blocked:
        bias = in_blocks(bias, geometry["groups"])
        scales = scales if len(scales) == 1 else in_blocks(scales, geometry["groups"])
    return t.layer(
        "conv_layer_hybrid",
        **geometry,
        row_step=2 if isinstance(operator, FullyConnected) else 0,
        scale_step=int(len(scales) > 1),
        is_filter_first=int(multiplies_in_turn(operator, t.input(1))),
        low=operator.min,
        high=operator.max,
        filter=t.constant(filter_, "weights"),
        scales=t.constant(scales, "scales"),
        bias=t.constant(bias, "bias"),
    )


def multipliers(t: StepWriter) -> tuple[Array, Array]:
    """Return factors and shifts that turn sums into results: one, or one an output.

    Factors are floats, and shifts 0, where halves are rounded to even.

    Raises:
        NotWrittenError: The filter is not of quantised bytes.
    """
    stated = t.input(1).quantisation
    if stated is None:
        raise NotWrittenError("a filter without 8-bit quantisation is unsupported")
    ratio = scale_of(t.input()), scale_of(t.output())
    if t.is_even:
        ratios = np.float32(ratio[0]) * np.array(stated.scales, np.float32) / np.float32(ratio[1])
        return ratios, np.zeros(len(ratios), np.int8)
    products = [ratio[0] * float(np.float32(each)) for each in stated.scales]
    if t.is_shifted:
        # LiteRT multiplies the scales of unsigned bytes as 32-bit floats.
        products = [float(np.float32(each)) for each in products]
    pairs = [quantised_multiplier(each / ratio[1]) for each in products]
    factors = np.array([factor for factor, _ in pairs], np.int32)
    return factors, np.array([shift for _, shift in pairs], np.int8)


def per_output(array: Array | None, dtype: type[np.generic], outputs: int) -> Array:
    """Return a value an output: zeros where there is no array.

    Raises:
        NotWrittenError: The array has another length or type.
    """
    if array is None:
        return np.zeros(outputs, dtype)
    if array.size != outputs or array.dtype != dtype:
        raise NotWrittenError(
            f"bias of {array.size} {array.dtype} elements is unsupported, "
            f"supported: {outputs} of {np.dtype(dtype)}"
        )
    return array.reshape(-1)


def _with_offsets(
    bias: Array, filter_: Array, filter_zero: int, zero: int, *, is_first: bool
) -> Array:
    """Return the bias with what the source's zero point adds to the sum of a whole window.

    Args:
        bias: One an output.
        filter_: Of bytes, not packed.
        filter_zero: Stands for 0 in the filter.
        zero: Stands for 0 in the source.
        is_first: Whether the filter's outputs are its first axis, not its last.
    """
    numbers = filter_.astype(np.int64) - filter_zero
    by_output = numbers.reshape(bias.size, -1).T if is_first else numbers.reshape(-1, bias.size)
    # The kernels' sums are of 32 bits and wrap round; so is this.
    wrapped: Array = (bias - zero * by_output.sum(axis=0)).astype(np.uint32).view(np.int32)
    return wrapped
