"""Operators that move elements and compute nothing."""

import math
from collections.abc import Sequence

import numpy as np

from arenite.planner.dtypes import DType
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Order, Shape, usual
from arenite.runtime.lowering.moves import padded, picked, tiled, whole
from arenite.runtime.lowering.onnx.registry import translates
from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.lowering.translators import Layout
from arenite.runtime.operators.movement import Copy, Gather, Move


@translates("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def reshape(t: Translation) -> None:
    """Translate an operator that changes only the shape."""
    t.finish(t.value())


@translates("Transpose")
def transpose(t: Translation) -> None:
    """Translate Transpose: another order of the same bytes."""
    value = t.value()
    axes = t.integers("perm") or tuple(reversed(range(len(value.shape))))
    t.finish(t.builder.transposed(value, axes))


@translates("Concat")
def concat(t: Translation) -> None:
    """Translate Concat."""
    values = [t.value(position) for position in range(len(t.step.inputs))]
    values = [value for value in values if math.prod(value.shape)]
    axis = t.axis(0, len(t.shape))
    order = usual(t.shape, _common_order(values))
    parts: list[Value | None] = []
    moves: list[Move] = []
    begin = [0] * len(t.shape)
    for position, value in enumerate(values):
        part = t.builder.in_order(value, order, t.target)
        parts.append(part)
        moves.append(whole(part, t.shape, order, begin, position))
        begin[axis] += value.shape[axis]
    t.finish(t.emit(Copy(moves=tuple(moves)), parts, order=order))


def _common_order(values: Sequence[Value]) -> Order:
    """Return the order that moves the fewest elements."""
    weights: dict[Order, int] = {}
    for value in values:
        if value.array is None:
            weights[value.order] = weights.get(value.order, 0) + math.prod(value.shape)
    return max(weights, key=weights.__getitem__) if weights else values[0].order


@translates("Split")
def split(t: Translation) -> None:
    """Translate Split into one step that makes all parts."""
    value = t.value()
    rank = len(value.shape)
    axis = t.axis(0, rank)
    moves: list[Move] = []
    outputs: list[tuple[str, Shape, Order]] = []
    first = [0] * rank
    sizes = _split_sizes(t, value.shape[axis], axis)
    for name, size in zip(t.step.outputs, sizes, strict=True):
        shape = tuple(size if a == axis else n for a, n in enumerate(value.shape))
        if name:
            moves.append(picked(value, shape, first, (1,) * rank, output=len(outputs)))
            outputs.append((name, shape, value.order))
        first[axis] += size
    made = t.builder.emit(Copy(moves=tuple(moves)), [value], outputs, step=t.step.name)
    for (name, _, _), result in zip(outputs, made, strict=True):
        t.builder.bind(name, result)


def _split_sizes(t: Translation, total: int, axis: int) -> list[int]:
    given = t.optional_array(1) if t.opset >= 13 else None
    sizes = [int(size) for size in given] if given is not None else list(t.integers("split"))
    if sizes:
        return sizes
    tensors = t.builder.model.tensors
    even = -(-total // len(t.step.outputs))
    return [tensors[name].shape[axis] if name else even for name in t.step.outputs]


@translates("Slice", layout=Layout.ANY)
def slice_(t: Translation) -> None:
    """Translate Slice with constant bounds."""
    value = t.value()
    rank = len(value.shape)
    if t.opset < 10:
        starts, ends = t.integers("starts"), t.integers("ends")
        axes = t.integers("axes") or tuple(range(len(starts)))
        steps = (1,) * len(starts)
    else:
        starts, ends = _integers(t.array(1)), _integers(t.array(2))
        axes = _integers(t.array(3)) if t.has(3) else tuple(range(len(starts)))
        steps = _integers(t.array(4)) if t.has(4) else (1,) * len(starts)
    first, step = [0] * rank, [1] * rank
    for start, end, axis, stride in zip(starts, ends, axes, steps, strict=True):
        length = value.shape[axis % rank]
        # ONNX counts an end below -length as before the first element, Python as the first.
        stop = None if stride < 0 and end < -length else end
        first[axis % rank] = slice(start, stop, stride).indices(length)[0]
        step[axis % rank] = stride
    if t.shape == value.shape and all(stride == 1 for stride in step):
        t.finish(value)
        return
    move = picked(value, t.shape, first, step)
    t.finish(t.emit(Copy(moves=(move,)), [value], order=value.order))


def _integers(array: object) -> tuple[int, ...]:
    return tuple(int(each) for each in np.asarray(array).reshape(-1))


@translates("Pad", layout=Layout.ANY)
def pad(t: Translation) -> None:
    """Translate Pad: of a constant, of the edge, or reflected."""
    value = t.value()
    before = _padding(t, len(value.shape))
    mode = t.attribute("mode", "constant")
    fill = b""
    if mode == "constant":
        given = t.optional_array(2) if t.opset >= 11 else None
        number = t.attribute("value", 0.0) if given is None else given.reshape(-1)[0]
        fill = np.array(number, _numpy(value.dtype)).tobytes()
    elif mode not in ("edge", "reflect"):
        raise NotLoweredError(f"its mode is {mode!r}")
    operator = Copy(moves=padded(value, t.shape, before, mode), fill=fill)
    t.finish(t.emit(operator, [value], order=value.order))


def _padding(t: Translation, rank: int) -> list[int]:
    """Return the width of the padding in front of each axis."""
    widths = t.integers("pads") or _integers(t.array(1))
    if min(widths, default=0) < 0:
        raise NotLoweredError("it crops")
    if not t.has(3):
        return list(widths[:rank])
    before = [0] * rank
    for axis, width in zip(_integers(t.array(3)), widths, strict=False):
        before[axis % rank] = width
    return before


def _numpy(dtype: DType) -> np.dtype[np.generic]:
    try:
        return np.dtype(dtype.label)
    except TypeError:
        raise NotLoweredError(f"it pads {dtype.label}") from None


@translates("Expand")
def expand(t: Translation) -> None:
    """Translate Expand: axes of length 1 are repeated."""
    value = t.value()
    shape = (*(1,) * (len(t.shape) - len(value.shape)), *value.shape)
    value = t.builder.reshaped(value, shape, t.target)
    step = [int(old == new) for old, new in zip(shape, t.shape, strict=True)]
    move = picked(value, t.shape, (0,) * len(shape), step)
    t.finish(t.emit(Copy(moves=(move,)), [value], order=value.order))


@translates("Tile")
def tile(t: Translation) -> None:
    """Translate Tile with constant repeats."""
    value = t.value()
    move = tiled(value, t.shape, _integers(t.array(1)))
    t.finish(t.emit(Copy(moves=(move,)), [value], order=value.order))


@translates("Gather")
def gather(t: Translation) -> None:
    """Translate Gather along one axis."""
    data = t.value()
    axis = t.axis(0, len(data.shape))
    indices = t.builder.array(t.source(1))
    if indices is not None and indices.size == 1 and data.array is None:
        first = [0] * len(data.shape)
        first[axis] = int(indices.reshape(())) % data.shape[axis]
        shape = tuple(1 if a == axis else n for a, n in enumerate(data.shape))
        move = picked(data, shape, first, (1,) * len(shape))
        t.finish(t.emit(Copy(moves=(move,)), [data], shape=shape, order=data.order))
        return
    where = t.builder.as_written(t.value(1), t.target)
    if where.dtype not in (DType.INT32, DType.INT64):
        raise NotLoweredError(f"its indices are {where.dtype.label}")
    data = t.builder.as_written(data, t.target)
    t.finish(t.emit(Gather(axis=axis), [data, where]))


@translates("GatherND")
def gather_nd(t: Translation) -> None:
    """Translate GatherND of one axis, or by constants: the axes that are indexed become one."""
    data, shape = t.value(), t.builder.model.tensors[t.source(1)].shape
    if t.attribute("batch_dims", 0):
        raise NotLoweredError("it has batches")
    lengths, rest = data.shape[: shape[-1]], data.shape[shape[-1] :]
    if math.prod(data.shape) == 0:
        raise NotLoweredError("it reads nothing")
    indices = t.builder.array(t.source(1))
    if len(lengths) == 1:
        where = t.builder.as_written(t.value(1), t.target)
        where = t.builder.reshaped(where, shape[:-1], t.target)
    elif indices is None:
        raise NotLoweredError("its indices, of several axes, are not constant")
    else:
        whole = np.where(indices < 0, indices + np.array(lengths, np.int64), indices)
        if np.any(whole < 0) or np.any(whole >= lengths):
            raise NotLoweredError("an index is beyond what it reads")
        where = t.builder.constant(
            np.ravel_multi_index(tuple(np.moveaxis(whole, -1, 0)), lengths).astype(np.int64),
            t.source(1),
        )
    data = t.builder.as_written(data, t.target)
    rows = t.builder.reshaped(data, (math.prod(lengths), *rest), t.target)
    t.finish(t.emit(Gather(axis=0), [rows, where]))


@translates("DepthToSpace", layout=Layout.CHANNELS_LAST)
def depth_to_space(t: Translation) -> None:
    """Translate DepthToSpace."""
    n, c, h, w = t.value().shape
    b = t.attribute("blocksize", 1)
    if t.attribute("mode", "DCR") == "DCR":
        _regroup(t, (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2))
    else:
        _regroup(t, (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3))


@translates("SpaceToDepth", layout=Layout.CHANNELS_LAST)
def space_to_depth(t: Translation) -> None:
    """Translate SpaceToDepth."""
    n, c, h, w = t.value().shape
    b = t.attribute("blocksize", 1)
    axes = (0, 3, 5, 1, 2, 4) if t.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    _regroup(t, (n, c, h // b, b, w // b, b), axes)


def _regroup(t: Translation, parts: Shape, axes: Sequence[int]) -> None:
    """Split axes, permute them and join them again."""
    value = t.builder.reshaped(t.value(), parts, t.target)
    t.finish(t.builder.transposed(value, axes))
