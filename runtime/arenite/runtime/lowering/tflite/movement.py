"""Operators that move elements: by position, by index, or to another size."""

import math
from collections.abc import Sequence

import numpy as np

from arenite.planner import Array, DType
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Shape, StoredValue, as_written, common_order
from arenite.runtime.lowering.moves import joined, linear, nearest, padded, picked, tiled
from arenite.runtime.lowering.tflite.translation import TfliteTranslation, translates
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Convert, Select
from arenite.runtime.operators.movement import Copy, Gather, ScatterAdd
from arenite.runtime.operators.reduction import Reduce, ReduceFunction, TopK


@translates("EXPAND_DIMS", "RESHAPE", "SQUEEZE", int16=True)
def reshape(t: TfliteTranslation) -> None:
    """Translate an operator that changes only the shape."""
    t.finish(t.value())


@translates("DENSIFY")
def densify(t: TfliteTranslation) -> None:
    """Translate DENSIFY of a constant, whose elements the importer has made dense."""
    t.array(0)
    t.finish(t.value())


@translates("TRANSPOSE", int16=True)
def transpose(t: TfliteTranslation) -> None:
    """Translate TRANSPOSE: nothing moves until an operator needs the order of the model."""
    t.finish(t.builder.transposed(t.stored(), t.integers(1)))


@translates("CONCATENATION", int16=True)
def concatenation(t: TfliteTranslation) -> None:
    """Translate CONCATENATION; parts with another scale are requantised."""
    axis = t.integer("Axis", 0) % len(t.shape)
    values = [_rescaled(t, t.stored(position)) for position in range(len(t.step.inputs))]
    order = common_order(values)
    parts = [t.builder.in_order(value, order, t.target) for value in values]
    t.finish(t.emit(joined(parts, t.shape, order, axis), parts, order=order))


def _rescaled(t: TfliteTranslation, value: StoredValue) -> StoredValue:
    wanted = t.builder.stated_quantisation(t.target)
    if wanted is None or t.builder.quantisation(value) == wanted:
        return value
    return t.builder.emit_one(
        Convert(), [value], f"{t.target}/rescaled", value.shape, value.order, quantisation=wanted
    )


@translates("PACK", int16=True)
def pack(t: TfliteTranslation) -> None:
    rank = len(t.shape)
    axis = t.integer("Axis", 0) % rank
    parts: list[StoredValue] = []
    for position in range(len(t.step.inputs)):
        value = t.value(position)
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        parts.append(t.builder.reshaped(value, shape, t.target))
    t.finish(t.emit(joined(parts, t.shape, as_written(rank), axis), parts))


@translates("SPLIT", "SPLIT_V", int16=True)
def split(t: TfliteTranslation) -> None:
    """Translate SPLIT or SPLIT_V into one step that makes all parts."""
    is_even = t.kind == "SPLIT"
    value = t.value(1 if is_even else 0)
    (axis,) = t.integers(0 if is_even else 2)
    _parts(t, value, axis % len(value.shape))


@translates("UNPACK", int16=True)
def unpack(t: TfliteTranslation) -> None:
    value = t.value()
    axis = t.integer("Axis", 0) % len(value.shape)
    _parts(t, value, axis, is_unpacked=True)


def _parts(
    t: TfliteTranslation, value: StoredValue, axis: int, *, is_unpacked: bool = False
) -> None:
    sizes = [1 if is_unpacked else t.builder.shape(name)[axis] for name in t.step.outputs]
    for name, part in t.emit_parts(value, axis, sizes):
        t.builder.bind(name, t.builder.reshaped(part, t.builder.shape(name), name))


@translates("SLICE", int16=True)
def slice_(t: TfliteTranslation) -> None:
    """Translate SLICE with constant bounds."""
    value = t.value()
    _pick(t, value, t.integers(1), (1,) * len(value.shape), t.shape)


@translates("STRIDED_SLICE", int16=True)
def strided_slice(t: TfliteTranslation) -> None:
    """Translate STRIDED_SLICE with constant bounds."""
    value = t.value()
    begins, ends, steps = (t.integers(position) for position in (1, 2, 3))
    shrink, begin_mask, end_mask = (
        t.integer(name, 0) for name in ("ShrinkAxisMask", "BeginMask", "EndMask")
    )
    picks: list[tuple[int, int, int]] = []  # first, step, count
    for place, length in zip(_places(t, len(begins), value.shape), value.shape, strict=True):
        if place is None:
            picks.append((0, 1, length))
        elif shrink >> place & 1:
            picks.append((begins[place] % length, 1, 1))
        else:
            begin = None if begin_mask >> place & 1 else begins[place]
            end = None if end_mask >> place & 1 else ends[place]
            span = range(*slice(begin, end, steps[place]).indices(length))
            picks.append((span.start, steps[place], len(span)))
    first, step, shape = zip(*picks, strict=True) if picks else ((), (), ())
    _pick(t, value, first, step, shape)


