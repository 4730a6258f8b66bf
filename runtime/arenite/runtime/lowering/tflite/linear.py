"""Convolutions and products of matrices."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.sizes import same
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Shape, StoredValue, strides
from arenite.runtime.lowering.tflite.translation import (
    VALID,
    TfliteTranslation,
    options_of,
    through_numbers,
    translates,
)
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D, TransposedConv2D
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.operators.linear import FullyConnected, MatMul
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move

_CUSTOM_SAME, _CUSTOM_VALID = 1, 2
"""Paddings of custom operators, numbered as in TFLite's C API."""
_MAX_PLACES = 4_096
"""Most places of a block; each becomes a move."""


@translates("SPACE_TO_BATCH_ND", int16=True)
def space_to_batch(t: TfliteTranslation) -> None:
    value = t.value()
    blocks, paddings = _blocks(t, value.shape)
    source, target = strides(value.shape, value.order), strides(t.shape, value.order)
    moves = [
        Move(
            shape=shape, input_start=inside, input_strides=_stepped(blocks, source),
            output_start=batched, output_strides=target,
        )
        for shape, inside, batched in _phases(blocks, paddings, value.shape, source, target)
    ]  # fmt: skip
    quantisation = t.builder.stated_quantisation(t.target)
    zero = quantisation.zero_point if quantisation is not None else 0
    fill = np.array(zero, t.numpy_dtype).tobytes()
    t.finish(t.emit(Copy(moves=tuple(moves), fill=fill), [value]))


def _batch_to_space(t: TfliteTranslation) -> None:
    value = t.value()
    blocks, crops = _blocks(t, value.shape)
    source, target = strides(value.shape, value.order), strides(t.shape, value.order)
    moves = [
        Move(
            shape=shape, input_start=batched, input_strides=source,
            output_start=inside, output_strides=_stepped(blocks, target),
        )
        for shape, inside, batched in _phases(blocks, crops, t.shape, target, source)
    ]  # fmt: skip
    t.finish(t.emit(Copy(moves=tuple(moves)), [value]))


def _phases(
    blocks: Sequence[int], margins: Array, image: Shape, inside: Shape, batched: Shape
) -> Iterator[tuple[Shape, int, int]]:
    """Yield of each place of a block its elements' shape, and their starts on both sides.

    Args:
        blocks: Lengths of a block.
        margins: Places around the image, before and after.
        image: Batch, the lengths of the axes, and others.
        inside: Strides of the image.
        batched: Strides of the tensor with a batch for each place.
    """
    for place, phase in enumerate(itertools.product(*map(range, blocks))):
        starts, firsts, counts = _phase(phase, blocks, margins, image)
        shape = (image[0], *counts, *image[1 + len(blocks) :])
        start = place * image[0] * batched[0] + _offset(starts, batched)
        yield shape, _offset(firsts, inside), start


def _offset(indices: Sequence[int], strides_: Sequence[int]) -> int:
    """Return the first element that is read or written, of the axes behind the batch."""
    return sum(index * stride for index, stride in zip(indices, strides_[1:], strict=False))


