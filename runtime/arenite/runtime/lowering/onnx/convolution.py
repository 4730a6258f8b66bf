"""Conv, ConvTranspose, ONNX Runtime's FusedConv, and pools."""

import math
from dataclasses import replace

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.operators import AutoPad, Window
from arenite.planner.sizes import largest, same
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Order, Shape, StoredValue, as_written, channels_last
from arenite.runtime.lowering.onnx.elementwise import apply_activation
from arenite.runtime.lowering.onnx.translation import (
    OnnxTranslation,
    Opening,
    attributes_of,
    auto_pad,
    pair,
    translates,
    window,
)
from arenite.runtime.lowering.translation import InputLayout
from arenite.runtime.operators.base import PANEL, Pair, Sides
from arenite.runtime.operators.convolution import (
    Conv2D,
    DepthwiseConv2D,
    PackFilter,
    TransposedConv2D,
)
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.operators.reduction import Pool2D, PoolKind, Reduce, ReduceFunction


@translates("Conv", layout=InputLayout.CHANNELS_LAST)
def conv(t: OnnxTranslation) -> None:
    """Translate a convolution over one or two axes."""
    t.finish(_conv(t, t.target))


@translates("com.microsoft.FusedConv", layout=InputLayout.CHANNELS_LAST)
def fused_conv(t: OnnxTranslation) -> None:
    """Translate a convolution that is followed by a sum and an activation."""
    name = t.attributes.get("activation", "")
    has_sum = t.has(3)
    value = _conv(t, f"{t.target}/conv" if name or has_sum else t.target)
    if has_sum:
        other = t.builder.in_order(t.value(3), value.order, t.target)
        value = t.emit(
            Binary(function=BinaryFunction.ADD),
            [value, other],
            order=value.order,
            name=f"{t.target}/sum" if name else t.target,
        )
    if name:
        value = apply_activation(t, value, str(name), t.attributes)
    t.finish(value)


def _conv(t: OnnxTranslation, name: str) -> StoredValue:
    require_type(t.dtype, DType.FLOAT32)
    weights = _image_filter(t)
    source, pads = _without_pad(t)
    groups = t.attribute("group", 1)
    num_outputs, _, *kernel = weights.shape
    opening = window(t, source.shape, (kernel[0], kernel[1]), pads)
    bias = t.value(2) if t.has(2) else None
    operator, order = convolution_of(opening, groups, source.shape[1])
    if weights.array is not None:
        stored = t.builder.constant(weights.array.transpose(order), t.source(1))
    elif isinstance(operator, DepthwiseConv2D):
        stored = t.builder.in_order(weights, order, name)
    else:
        stored = _packed(t, weights, groups, name)
    shape = (source.shape[0], num_outputs, *opening.output)
    return t.emit(
        operator, [source, stored, bias],
        shape=shape, order=channels_last(4), name=name,
    )  # fmt: skip


def convolution_of(
    opening: Opening, groups: int, channels: int, low: float = -math.inf, high: float = math.inf
) -> tuple[Conv2D | DepthwiseConv2D, Order]:
    """Return the operator of a convolution, and the order in which it stores ONNX's filter.

    Args:
        opening: Strides, dilations and padding.
        groups: Number of groups.
        channels: Channels of the image.
        low: Smallest number of the result.
        high: Largest number of the result.
    """
    if groups > 1 and groups == channels:
        depthwise = DepthwiseConv2D(
            min=low, max=high, strides=opening.strides, dilations=opening.dilations,
            padding=opening.padding,
        )  # fmt: skip
        return depthwise, (1, 2, 3, 0)
    operator = Conv2D(
        min=low, max=high, strides=opening.strides, dilations=opening.dilations,
        padding=opening.padding, groups=groups,
    )  # fmt: skip
    return operator, (0, 2, 3, 1)


def _image_filter(t: OnnxTranslation) -> StoredValue:
    """Return the filter with a rank of 4, as the model has it."""
    value = t.value(1)
    if value.array is not None:
        value = replace(value, array=as_image_filter(value.array))
        assert value.array is not None
        return replace(value, shape=value.array.shape)
    if len(value.shape) == 3:
        value = t.builder.reshaped(value, (*value.shape[:2], 1, value.shape[2]), t.target)
    if len(value.shape) != 4:
        raise unsupported("filter rank", len(value.shape), 3, 4)
    return t.builder.as_written(value, t.target)


