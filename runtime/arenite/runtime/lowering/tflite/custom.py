"""Custom operators of MediaPipe and of TFLite Micro's signal library, as several of ours."""

import math
from collections.abc import Sequence

import numpy as np

from arenite.planner import Array, DType
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Shape, StoredValue
from arenite.runtime.lowering.moves import picked
from arenite.runtime.lowering.tflite.translation import TfliteTranslation, translates
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Convert
from arenite.runtime.operators.linear import MatMul
from arenite.runtime.operators.movement import Copy, Gather
from arenite.runtime.operators.moves import Move
from arenite.runtime.operators.normalisation import L2Norm
from arenite.runtime.operators.reduction import Reduce, ReduceFunction

B = BinaryFunction
_MOST_SHIFT = 30
_LEAST_LENGTH = 1e-12
"""Landmarks nearer to each other than this have no direction."""


def _make(
    t: TfliteTranslation,
    operator: RuntimeOperator,
    inputs: Sequence[StoredValue],
    shape: Shape,
    dtype: DType | None = None,
) -> StoredValue:
    """Add a step that makes an intermediate result."""
    return t.builder.emit_one(operator, inputs, f"{t.target}/part", shape, dtype=dtype)


def _constant(t: TfliteTranslation, values: Array) -> StoredValue:
    return t.builder.constant(values, f"{t.target}/values")


@translates("SignalWindow", int16=True)
def signal_window(t: TfliteTranslation) -> None:
    """Translate SignalWindow: products with the window, shifted right and clamped to 16 bits.

    Source: TFLite Micro, signal/src/window.cc.
    """
    signal, window, shift = t.value(0), t.array(1), t.integer("shift", 0)
    for value in (signal, t.value(1)):
        require_type(value.dtype, DType.INT16)
    if not 0 <= shift <= _MOST_SHIFT:
        raise unsupported("shift", shift, f"0 to {_MOST_SHIFT}")
    if t.is_quantised or t.builder.stated_quantisation(t.source()) is not None:
        raise NotLoweredError("tensors with a scale are unsupported, supported: plain int16")
    size = math.prod(signal.shape)
    if window.ndim != 1 or not window.size or size % window.size:
        raise NotLoweredError(
            f"a window of shape {window.shape} does not fit an input of shape {signal.shape}"
        )
    shape = (size // window.size, window.size)
    numbers = _make(
        t, Convert(), [t.builder.reshaped(signal, shape, t.target)], shape, DType.INT32
    )
    limits = np.iinfo(np.int16)
    factors = window.astype(np.int32)[np.newaxis]
    results = np.outer([limits.min, limits.max], factors) >> shift
    bounds = [(B.MULTIPLY, factors), (B.FLOOR_DIVIDE, 1 << shift)]
    if results.min() < limits.min or results.max() > limits.max:
        bounds += [(B.MAXIMUM, limits.min), (B.MINIMUM, limits.max)]
    for function, operand in bounds:
        other = _constant(t, np.array(operand, np.int32, ndmin=2))
        numbers = _make(t, Binary(function=function), [numbers, other], shape)
    t.finish(t.emit(Convert(), [numbers], shape=shape))


@translates("Landmarks2TransformMatrix")
def landmarks_to_transform_matrix(t: TfliteTranslation) -> None:
    """Translate version 2: the matrix from pixels of a crop to the image with the landmarks.

    The crop contains some landmarks, and two of them lie on a line of a given angle in it.

    Source: MediaPipe, util/tflite/operations/landmarks_to_transform_matrix.cc.
    """
    landmarks, chosen = t.value(), t.options.get("subset_idxs", ())
    require_type(landmarks.dtype, DType.FLOAT32)
    if len(landmarks.shape) != 3 or landmarks.shape[0] != 1 or landmarks.shape[2] != 3:
        raise unsupported("input shape", landmarks.shape, "1, landmarks, 3")
    if not isinstance(chosen, tuple) or not chosen:
        raise unsupported("subset_idxs", chosen, "indices (version 2 of the operator)")
    ends = [t.integer(f"{side}_rotation_idx", -1) for side in ("right", "left")]
    count = landmarks.shape[1]
    if min(*ends, *chosen) < 0 or max(*ends, *chosen) >= count:
        raise NotLoweredError(f"an index of landmarks is unsupported, supported: 0 to {count - 1}")
    extents = [t.integer(f"output_{side}", 0) for side in ("width", "height")]
    scales = [t.number(f"scale_{axis}", 0.0) for axis in ("x", "y")]
    if min(*extents, *scales) <= 0:
        raise unsupported("output_width, output_height, scale_x, scale_y", (*extents, *scales),
                          "numbers above 0")  # fmt: skip

    def floats(*rows: Sequence[float]) -> StoredValue:
        return _constant(t, np.array(rows, np.float32))

    places = _make(t, Copy(moves=(picked(landmarks, (1, count, 2), (0, 0, 0), (1, 1, 1)),)),
                   [landmarks], (count, 2))  # fmt: skip

    def at(*indices: int) -> StoredValue:
        where = _constant(t, np.array(indices, np.int32))
        return _make(t, Gather(axis=0), [places, where], (len(indices), 2))

    def binary(function: BinaryFunction, one: StoredValue, other: StoredValue) -> StoredValue:
        return _make(t, Binary(function=function), [one, other], one.shape)

    # The rotation of the crop back to the image; its transpose turns landmarks into the crop.
    between = binary(B.SUBTRACT, at(ends[0]), at(ends[1]))
    direction = _make(t, L2Norm(epsilon=_LEAST_LENGTH), [between], (1, 2))
    angle = t.number("target_rotation_radians", 0.0)
    cosine, sine = math.cos(angle), math.sin(angle)
    turns = floats((cosine, sine, -sine, cosine), (sine, -cosine, cosine, sine))
    back = t.builder.reshaped(_make(t, MatMul(), [direction, turns], (1, 4)), (2, 2), t.target)
    turned = _make(t, MatMul(), [at(*chosen), back], (len(chosen), 2))
    most, least = (
        _make(t, Reduce(function=each, axes=(0,)), [turned], (1, 2))
        for each in (ReduceFunction.MAXIMUM, ReduceFunction.MINIMUM)
    )
    middle = binary(B.MULTIPLY, binary(B.ADD, most, least), floats((0.5, 0.5)))
    centre = _make(t, MatMul(transpose_b=True), [middle, back], (1, 2))
    ratios = floats([scale / extent for scale, extent in zip(scales, extents, strict=True)])
    sizes = binary(B.MULTIPLY, binary(B.SUBTRACT, most, least), ratios)
    linear = binary(B.MULTIPLY, back, sizes)
    # The middle of the crop is the centre of the landmarks.
    corner = floats([-extent / 2 for extent in extents])
    shift = _make(t, MatMul(transpose_b=True), [corner, linear], (1, 2))
    parts = [linear, binary(B.ADD, centre, shift), floats((1, 1))]
    moves = (
        Move(input=0, shape=(2, 2), input_strides=(2, 1), output_strides=(4, 1)),
        Move(input=1, shape=(2,), input_strides=(1,), output_start=3, output_strides=(4,)),
        Move(input=2, shape=(2,), input_strides=(1,), output_start=10, output_strides=(5,)),
    )
    t.finish(t.emit(Copy(moves=moves, fill=bytes(4)), parts, shape=(1, 4, 4)))
