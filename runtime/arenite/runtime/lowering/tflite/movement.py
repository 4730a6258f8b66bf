"""Operators that move elements and compute nothing."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.program import Array
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Shape, as_written, strides
from arenite.runtime.lowering.moves import padded, picked, tiled, whole
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.movement import Copy, Gather, Move


@translates("EXPAND_DIMS", "RESHAPE", "SQUEEZE")
def reshape(t: Translation) -> None:
    """Translate an operator that changes only the shape."""
    t.finish(t.value())


@translates("DENSIFY")
def densify(t: Translation) -> None:
    """Translate DENSIFY of a constant, whose elements the importer has made dense."""
    t.array(0)
    t.finish(t.value())


@translates("TRANSPOSE")
def transpose(t: Translation) -> None:
    """Translate TRANSPOSE."""
    value = t.builder.transposed(t.value(), t.integers(1))
    t.finish(t.builder.as_written(value, t.target))


@translates("CONCATENATION")
def concatenation(t: Translation) -> None:
    """Translate CONCATENATION; parts with another scale are requantised."""
    axis = t.integer("Axis", 0) % len(t.shape)
    begin = [0] * len(t.shape)
    parts: list[Value | None] = []
    moves: list[Move] = []
    for position in range(len(t.step.inputs)):
        part = _rescaled(t, t.value(position))
        parts.append(part)
        moves.append(whole(part, t.shape, as_written(len(t.shape)), begin, position))
        begin[axis] += part.shape[axis]
    t.finish(t.emit(Copy(moves=tuple(moves)), parts))


def _rescaled(t: Translation, value: Value) -> Value:
    wanted = t.builder.stated_quantisation(t.target)
    if wanted is None or t.builder.quantisation(value) == wanted:
        return value
    (result,) = t.builder.emit(
        Convert(), [value], [(f"{t.target}/rescaled", value.shape, value.order)],
        quantisation=wanted,
    )  # fmt: skip
    return result


@translates("PACK")
def pack(t: Translation) -> None:
    """Translate PACK."""
    rank = len(t.shape)
    axis = t.integer("Axis", 0) % rank
    parts: list[Value | None] = []
    moves: list[Move] = []
    for position in range(len(t.step.inputs)):
        value = t.value(position)
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        part = t.builder.reshaped(value, shape, t.target)
        parts.append(part)
        begin = [position if each == axis else 0 for each in range(rank)]
        moves.append(whole(part, t.shape, as_written(rank), begin, position))
    t.finish(t.emit(Copy(moves=tuple(moves)), parts))


@translates("SPLIT", "SPLIT_V")
def split(t: Translation) -> None:
    """Translate SPLIT or SPLIT_V into one step that makes all parts."""
    is_even = t.kind == "SPLIT"
    value = t.value(1 if is_even else 0)
    (axis,) = t.integers(0 if is_even else 2)
    _parts(t, value, axis % len(value.shape))


@translates("UNPACK")
def unpack(t: Translation) -> None:
    """Translate UNPACK."""
    value = t.value()
    axis = t.integer("Axis", 0) % len(value.shape)
    _parts(t, value, axis, is_unpacked=True)


def _parts(t: Translation, value: Value, axis: int, *, is_unpacked: bool = False) -> None:
    rank = len(value.shape)
    first = [0] * rank
    moves: list[Move] = []
    outputs: list[tuple[str, Shape, tuple[int, ...]]] = []
    for name in t.step.outputs:
        size = 1 if is_unpacked else t.builder.shape(name)[axis]
        shape = tuple(size if a == axis else n for a, n in enumerate(value.shape))
        moves.append(picked(value, shape, first, (1,) * rank, output=len(outputs)))
        outputs.append((name, shape, value.order))
        first[axis] += size
    made = t.builder.emit(Copy(moves=tuple(moves)), [value], outputs, step=t.step.name)
    for name, part in zip(t.step.outputs, made, strict=True):
        shape = t.builder.shape(name)
        t.builder.bind(name, t.builder.reshaped(part, shape, name))


@translates("SLICE")
def slice_(t: Translation) -> None:
    """Translate SLICE with constant bounds."""
    value = t.value()
    _pick(t, value, t.integers(1), (1,) * len(value.shape), t.shape)


@translates("STRIDED_SLICE")
def strided_slice(t: Translation) -> None:
    """Translate STRIDED_SLICE with constant bounds."""
    value = t.value()
    if t.integer("EllipsisMask", 0) or t.integer("NewAxisMask", 0):
        raise NotLoweredError("it has an ellipsis or a new axis")
    begins, ends, steps = (t.integers(position) for position in (1, 2, 3))
    shrink = t.integer("ShrinkAxisMask", 0)
    picks: list[tuple[int, int, int]] = []  # first, step, count
    for axis, length in enumerate(value.shape):
        if axis >= len(begins):
            picks.append((0, 1, length))
        elif shrink >> axis & 1:
            picks.append((begins[axis] % length, 1, 1))
        else:
            begin = None if t.integer("BeginMask", 0) >> axis & 1 else begins[axis]
            end = None if t.integer("EndMask", 0) >> axis & 1 else ends[axis]
            span = range(*slice(begin, end, steps[axis]).indices(length))
            picks.append((span.start, steps[axis], len(span)))
    first, step, shape = zip(*picks, strict=True)
    _pick(t, value, first, step, shape)


def _pick(
    t: Translation, value: Value, first: Sequence[int], step: Sequence[int], shape: Shape
) -> None:
    if shape == value.shape and all(stride == 1 for stride in step):
        t.finish(value)
        return
    move = picked(value, shape, first, step)
    t.finish(t.emit(Copy(moves=(move,)), [value], shape=shape))


@translates("MIRROR_PAD", "PAD", "PADV2")
def pad(t: Translation) -> None:
    """Translate PAD, PADV2 or MIRROR_PAD."""
    value = t.value()
    widths = t.array(1).reshape(-1, 2)
    before = [int(width) for width in widths[:, 0]]
    if int(widths.min(initial=0)) < 0:
        raise NotLoweredError("it crops")
    if t.kind == "MIRROR_PAD":
        mode = "symmetric" if t.integer("Mode", 0) else "reflect"
        t.finish(t.emit(Copy(moves=padded(value, t.shape, before, mode)), [value]))
        return
    quantisation = t.builder.stated_quantisation(t.target)
    number = quantisation.zero_point if quantisation is not None else 0
    if t.kind == "PADV2":
        number = t.array(2).reshape(-1)[0]
    fill = np.array(number, _numpy(t.dtype)).tobytes()
    operator = Copy(moves=padded(value, t.shape, before, "constant"), fill=fill)
    t.finish(t.emit(operator, [value]))


@translates("TILE")
def tile(t: Translation) -> None:
    """Translate TILE."""
    value = t.value()
    move = tiled(value, t.shape, t.integers(1))
    t.finish(t.emit(Copy(moves=(move,)), [value]))


@translates("BROADCAST_TO")
def broadcast_to(t: Translation) -> None:
    """Translate BROADCAST_TO."""
    value = t.value()
    shape = (*(1,) * (len(t.shape) - len(value.shape)), *value.shape)
    value = t.builder.reshaped(value, shape, t.target)
    step = [int(old == new) for old, new in zip(shape, t.shape, strict=True)]
    move = picked(value, t.shape, (0,) * len(shape), step)
    t.finish(t.emit(Copy(moves=(move,)), [value]))


@translates("GATHER")
def gather(t: Translation) -> None:
    """Translate GATHER."""
    data, indices = t.value(0), t.value(1)
    if indices.dtype not in (DType.INT32, DType.INT64):
        raise NotLoweredError(f"its indices are {indices.dtype.label}")
    batch_axes = t.integer("BatchDims", 0) % (len(indices.shape) + 1)
    operator = Gather(axis=t.integer("Axis", 0) % len(data.shape), batch_axes=batch_axes)
    t.finish(t.emit(operator, [data, indices]))


@translates("DEPTH_TO_SPACE")
def depth_to_space(t: Translation) -> None:
    """Translate DEPTH_TO_SPACE."""
    n, h, w, c = t.value().shape
    b = t.integer("BlockSize", 1)
    _regroup(t, (n, h, w, b, b, c // (b * b)), (0, 1, 3, 2, 4, 5))


@translates("SPACE_TO_DEPTH")
def space_to_depth(t: Translation) -> None:
    """Translate SPACE_TO_DEPTH."""
    n, h, w, c = t.value().shape
    b = t.integer("BlockSize", 1)
    _regroup(t, (n, h // b, b, w // b, b, c), (0, 1, 3, 2, 4, 5))


def _regroup(t: Translation, parts: Shape, axes: Sequence[int]) -> None:
    """Split axes, permute them and join them again."""
    value = t.builder.transposed(t.builder.reshaped(t.value(), parts, t.target), axes)
    t.finish(t.builder.as_written(value, t.target))


@translates("SPACE_TO_BATCH_ND")
def space_to_batch(t: Translation) -> None:
    """Translate SPACE_TO_BATCH_ND over rows and columns."""
    value = _image(t)
    blocks, paddings = t.integers(1), t.array(2).reshape(-1, 2)
    n = value.shape[0]
    source, target = strides(value.shape, value.order), strides(t.shape, value.order)
    moves: list[Move] = []
    for place, phase in enumerate(itertools.product(range(blocks[0]), range(blocks[1]))):
        starts, firsts, counts = _phase(phase, blocks, paddings, value.shape)
        moves.append(
            Move(
                shape=(n, *counts, value.shape[3]),
                input_start=firsts[0] * source[1] + firsts[1] * source[2],
                input_strides=(source[0], blocks[0] * source[1], blocks[1] * source[2], 1),
                output_start=place * n * target[0] + starts[0] * target[1] + starts[1] * target[2],
                output_strides=target,
            )
        )
    quantisation = t.builder.stated_quantisation(t.target)
    zero = quantisation.zero_point if quantisation is not None else 0
    fill = np.array(zero, _numpy(t.dtype)).tobytes()
    t.finish(t.emit(Copy(moves=tuple(moves), fill=fill), [value]))


def batch_to_space(t: Translation) -> None:
    """Translate BATCH_TO_SPACE_ND over rows and columns."""
    value = _image(t)
    blocks, crops = t.integers(1), t.array(2).reshape(-1, 2)
    n = t.shape[0]
    source, target = strides(value.shape, value.order), strides(t.shape, value.order)
    moves: list[Move] = []
    for place, phase in enumerate(itertools.product(range(blocks[0]), range(blocks[1]))):
        firsts, starts, counts = _phase(phase, blocks, crops, t.shape)
        moves.append(
            Move(
                shape=(n, *counts, value.shape[3]),
                input_start=place * n * source[0] + firsts[0] * source[1] + firsts[1] * source[2],
                input_strides=source,
                output_start=starts[0] * target[1] + starts[1] * target[2],
                output_strides=(target[0], blocks[0] * target[1], blocks[1] * target[2], 1),
            )
        )
    t.finish(t.emit(Copy(moves=tuple(moves)), [value]))


def _phase(
    phase: Sequence[int], blocks: Sequence[int], margins: Array, image: Shape
) -> tuple[list[int], list[int], list[int]]:
    """Return of rows and columns where a phase begins: in its batch, in the image, how many.

    Args:
        phase: Of the rows and columns of a block, those that the batch holds.
        blocks: Rows and columns of a block.
        margins: Rows and columns around the image, before and after.
        image: Batch, rows, columns, channels.
    """
    starts, firsts, counts = [], [], []
    for offset, block, (front, _), length in zip(phase, blocks, margins, image[1:3], strict=True):
        # The first row of the batch whose row is inside the image.
        start = max(-(-(int(front) - offset) // block), 0)
        first = start * block + offset - int(front)
        starts.append(start)
        firsts.append(first)
        counts.append(max(-(-(length - first) // block), 0))
    return starts, firsts, counts


def _image(t: Translation) -> Value:
    value = t.value()
    if len(value.shape) != 4 or len(t.integers(1)) != 2:
        raise NotLoweredError("it has other axes than rows and columns")
    blocks = t.integers(1)
    if not (min(blocks) > 0 and math.prod(blocks) <= _MOST_PHASES):
        raise NotLoweredError(f"its blocks are of {' x '.join(map(str, blocks))}")
    return value


_MOST_PHASES = 65_536
"""A move copies each place of a block; a damaged file may state blocks without end."""


def _numpy(dtype: DType) -> np.dtype[np.generic]:
    try:
        return np.dtype(dtype.label)
    except TypeError:
        raise NotLoweredError(f"it pads {dtype.label}") from None