def _packed(t: OnnxTranslation, weights: StoredValue, groups: int, name: str) -> StoredValue:
    """Emit the step that packs a filter in the run."""
    outputs, *inner = weights.shape
    if groups < 1 or outputs % groups:
        raise NotLoweredError(f"group={groups} does not divide the {outputs} output channels")
    panels = groups * -(-outputs // groups // PANEL)
    shape = (panels, inner[1], inner[2], inner[0], PANEL)
    return t.emit(
        PackFilter(groups=groups), [weights],
        shape=shape, order=as_written(5), name=f"{name}/filter",
    )  # fmt: skip


@translates("ConvTranspose", layout=InputLayout.CHANNELS_LAST)
def conv_transpose(t: OnnxTranslation) -> None:
    """Translate a transposed convolution over one or two axes."""
    require_type(t.dtype, DType.FLOAT32)
    source = t.image()
    weights = _image_filter(t)
    groups = t.attribute("group", 1)
    num_inputs, per_group, *kernel = weights.shape
    height_width = (1, *t.shape[2:]) if len(t.shape) == 3 else t.shape[2:]
    strides, dilations = pair(t.integers("strides")), pair(t.integers("dilations"))
    padding, adjustment = _transposed_padding(
        t, source.shape[2:], (kernel[0], kernel[1]), strides, dilations, height_width
    )
    bias = t.value(2) if t.has(2) else None
    # A depthwise filter of a batch, which is not made in bands, has a quicker kernel as it lies.
    by_inputs = weights.array is None or (
        groups == num_inputs and per_group == 1 and source.shape[0] > 1
    )
    stored = weights
    if by_inputs and weights.array is not None:
        stored = t.builder.constant(weights.array, t.source(1))
    elif weights.array is not None:
        array = (
            weights.array.reshape(groups, num_inputs // groups, per_group, *kernel)
            .transpose(0, 2, 3, 4, 1)
            .reshape(groups * per_group, *kernel, num_inputs // groups)
        )
        stored = t.builder.constant(array, t.source(1))
    operator = TransposedConv2D(
        strides=strides, dilations=dilations, padding=padding, adjustment=adjustment,
        groups=groups, by_inputs=by_inputs,
    )  # fmt: skip
    shape = (source.shape[0], groups * per_group, *height_width)
    t.finish(t.emit(operator, [source, stored, bias], shape=shape, order=channels_last(4)))


def as_image_filter(weights: Array) -> Array:
    """Return a filter of rank 3 or 4 as one of rank 4."""
    if weights.ndim == 3:
        weights = weights[:, :, np.newaxis, :]
    if weights.ndim != 4:
        raise unsupported("filter rank", weights.ndim, 3, 4)
    return weights


def _transposed_padding(
    t: OnnxTranslation,
    size: tuple[int, ...],
    kernel: Pair,
    strides: Pair,
    dilations: Pair,
    output: tuple[int, ...],
) -> tuple[Sides, Pair]:
    """Return the padding and adjustment that give the stated output shape."""
    pads = t.integers("pads")
    mode = auto_pad(t)
    if t.integers("output_shape") and not mode.is_same:
        mode = AutoPad.SAME_UPPER
    begins, ends, adjustments = [], [], []
    for axis in range(2):
        stated = pads[axis - 2 + len(pads) // 2] if len(pads) // 2 > 1 - axis else 0
        # A window over the result, whose positions are the elements of the image.
        over = Window.padded(
            output[axis], size[axis], kernel[axis], strides[axis], dilations[axis], mode, stated
        )
        begins.append(over.before)
        ends.append(largest(0, over.after))
        adjustments.append(largest(0, -over.after))
    if any(not 0 <= a < s for a, s in zip(adjustments, strides, strict=True)) or min(begins) < 0:
        raise NotLoweredError(
            f"pads={list(pads)}, auto_pad={mode} do not give an output of {output}"
        )
    return (begins[0], ends[1], ends[0], begins[1]), (adjustments[0], adjustments[1])


def _without_pad(t: OnnxTranslation) -> tuple[StoredValue, Sides]:
    """Return the convolution's input and padding, with a Pad before it folded in if possible."""
    pad = t.producers.get(t.source())
    none = (0, 0, 0, 0)
    if pad is None or pad.operator.label != "Pad" or not t.builder.is_read_once(t.source()):
        return t.image(), none
    pads = attributes_of(pad).get("pads")
    value = t.builder.array(pad.inputs[2]) if len(pad.inputs) > 2 and pad.inputs[2] else None
    number = attributes_of(pad).get("value", 0.0) if value is None else float(value)
    plain = attributes_of(pad).get("mode", "constant") == "constant" and number == 0
    if not (plain and isinstance(pads, tuple) and len(pads) == 8) or len(pad.inputs) > 3:
        return t.image(), none
    widths = [int(width) for width in pads]
    if any(widths[axis] for axis in (0, 1, 4, 5)) or min(widths) < 0:
        return t.image(), none
    if auto_pad(t).is_same:
        return t.image(), none
    top, left, bottom, right = widths[2], widths[3], widths[6], widths[7]
    inner = t.builder.in_order(t.builder.value(pad.inputs[0]), channels_last(4), t.target)
    return inner, (top, right, bottom, left)


@translates("MaxPool", layout=InputLayout.CHANNELS_LAST)
def max_pool(t: OnnxTranslation) -> None:
    """Translate MaxPool, with indices or without."""
    if any(t.step.outputs[1:]) and t.attribute("storage_order", 0):
        raise unsupported("storage_order", t.attribute("storage_order", 0), 0)
    _pool(t, PoolKind.MAXIMUM)


@translates("AveragePool", layout=InputLayout.CHANNELS_LAST)
def average_pool(t: OnnxTranslation) -> None:
    _pool(t, PoolKind.AVERAGE)


@translates("GlobalAveragePool", layout=InputLayout.CHANNELS_LAST)
def global_average_pool(t: OnnxTranslation) -> None:
    _global(t, ReduceFunction.MEAN)


@translates("GlobalMaxPool", layout=InputLayout.CHANNELS_LAST)
def global_max_pool(t: OnnxTranslation) -> None:
    _global(t, ReduceFunction.MAXIMUM)


def _global(t: OnnxTranslation, function: ReduceFunction) -> None:
    _check_pool_type(t)
    value = t.value()
    rank = len(value.shape)
    value = t.builder.in_order(value, channels_last(rank), t.target)
    axes = tuple(range(1, rank - 1))
    if function is ReduceFunction.MEAN and rank == 4:
        pool = Pool2D.whole(PoolKind.AVERAGE, value.shape[2:])
        t.finish(t.emit(pool, [value], order=channels_last(rank)))
        return
    t.finish(t.emit(Reduce(function=function, axes=axes), [value], order=channels_last(rank)))


def _pool(t: OnnxTranslation, kind: PoolKind) -> None:
    _check_pool_type(t)
    value = t.image()
    operator, shape = pool_of(t, value, kind)
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


def pool_of(t: OnnxTranslation, image: StoredValue, kind: PoolKind) -> tuple[Pool2D, Shape]:
    """Return the operator of a pool with a window, and the shape of its result.

    Raises:
        NotLoweredError: No kernel runs it, or the model states another shape.
    """
    kernel = pair(t.integers("kernel_shape"))
    is_ceil = bool(t.attribute("ceil_mode", 0))
    opening = window(t, image.shape, kernel, ceil=is_ceil)
    counts_padding = (
        kind is PoolKind.AVERAGE
        and bool(t.attribute("count_include_pad", 0))
        and any(not same(side, 0) for side in opening.padding)
    )
    if counts_padding and is_ceil:
        raise NotLoweredError("count_include_pad=1 with ceil_mode=1 and padding is unsupported")
    stated = (1, *t.shape[2:]) if len(t.shape) == 3 else t.shape[2:]
    if not t.builder.agree(opening.output, stated):
        raise NotLoweredError(
            f"the window gives an output of {opening.output}, the model states {stated}"
        )
    operator = Pool2D(
        kind=kind, window=kernel, strides=opening.strides, dilations=opening.dilations,
        padding=opening.padding, count_padding=counts_padding,
    )  # fmt: skip
    return operator, (*image.shape[:2], *stated)


def _check_pool_type(t: OnnxTranslation) -> None:
    require_type(t.dtype, DType.FLOAT32)
    if math.prod(t.shape) == 0:
        raise NotLoweredError(f"an empty output, {t.shape}, is unsupported")
