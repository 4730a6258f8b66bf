"""Convolutions and products of matrices."""

import numpy as np

from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.program.operators import (
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    MatMul,
    TransposedConv2D,
)


def conv_2d(t: Translation) -> None:
    """Translate CONV_2D, grouped where its filter has fewer channels than its input."""
    image, weights = t.value(0), _constant(t, 1)
    strides, dilations = _strides(t), _dilations(t)
    _, height, width, channels = weights.shape
    operator = Conv2D(
        strides=strides,
        dilations=dilations,
        padding=t.padding(image.shape[1:3], (height, width), strides, dilations),
        groups=image.shape[3] // channels,
    )
    t.finish(t.emit(operator, [image, weights, _bias(t, 2)], op_type="Conv"))


def depthwise_conv_2d(t: Translation) -> None:
    """Translate DEPTHWISE_CONV_2D."""
    image, weights = t.value(0), _constant(t, 1)
    strides, dilations = _strides(t), _dilations(t)
    _, height, width, _ = weights.shape
    operator = DepthwiseConv2D(
        strides=strides,
        dilations=dilations,
        padding=t.padding(image.shape[1:3], (height, width), strides, dilations),
    )
    t.finish(t.emit(operator, [image, weights, _bias(t, 2)], op_type="Conv"))


def transpose_conv(t: Translation) -> None:
    """Translate TRANSPOSE_CONV."""
    image, weights = t.value(2), _constant(t, 1)
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
            raise NotLoweredError("its padding does not lead to its output")
    operator = TransposedConv2D(
        strides=strides, padding=padding, adjustment=(adjustment[0], adjustment[1])
    )
    t.finish(t.emit(operator, [image, weights, _bias(t, 3)], op_type="ConvTranspose"))


def fully_connected(t: Translation) -> None:
    """Translate FULLY_CONNECTED with constant weights."""
    if t.integer("WeightsFormat", 0):
        raise NotLoweredError("its weights are shuffled")
    value, weights = t.value(0), _constant(t, 1)
    num_inputs = weights.shape[1]
    if not value.shape or value.shape[-1] != num_inputs:
        value = t.builder.reshaped(value, (_rows(value, num_inputs), num_inputs), t.target)
    shape = (*value.shape[:-1], weights.shape[0])
    t.finish(t.emit(FullyConnected(), [value, weights, _bias(t, 2)], op_type="Gemm", shape=shape))


def _rows(value: Value, num_inputs: int) -> int:
    count = int(np.prod(value.shape, dtype=np.int64))
    if num_inputs == 0 or count % num_inputs:
        raise NotLoweredError(f"its input of {count} elements has no rows of {num_inputs}")
    return count // num_inputs


def batch_matmul(t: Translation) -> None:
    """Translate BATCH_MATMUL."""
    if t.is_quantised:
        raise NotLoweredError("it multiplies integers")
    operator = MatMul(
        transpose_a=bool(t.integer("AdjX", 0)), transpose_b=bool(t.integer("AdjY", 0))
    )
    t.finish(t.emit(operator, [t.value(0), t.value(1)], op_type="MatMul"))


def _strides(t: Translation) -> tuple[int, int]:
    return t.pair("StrideH", "StrideW")


def _dilations(t: Translation) -> tuple[int, int]:
    return t.pair("DilationHFactor", "DilationWFactor")


def _constant(t: Translation, position: int) -> Value:
    t.array(position)
    return t.value(position)


def _bias(t: Translation, position: int) -> Value | None:
    if t.has(position):
        t.array(position)
    return t.optional_value(position)
