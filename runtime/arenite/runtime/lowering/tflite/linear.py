"""Convolutions and products of matrices."""

from dataclasses import replace

import numpy as np

from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.tflite import batches
from arenite.runtime.lowering.tflite.numbers import through_numbers
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import VALID, Translation, options_of
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D, TransposedConv2D
from arenite.runtime.operators.linear import FullyConnected, MatMul


@translates("CONV_2D")
def conv_2d(t: Translation) -> None:
    """Translate CONV_2D, grouped where its filter has fewer channels than its input."""
    t = _without_pad(t)
    image, weights = t.value(0), t.weights(1)
    strides, dilations = _strides(t), _dilations(t)
    _, height, width, channels = weights.shape
    operator = Conv2D(
        strides=strides,
        dilations=dilations,
        padding=t.padding(image.shape[1:3], (height, width), strides, dilations),
        groups=image.shape[3] // channels,
    )
    t.finish(t.emit(operator, [image, weights, _bias(t, 2)]))


@translates("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(t: Translation) -> None:
    """Translate DEPTHWISE_CONV_2D."""
    t = _without_pad(t)
    image, weights = t.value(0), t.weights(1)
    strides, dilations = _strides(t), _dilations(t)
    _, height, width, _ = weights.shape
    operator = DepthwiseConv2D(
        strides=strides,
        dilations=dilations,
        padding=t.padding(image.shape[1:3], (height, width), strides, dilations),
    )
    t.finish(t.emit(operator, [image, weights, _bias(t, 2)]))


def _without_pad(t: Translation) -> Translation:
    """Return the convolution with a PAD before it folded into its padding, if there is one."""
    pad = t.producers.get(t.source())
    if pad is None or pad.operator.label != "PAD" or t.options.get("Padding") != VALID:
        return t
    widths = t.builder.array(pad.inputs[1])
    quantisations = {t.builder.stated_quantisation(name) for name in (t.source(), pad.inputs[0])}
    if widths is None or widths.shape != (4, 2) or len(quantisations) > 1:
        return t
    _, (top, bottom), (left, right), _ = widths.tolist()
    if widths[[0, 3]].any() or widths.min() < 0:
        return t
    return replace(
        t,
        step=replace(t.step, inputs=(pad.inputs[0], *t.step.inputs[1:])),
        options={**t.options, "Padding": (top, right, bottom, left)},
    )


@translates("BATCH_TO_SPACE_ND", int16=True)
def batch_to_space(t: Translation) -> None:
    """Translate BATCH_TO_SPACE_ND, with the convolution between it and SPACE_TO_BATCH_ND.

    Converters write a dilated convolution as these three operators.
    """
    if not _dilated(t):
        batches.batch_to_space(t)


def _dilated(t: Translation) -> bool:
    conv = t.producers.get(t.source())
    options = {} if conv is None else options_of(conv)
    translate = {"CONV_2D": conv_2d, "DEPTHWISE_CONV_2D": depthwise_conv_2d}
    if conv is None or conv.operator.label not in translate or options.get("Padding") != VALID:
        return False
    before = t.producers.get(conv.inputs[0])
    if before is None or before.operator.label != "SPACE_TO_BATCH_ND":
        return False
    arrays = [t.builder.array(name) for name in (*t.step.inputs[1:3], *before.inputs[1:3])]
    if any(array is None for array in arrays) or len(t.shape) != 4:
        return False
    blocks, crops, other_blocks, paddings = (np.asarray(array) for array in arrays)
    margins = paddings.reshape(-1, 2) - crops.reshape(-1, 2)
    plain = all(options.get(name) == 1 for name in _STRIDES_AND_DILATIONS)
    if blocks.tolist() != other_blocks.tolist() or len(blocks) != 2:
        return False
    if not plain or margins.min() < 0:
        return False
    (top, bottom), (left, right) = margins.tolist()
    dilated = replace(
        t,
        step=replace(
            conv, name=t.step.name, inputs=(before.inputs[0], *conv.inputs[1:]),
            outputs=t.step.outputs,
        ),
        options={
            **options,
            "DilationHFactor": int(blocks[0]),
            "DilationWFactor": int(blocks[1]),
            "Padding": (top, right, bottom, left),
        },
    )  # fmt: skip
    translate[conv.operator.label](dilated)
    return True


_STRIDES_AND_DILATIONS = ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor")


@translates("TRANSPOSE_CONV")
def transpose_conv(t: Translation) -> None:
    """Translate TRANSPOSE_CONV."""
    image, weights = t.value(2), t.weights(1)
    strides = _strides(t)
    _, height, width, _ = weights.shape
    padding = t.padding(t.shape[1:3], (height, width), strides, (1, 1))
    adjustment = [0, 0]
    for axis, (kernel, front, behind) in enumerate(
        ((height, padding[0], padding[2]), (width, padding[3], padding[1]))
    ):
        full = strides[axis] * (image.shape[1 + axis] - 1) + kernel
        adjustment[axis] = t.shape[1 + axis] - (full - front - behind)
        if not 0 <= adjustment[axis] < strides[axis]:
            raise NotLoweredError(f"padding {padding} does not give an output of {t.shape}")
    operator = TransposedConv2D(
        strides=strides, padding=padding, adjustment=(adjustment[0], adjustment[1])
    )
    t.finish(t.emit(operator, [image, weights, _bias(t, 3)]))


@translates("FULLY_CONNECTED")
def fully_connected(t: Translation) -> None:
    """Translate FULLY_CONNECTED with constant weights."""
    if t.integer("WeightsFormat", 0):
        raise NotLoweredError("its weights are shuffled")
    value, weights = t.value(0), t.weights(1)
    num_inputs = weights.shape[1]
    if not value.shape or value.shape[-1] != num_inputs:
        value = t.builder.reshaped(value, (_rows(value, num_inputs), num_inputs), t.target)
    shape = (*value.shape[:-1], weights.shape[0])
    t.finish(t.emit(FullyConnected(), [value, weights, _bias(t, 2)], shape=shape))


def _rows(value: Value, num_inputs: int) -> int:
    count = int(np.prod(value.shape, dtype=np.int64))
    if num_inputs == 0 or count % num_inputs:
        raise NotLoweredError(f"its input of {count} elements has no rows of {num_inputs}")
    return count // num_inputs


@translates("BATCH_MATMUL", int16=True)
def batch_matmul(t: Translation) -> None:
    """Translate BATCH_MATMUL; integers are multiplied as numbers."""
    operator = MatMul(
        transpose_a=bool(t.integer("AdjX", 0)), transpose_b=bool(t.integer("AdjY", 0))
    )
    through_numbers(t, operator, [t.value(0), t.value(1)])


def _strides(t: Translation) -> tuple[int, int]:
    return t.pair("StrideH", "StrideW")


def _dilations(t: Translation) -> tuple[int, int]:
    return t.pair("DilationHFactor", "DilationWFactor")


def _bias(t: Translation, position: int) -> Value | None:
    if t.has(position):
        t.array(position)
    return t.optional_value(position)