def _places(t: TfliteTranslation, count: int, shape: Shape) -> list[int | None]:
    """Return for each axis the place of its bounds, None where it is taken whole.

    Bounds of a new axis belong to none; an ellipsis stands for the axes that have no bounds.
    """
    new, ellipsis = t.integer("NewAxisMask", 0), t.integer("EllipsisMask", 0)
    dots = next((place for place in range(count) if ellipsis >> place & 1), count)
    bounds = [p for p in range(count) if p == dots or not new >> p & 1]
    if dots == count:
        bounds.append(dots)
    whole_axes = len(shape) - (len(bounds) - 1)
    if whole_axes < 0:
        raise NotLoweredError(
            f"bounds for {len(bounds) - 1} axes do not fit an input of shape {shape}"
        )
    if ellipsis and not whole_axes:
        raise NotLoweredError(
            "an ellipsis for no axis is unsupported, as TFLite kernels misread it"
        )
    found: list[int | None] = []
    for place in bounds:
        found += [None] * whole_axes if place == dots else [place]
    return found


def _pick(
    t: TfliteTranslation,
    value: StoredValue,
    first: Sequence[int],
    step: Sequence[int],
    shape: Shape,
) -> None:
    if shape == value.shape and all(stride == 1 for stride in step):
        t.finish(value)
        return
    move = picked(value, shape, first, step)
    t.finish(t.emit(Copy(moves=(move,)), [value], shape=shape))


@translates("MIRROR_PAD", "PAD", "PADV2", int16=True)
def pad(t: TfliteTranslation) -> None:
    value = t.stored()
    widths = t.array(1).reshape(-1, 2)
    before = [int(width) for width in widths[:, 0]]
    if int(widths.min(initial=0)) < 0:
        raise unsupported("paddings", widths.tolist(), "numbers of at least 0")
    if t.kind == "MIRROR_PAD":
        mode = "symmetric" if t.integer("Mode", 0) else "reflect"
        operator = Copy(moves=padded(value, t.shape, before, mode))
        t.finish(t.emit(operator, [value], order=value.order))
        return
    quantisation = t.builder.stated_quantisation(t.target)
    number = quantisation.zero_point if quantisation is not None else 0
    if t.kind == "PADV2":
        number = t.array(2).reshape(-1)[0]
    fill = np.array(number, t.numpy_dtype).tobytes()
    operator = Copy(moves=padded(value, t.shape, before, "constant"), fill=fill)
    t.finish(t.emit(operator, [value], order=value.order))


@translates("REVERSE_V2", int16=True)
def reverse(t: TfliteTranslation) -> None:
    value = t.value()
    rank = len(value.shape)
    axes = {axis % rank for axis in t.integers(1)}
    first = [value.shape[axis] - 1 if axis in axes else 0 for axis in range(rank)]
    step = [-1 if axis in axes else 1 for axis in range(rank)]
    if math.prod(value.shape) == 0:
        t.finish(value)
        return
    t.finish(t.emit(Copy(moves=(picked(value, value.shape, first, step),)), [value]))


@translates("ZEROS_LIKE", int16=True)
def zeros_like(t: TfliteTranslation) -> None:
    fill = np.zeros((), t.numpy_dtype).tobytes()
    t.finish(t.emit(Copy(moves=(), fill=fill), [t.value()]))


@translates("FILL", int16=True)
def fill(t: TfliteTranslation) -> None:
    """Translate FILL with constant lengths."""
    shape = t.integers(0)
    value = t.builder.reshaped(t.value(1), (1,) * len(shape), t.target)
    move = picked(value, shape, (0,) * len(shape), (0,) * len(shape))
    t.finish(t.emit(Copy(moves=(move,)), [value]))


@translates("TILE", int16=True)
def tile(t: TfliteTranslation) -> None:
    value = t.value()
    move = tiled(value, t.shape, t.integers(1))
    t.finish(t.emit(Copy(moves=(move,)), [value]))


@translates("BROADCAST_TO", int16=True)
def broadcast_to(t: TfliteTranslation) -> None:
    value = t.value()
    shape = (*(1,) * (len(t.shape) - len(value.shape)), *value.shape)
    value = t.builder.reshaped(value, shape, t.target)
    step = [int(old == new) for old, new in zip(shape, t.shape, strict=True)]
    move = picked(value, t.shape, (0,) * len(shape), step)
    t.finish(t.emit(Copy(moves=(move,)), [value]))