def _stepped(blocks: Sequence[int], strides_: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of the larger tensor, of which a phase has every so many."""
    stepped = [block * stride for block, stride in zip(blocks, strides_[1:], strict=False)]
    return (strides_[0], *stepped, *strides_[1 + len(blocks) :])


def _phase(
    phase: Sequence[int], blocks: Sequence[int], margins: Array, image: Shape
) -> tuple[list[int], list[int], list[int]]:
    """Return for each axis where a phase begins: in its batch, in the image, and how many.

    Args:
        phase: The place of the block that the batch holds.
        blocks: Lengths of a block.
        margins: Places around the image, before and after.
        image: Batch, the lengths of the axes, and others.
    """
    starts, firsts, counts = [], [], []
    for offset, block, (front, _), length in zip(phase, blocks, margins, image[1:], strict=False):
        # The first place of the batch that is inside the image.
        start = max(-(-(int(front) - offset) // block), 0)
        first = start * block + offset - int(front)
        starts.append(start)
        firsts.append(first)
        counts.append(max(-(-(length - first) // block), 0))
    return starts, firsts, counts


def _blocks(t: TfliteTranslation, shape: Shape) -> tuple[tuple[int, ...], Array]:
    """Return the lengths of a block, and the margins of the axes behind the batch."""
    blocks, margins = t.integers(1), t.array(2).reshape(-1, 2)
    if not 0 < len(blocks) < len(shape) or len(margins) != len(blocks) or min(blocks) < 1:
        raise NotLoweredError(f"block_shape {list(blocks)} does not fit an input of shape {shape}")
    if math.prod(blocks) > _MAX_PLACES:
        raise NotLoweredError(f"block_shape {list(blocks)} has more than {_MAX_PLACES} places")
    return blocks, margins


@translates("CONV_2D")
def conv_2d(t: TfliteTranslation) -> None:
    """Translate CONV_2D, grouped where its filter has fewer channels than its input."""
    t = _without_pad(t)
    image, weights = t.value(0), t.weights(1, output_axis=0)
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
def depthwise_conv_2d(t: TfliteTranslation) -> None:
    t = _without_pad(t)
    image, weights = t.value(0), t.weights(1, output_axis=3)
    strides, dilations = _strides(t), _dilations(t)
    _, height, width, _ = weights.shape
    operator = DepthwiseConv2D(
        strides=strides,
        dilations=dilations,
        padding=t.padding(image.shape[1:3], (height, width), strides, dilations),
    )
    t.finish(t.emit(operator, [image, weights, _bias(t, 2)]))


def _without_pad(t: TfliteTranslation) -> TfliteTranslation:
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
def batch_to_space(t: TfliteTranslation) -> None:
    """Translate BATCH_TO_SPACE_ND, with the convolution between it and SPACE_TO_BATCH_ND.

    Converters write a dilated convolution as these three operators.
    """
    if not _dilated(t):
        _batch_to_space(t)


def _dilated(t: TfliteTranslation) -> bool:
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
def transpose_conv(t: TfliteTranslation) -> None:
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


@translates("Convolution2DTransposeBias")
def transposed_with_bias(t: TfliteTranslation) -> None:
    """Translate MediaPipe's transposed convolution, whose output has the size that it computes.

    Source: MediaPipe, util/tflite/operations/transpose_conv_bias.cc.
    """
    require_type(t.dtype, DType.FLOAT32)
    image, weights = t.value(0), t.weights(1)
    strides, mode = _strides(t), t.integer("Padding", 0)
    if mode not in (_CUSTOM_SAME, _CUSTOM_VALID):
        raise unsupported("padding", mode, f"{_CUSTOM_SAME} (SAME), {_CUSTOM_VALID} (VALID)")
    if min(strides) < 1:
        raise unsupported("stride_height, stride_width", strides, "1 or more")
    outputs, *kernel, _ = weights.shape
    margins, lengths = [], []
    for length, taps, stride in zip(image.shape[1:3], kernel, strides, strict=True):
        margin = max(0, taps - (length - 1) % stride - 1) if mode == _CUSTOM_SAME else 0
        margins.append((margin // 2, margin - margin // 2))
        lengths.append(stride * (length - 1) + taps - margin)
    (top, bottom), (left, right) = margins
    shape = (image.shape[0], lengths[0], lengths[1], outputs)
    t.builder.restate_shape(t.target, shape)
    operator = TransposedConv2D(strides=strides, padding=(top, right, bottom, left))
    t.finish(t.emit(operator, [image, weights, _bias(t, 2)], shape=shape))


@translates("FULLY_CONNECTED")
def fully_connected(t: TfliteTranslation) -> None:
    """Translate FULLY_CONNECTED, whose weights may be made in the run."""
    if t.integer("WeightsFormat", 0):
        raise unsupported("weights_format", t.integer("WeightsFormat", 0), "0 (DEFAULT)")
    value = t.value(0)
    is_constant = t.builder.array(t.source(1)) is not None
    weights = t.weights(1, output_axis=0) if is_constant else t.value(1)
    if len(weights.shape) != 2:
        raise NotLoweredError(
            f"weights of shape {weights.shape} are unsupported, supported: rank 2"
        )
    num_inputs = weights.shape[1]
    if not value.shape or not same(value.shape[-1], num_inputs):
        value = t.builder.reshaped(value, (_rows(value, num_inputs), num_inputs), t.target)
    shape = (*value.shape[:-1], weights.shape[0])
    if is_constant or {value.dtype, weights.dtype, t.dtype} == {DType.INT8}:
        t.finish(t.emit(FullyConnected(), [value, weights, _bias(t, 2)], shape=shape))
        return
    if {value.dtype, weights.dtype, t.dtype} != {DType.FLOAT32}:
        raise NotLoweredError(
            f"weights of {weights.dtype.label} made in the run are unsupported for an input of "
            f"{value.dtype.label}, supported: both float32 or both int8"
        )
    rows = t.builder.reshaped(value, (_rows(value, num_inputs), num_inputs), t.target)
    shape, operator, bias = (rows.shape[0], shape[-1]), MatMul(transpose_b=True), _bias(t, 2)
    if bias is None:
        t.finish(t.emit(operator, [rows, weights], shape=shape))
        return
    product = t.builder.emit_one(operator, [rows, weights], f"{t.target}/product", shape)
    t.finish(t.emit(Binary(function=BinaryFunction.ADD), [product, bias.aligned(2)], shape=shape))


def _rows(value: StoredValue, num_inputs: int) -> int:
    count = math.prod(value.shape)
    if num_inputs == 0 or count % num_inputs:
        raise NotLoweredError(
            f"an input of {count} elements does not divide into rows of {num_inputs}"
        )
    return count // num_inputs


@translates("BATCH_MATMUL", int16=True)
def batch_matmul(t: TfliteTranslation) -> None:
    """Translate BATCH_MATMUL; integers are multiplied as numbers."""
    operator = MatMul(
        transpose_a=bool(t.integer("AdjX", 0)), transpose_b=bool(t.integer("AdjY", 0))
    )
    through_numbers(t, operator, [t.value(0), t.value(1)])


def _strides(t: TfliteTranslation) -> tuple[int, int]:
    return t.pair("StrideH", "StrideW")


def _dilations(t: TfliteTranslation) -> tuple[int, int]:
    return t.pair("DilationHFactor", "DilationWFactor")


def _bias(t: TfliteTranslation, position: int) -> StoredValue | None:
    if t.has(position):
        t.array(position)
    return t.optional_value(position)