@translates("DEPTH_TO_SPACE", int16=True)
def depth_to_space(t: TfliteTranslation) -> None:
    n, h, w, c = t.value().shape
    b = t.integer("BlockSize", 1)
    _regroup(t, (n, h, w, b, b, c // (b * b)), (0, 1, 3, 2, 4, 5))


@translates("SPACE_TO_DEPTH", int16=True)
def space_to_depth(t: TfliteTranslation) -> None:
    n, h, w, c = t.value().shape
    b = t.integer("BlockSize", 1)
    _regroup(t, (n, h // b, b, w // b, b, c), (0, 1, 3, 2, 4, 5))


def _regroup(t: TfliteTranslation, parts: Shape, axes: Sequence[int]) -> None:
    """Split axes, permute them and join them again."""
    value = t.builder.transposed(t.builder.reshaped(t.value(), parts, t.target), axes)
    t.finish(t.builder.as_written(value, t.target))


_MAX_DEPTH = 1 << 20
"""Largest depth of a one-hot code: its indices become a constant."""


@translates("GATHER", int16=True)
def gather(t: TfliteTranslation) -> None:
    data, indices = t.value(0), _indices(t, 1)
    if not data.shape:
        raise NotLoweredError("a scalar input is unsupported")
    batch_axes = t.integer("BatchDims", 0) % (len(indices.shape) + 1)
    operator = Gather(axis=t.integer("Axis", 0) % len(data.shape), batch_axes=batch_axes)
    t.finish(t.emit(operator, [data, indices]))


@translates("EMBEDDING_LOOKUP")
def embedding_lookup(t: TfliteTranslation) -> None:
    """Translate EMBEDDING_LOOKUP; constant rows of integers become numbers."""
    data = t.weights(1) if t.builder.array(t.source(1)) is not None else t.value(1)
    t.finish(t.emit(Gather(axis=0), [data, _indices(t, 0)]))


@translates("GATHER_ND", int16=True)
def gather_nd(t: TfliteTranslation) -> None:
    """Translate GATHER_ND: the axes that are indexed become one, and so do their indices."""
    data, indices = t.value(0), _indices(t, 1)
    if not indices.shape:
        raise NotLoweredError("scalar indices are unsupported")
    lengths = data.shape[: indices.shape[-1]]
    if len(lengths) != indices.shape[-1] or math.prod(lengths) == 0:
        raise NotLoweredError(
            f"indices of shape {indices.shape} do not fit an input of shape {data.shape}"
        )
    rest = data.shape[len(lengths) :]
    rows = t.builder.reshaped(data, (math.prod(lengths), *rest), t.target)
    places = _joined(t, indices, lengths)
    shape = (*places.shape, *rest)
    t.finish(t.emit(Gather(axis=0), [rows, places], shape=shape))


@translates("SCATTER_ND")
def scatter_nd(t: TfliteTranslation) -> None:
    """Translate SCATTER_ND: the axes that are indexed become one, and so do their indices."""
    indices, updates = _indices(t, 0), t.value(1)
    shape = t.integers(2)
    lengths = shape[: indices.shape[-1]] if indices.shape else ()
    if shape != t.shape or len(lengths) != indices.shape[-1] or math.prod(shape) == 0:
        raise NotLoweredError(
            f"indices of shape {indices.shape} do not fit an output of shape {shape}"
        )
    rest = shape[len(lengths) :]
    places = _joined(t, indices, lengths)
    t.finish(t.emit(ScatterAdd(), [places, updates], shape=(math.prod(lengths), *rest)))


@translates("TOPK_V2")
def top_k(t: TfliteTranslation) -> None:
    """Translate TOPK_V2 with a constant number."""
    value = t.value()
    (count,) = t.integers(1)
    shape = (*value.shape[:-1], count)
    if not value.shape or not 0 < count <= value.shape[-1]:
        raise NotLoweredError(f"k={count} does not fit an input of shape {value.shape}")
    types = [t.builder.model.tensors[name].dtype for name in t.step.outputs]
    t.emit_all(TopK(), [value], [(name, shape) for name in t.step.outputs], types)


def _joined(t: TfliteTranslation, indices: StoredValue, lengths: tuple[int, ...]) -> StoredValue:
    """Return indices of some axes as those of one, by their strides.

    An index that is beyond its axis makes the sum one beyond all, which a guarded session refuses.

    Raises:
        NotLoweredError: A constant index is beyond its axis, or sums exceed their type.
    """
    factors = np.array([math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))])
    shape, count = indices.shape[:-1], math.prod(lengths)
    if len(lengths) == 1:
        return t.builder.reshaped(indices, shape, t.target)
    dtype = np.dtype(indices.dtype.label)
    factors = factors.astype(dtype)
    if indices.array is not None:
        # Of a constant the sum is one too. Negative indices are errors in TFLite.
        if np.any(indices.array < 0) or np.any(indices.array >= lengths):
            raise NotLoweredError(f"an index is outside the indexed axes, {lengths}")
        total = (indices.array * factors).sum(-1, dtype=factors.dtype)
        return t.builder.constant(np.asarray(total), t.source(1))
    if count * len(lengths) > np.iinfo(dtype).max:
        raise unsupported(
            "indexed elements", count, f"up to {np.iinfo(dtype).max // len(lengths)}"
        )
    f = BinaryFunction

    def constant(numbers: Array, name: str) -> StoredValue:
        return t.builder.constant(numbers.astype(dtype), f"{t.target}/{name}")

    def binary(
        function: BinaryFunction, one: StoredValue, other: StoredValue, kind: DType
    ) -> StoredValue:
        name = f"{t.target}/{function.value}"
        return t.builder.emit_one(
            Binary(function=function), [one, other], name, indices.shape, dtype=kind
        )

    below = binary(f.LESS, indices, constant(np.zeros(1), "none"), DType.BOOL)
    above = binary(f.GREATER_EQUAL, indices, constant(np.array(lengths), "lengths"), DType.BOOL)
    beyond = binary(f.LOGICAL_OR, below, above, DType.BOOL)
    scaled = binary(f.MULTIPLY, indices, constant(factors, "strides"), indices.dtype)
    most = constant(np.array([count]), "most")
    checked = t.builder.emit_one(
        Select(), [beyond, most, scaled], f"{t.target}/checked", indices.shape, dtype=indices.dtype
    )
    total = Reduce(function=ReduceFunction.SUM, axes=(len(shape),))
    return t.builder.emit_one(total, [checked], f"{t.target}/places", shape)


@translates("ONE_HOT")
def one_hot(t: TfliteTranslation) -> None:
    """Translate ONE_HOT: indices are compared with all there are."""
    indices = _indices(t, 0)
    rank = len(t.shape)
    axis = t.integer("Axis", -1) % rank
    depth = t.shape[axis]
    if depth > _MAX_DEPTH:
        raise unsupported("depth", depth, f"up to {_MAX_DEPTH}")
    shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    all_indices = np.arange(depth, dtype=indices.dtype.label)
    all_indices = all_indices.reshape([depth if each == axis else 1 for each in range(rank)])
    operands = [
        t.builder.reshaped(indices, shape, t.target),
        t.builder.constant(all_indices, f"{t.target}/all"),
    ]
    equal = Binary(function=BinaryFunction.EQUAL)
    is_hot = t.builder.emit_one(equal, operands, f"{t.target}/hot", t.shape, dtype=DType.BOOL)
    values = [t.builder.reshaped(t.value(p), (1,) * rank, t.target) for p in (2, 3)]
    t.finish(t.emit(Select(), [is_hot, *values]))


def _indices(t: TfliteTranslation, position: int) -> StoredValue:
    indices = t.value(position)
    require_type(indices.dtype, DType.INT32, DType.INT64)
    return indices


@translates("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(t: TfliteTranslation) -> None:
    """Translate a resize of rows and columns."""
    value = t.value()
    _, height, width, _ = value.shape
    rows, columns = _source_places(t, height, t.shape[1]), _source_places(t, width, t.shape[2])
    if t.kind == "RESIZE_BILINEAR":
        operator = linear(rows, columns, height, width)
    else:
        # Halves are rounded up, not to even.
        half = 0.5 if t.integer("AlignCorners", 0) else 0.0
        rows, columns = (np.floor(each.astype(np.float64) + half) for each in (rows, columns))
        operator = nearest(rows, columns, height, width)
    t.finish(t.emit(operator, [value]))


def _source_places(t: TfliteTranslation, old: int, new: int) -> Array:
    """Return the place in the input of each row or column of the output."""
    if t.integer("AlignCorners", 0) and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    else:
        scale = np.float32(old) / np.float32(new)
    index = np.arange(new, dtype=np.float32)
    if not t.integer("HalfPixelCenters", 0):
        return index * scale
    is_nearest = t.kind == "RESIZE_NEAREST_NEIGHBOR"
    places: Array = (index + np.float32(0.5)) * scale
    return places if is_nearest else places - np.float32(0.5)
