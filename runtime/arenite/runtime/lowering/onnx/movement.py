"""Operators that move elements: by position, by index, or to another size."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from arenite.planner import Array, DType, Step
from arenite.planner.sizes import (
    Expression,
    bounds,
    depends,
    largest,
    same,
    same_lengths,
    smallest,
)
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import (
    Shape,
    StoredValue,
    as_written,
    channels_last,
    common_order,
    usual,
)
from arenite.runtime.lowering.moves import joined, linear, nearest, padded, picked, tiled
from arenite.runtime.lowering.onnx.blocks import blocks_of, gathered
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.lowering.translation import InputLayout
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Select
from arenite.runtime.operators.movement import (
    Copy,
    Gather,
    ScatterAdd,
    ScatterElements,
    ScatterFunction,
    ScatterSlices,
)


@translates("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def reshape(t: OnnxTranslation) -> None:
    """Translate an operator that changes only the shape."""
    t.finish(t.value())


@translates("Transpose")
def transpose(t: OnnxTranslation) -> None:
    """Translate Transpose: another order of the same bytes."""
    value = t.value()
    axes = t.integers("perm") or tuple(reversed(range(len(value.shape))))
    t.finish(t.builder.transposed(value, axes))


@translates("Concat")
def concat(t: OnnxTranslation) -> None:
    values = [t.value(position) for position in range(len(t.step.inputs))]
    # Where all are empty any one gives the order.
    values = [value for value in values if not same(math.prod(value.shape), 0)] or values[:1]
    axis = t.axis(0, len(t.shape))
    order = usual(t.shape, common_order(values))
    if t.source() in t.builder.model.caches:  # which stays where it is
        order = values[0].order
    parts = [t.builder.in_order(value, order, t.target) for value in values]
    t.finish(t.emit(joined(parts, t.shape, order, axis), parts, order=order))


@translates("Split")
def split(t: OnnxTranslation) -> None:
    """Translate Split into one step that makes all parts."""
    value = t.value()
    axis = t.axis(0, len(value.shape))
    for name, part in t.emit_parts(value, axis, _split_sizes(t, value.shape[axis], axis)):
        t.builder.bind(name, part)


def _split_sizes(t: OnnxTranslation, total: int, axis: int) -> list[int]:
    sizes = t.numbers(1) if t.opset >= 13 and t.has(1) else t.integers("split")
    if sizes:
        return list(sizes)
    tensors = t.builder.model.tensors
    even = -(-total // len(t.step.outputs))
    return [tensors[name].shape[axis] if name else even for name in t.step.outputs]


@translates("Slice", layout=InputLayout.ANY)
def slice_(t: OnnxTranslation) -> None:
    """Translate Slice with constant bounds."""
    value = t.value()
    rank = len(value.shape)
    if t.opset < 10:
        starts = t.integers("starts")
        axes = t.integers("axes") or tuple(range(len(starts)))
        steps = (1,) * len(starts)
    else:
        starts = t.numbers(1)
        axes = t.numbers(3) if t.has(3) else tuple(range(len(starts)))
        steps = t.numbers(4) if t.has(4) else (1,) * len(starts)
    first, step = [0] * rank, [1] * rank
    for start, axis, stride in zip(starts, axes, steps, strict=True):
        length = value.shape[axis % rank]
        first[axis % rank] = _first(t, start, stride, length)
        step[axis % rank] = stride
    if same_lengths(t.shape, value.shape) and all(stride == 1 for stride in step):
        t.finish(value)
        return
    move = picked(value, t.shape, first, step)
    t.finish(t.emit(Copy(moves=(move,)), [value], order=value.order))


def _first(t: OnnxTranslation, start: int, stride: int, length: int) -> int:
    """Return the first index of a slice, whatever end it has.

    Raises:
        NotLoweredError: Its start is counted from the front at some sizes, from the end at others.
    """
    lowest, highest = bounds(start, t.builder.model.dimensions)
    if lowest < 0 <= highest:
        raise NotLoweredError(f"a start between {lowest} and {highest} is unsupported")
    if highest < 0:
        start = start + length
    low, high = (0, length) if stride > 0 else (-1, length - 1)
    start = high if _is_at_least(t, start, high) else start
    start = start if _is_at_least(t, start, low) else largest(start, low)
    return start if _is_at_least(t, high, start) else smallest(start, high)


def _is_at_least(t: OnnxTranslation, one: int, other: int) -> bool:
    return bounds(one - other, t.builder.model.dimensions)[0] >= 0


@translates("Pad", layout=InputLayout.ANY)
def pad(t: OnnxTranslation) -> None:
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
        raise unsupported("mode", mode, "constant", "edge", "reflect")
    moves = padded(value, t.shape, before, mode, t.builder.model.dimensions)
    operator = Copy(moves=moves, fill=fill)
    t.finish(t.emit(operator, [value], order=value.order))


def _padding(t: OnnxTranslation, rank: int) -> list[int]:
    """Return the width of the padding in front of each axis."""
    widths = t.integers("pads") or t.numbers(1)
    if any(bounds(width, t.builder.model.dimensions)[0] < 0 for width in widths):
        raise unsupported("pads", list(widths), "numbers of at least 0")
    if not t.has(3):
        return list(widths[:rank])
    before = [0] * rank
    for axis, width in zip(t.numbers(3), widths, strict=False):
        before[axis % rank] = width
    return before


def _numpy(dtype: DType) -> np.dtype[np.generic]:
    try:
        return np.dtype(dtype.label)
    except TypeError:
        raise NotLoweredError(f"element type {dtype.label} is unsupported") from None


@translates("Expand")
def expand(t: OnnxTranslation) -> None:
    """Translate Expand: axes of length 1 are repeated."""
    value = t.value()
    shape = (*(1,) * (len(t.shape) - len(value.shape)), *value.shape)
    value = t.builder.reshaped(value, shape, t.target)
    step = [int(same(old, new)) for old, new in zip(shape, t.shape, strict=True)]
    for old, is_kept in zip(shape, step, strict=True):
        if not is_kept and not same(old, 1):
            raise NotLoweredError(f"an axis of {Expression.of(old)} elements may need repeating")
    move = picked(value, t.shape, (0,) * len(shape), step)
    t.finish(t.emit(Copy(moves=(move,)), [value], order=value.order))


@translates("Tile")
def tile(t: OnnxTranslation) -> None:
    """Translate Tile with constant repeats."""
    value = t.value()
    move = tiled(value, t.shape, t.numbers(1))
    t.finish(t.emit(Copy(moves=(move,)), [value], order=value.order))


@translates("Gather")
def gather(t: OnnxTranslation) -> None:
    """Translate Gather along one axis."""
    blocks = blocks_of(t, 0)
    if blocks is not None and t.axis(0, 2) == 0:
        gathered(t, blocks, t.value(1))
        return
    data = t.value()
    axis = t.axis(0, len(data.shape))
    indices = t.builder.integers(t.source(1))
    if indices is not None and len(indices) == 1 and data.array is None:
        first = [0] * len(data.shape)
        (index,) = indices
        first[axis] = index + data.shape[axis] if index < 0 else index
        shape = tuple(1 if a == axis else n for a, n in enumerate(data.shape))
        move = picked(data, shape, first, (1,) * len(shape))
        t.finish(t.emit(Copy(moves=(move,)), [data], shape=shape, order=data.order))
        return
    where = t.builder.as_written(t.value(1), t.target)
    require_type(where.dtype, DType.INT32, DType.INT64)
    data = t.builder.as_written(data, t.target)
    t.finish(t.emit(Gather(axis=axis), [data, where]))


@translates("GatherND")
def gather_nd(t: OnnxTranslation) -> None:
    """Translate GatherND; axes that are indexed by constants become one."""
    data, shape = t.value(), t.builder.model.tensors[t.source(1)].shape
    if t.attribute("batch_dims", 0):
        raise unsupported("batch_dims", t.attribute("batch_dims", 0), 0)
    lengths, rest = data.shape[: shape[-1]], data.shape[shape[-1] :]
    if math.prod(data.shape) == 0:
        raise NotLoweredError(f"an empty input, {data.shape}, is unsupported")
    data = t.builder.as_written(data, t.target)
    indices = t.builder.array(t.source(1))
    if indices is None or len(lengths) == 1 or any(map(depends, lengths)):
        where = t.builder.as_written(t.value(1), t.target)
        if len(lengths) == 1:
            where = t.builder.reshaped(where, shape[:-1], t.target)
        t.finish(t.emit(Gather(axis=0, num_axes=len(lengths)), [data, where]))
        return
    whole = np.where(indices < 0, indices + np.array(lengths, np.int64), indices)
    if np.any(whole < 0) or np.any(whole >= lengths):
        raise NotLoweredError(f"an index is outside the indexed axes, {lengths}")
    where = t.builder.constant(
        np.ravel_multi_index(tuple(np.moveaxis(whole, -1, 0)), lengths).astype(np.int64),
        t.source(1),
    )
    rows = t.builder.reshaped(data, (math.prod(lengths), *rest), t.target)
    t.finish(t.emit(Gather(axis=0), [rows, where]))


@translates("DepthToSpace", layout=InputLayout.CHANNELS_LAST)
def depth_to_space(t: OnnxTranslation) -> None:
    n, c, h, w = t.value().shape
    b = t.attribute("blocksize", 1)
    if t.attribute("mode", "DCR") == "DCR":
        _regroup(t, (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2))
    else:
        _regroup(t, (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3))


@translates("SpaceToDepth", layout=InputLayout.CHANNELS_LAST)
def space_to_depth(t: OnnxTranslation) -> None:
    n, c, h, w = t.value().shape
    b = t.attribute("blocksize", 1)
    axes = (0, 3, 5, 1, 2, 4) if t.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    _regroup(t, (n, c, h // b, b, w // b, b), axes)


def _regroup(t: OnnxTranslation, parts: Shape, axes: Sequence[int]) -> None:
    """Split axes, permute them and join them again."""
    value = t.builder.reshaped(t.value(), parts, t.target)
    t.finish(t.builder.transposed(value, axes))


_MAX_DEPTH = 1 << 20
"""Largest depth of a one-hot code: its indices become a constant."""


@translates("OneHot")
def one_hot(t: OnnxTranslation) -> None:
    """Translate OneHot: indices are compared with all there are, counted from either end."""
    indices = t.builder.as_written(t.value(0), t.target)
    require_type(indices.dtype, DType.INT32, DType.INT64)
    require_type(t.dtype, DType.FLOAT32, DType.INT32, DType.INT64)
    rank = len(t.shape)
    axis = t.axis(-1, rank)
    depth = t.shape[axis]
    if depth > _MAX_DEPTH or depends(depth):
        raise unsupported("depth", depth, f"up to {_MAX_DEPTH}")
    shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    indices = t.builder.reshaped(indices, shape, t.target)
    row = [depth if each == axis else 1 for each in range(rank)]

    def equal(first: int, name: str) -> StoredValue:
        places = np.arange(first, first + depth, dtype=indices.dtype.label).reshape(row)
        return _masks(t, BinaryFunction.EQUAL, [indices, t.builder.constant(places, name)], name)

    from_front, from_end = equal(0, f"{t.target}/front"), equal(-depth, f"{t.target}/end")
    is_hot = _masks(t, BinaryFunction.LOGICAL_OR, [from_front, from_end], f"{t.target}/hot")
    t.finish(t.emit(Select(), [is_hot, *_numbers(t, rank)]))


def _masks(
    t: OnnxTranslation, function: BinaryFunction, values: list[StoredValue | None], name: str
) -> StoredValue:
    return t.emit(Binary(function=function), values, dtype=DType.BOOL, name=name)


def _numbers(t: OnnxTranslation, rank: int) -> list[StoredValue]:
    """Return the numbers where a code is hot and where it is not, which one input holds."""
    off_and_on = t.array(2).reshape(-1)
    return [
        t.builder.constant(off_and_on[place].reshape((1,) * rank), f"{t.target}/{name}")
        for name, place in (("on", 1), ("off", 0))
    ]


_SCATTER_FUNCTIONS = {
    "none": ScatterFunction.REPLACE, "add": ScatterFunction.ADD,
    "mul": ScatterFunction.MULTIPLY, "min": ScatterFunction.MINIMUM,
    "max": ScatterFunction.MAXIMUM,
}  # fmt: skip


def _scattered(t: OnnxTranslation) -> tuple[ScatterFunction, list[StoredValue | None]]:
    """Return what becomes of elements, and data, indices and updates as the model has them.

    Raises:
        NotLoweredError: Something is unsupported.
    """
    reduction = t.attribute("reduction", "none")
    function = _SCATTER_FUNCTIONS.get(reduction)
    if function is None:
        raise unsupported("reduction", reduction, *_SCATTER_FUNCTIONS)
    operands = [t.builder.as_written(t.value(position), t.target) for position in range(3)]
    require_type(operands[1].dtype, DType.INT32, DType.INT64)
    if function is not ScatterFunction.REPLACE:
        require_type(
            t.dtype, DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8, DType.INT32,
            DType.INT64,
        )  # fmt: skip
    return function, [*operands]


@translates("Scatter", "ScatterElements")
def scatter_elements(t: OnnxTranslation) -> None:
    """Translate ScatterElements, and a sum of zeros and what a MaxPool told the places of."""
    function, operands = _scattered(t)
    if function is ScatterFunction.ADD and len(t.shape) == 1 and _are_zeros(t, t.source(0)):
        maker = _behind_views(t, t.source(1))
        if maker is not None and maker.operator.label == "MaxPool":  # no index is below 0
            t.finish(t.emit(ScatterAdd(), operands[1:]))
            return
    axis = t.axis(0, len(t.shape))
    operator = ScatterElements(function=function, axis=axis)
    t.finish(t.emit(operator, operands, order=as_written(len(t.shape))))


@translates("ScatterND")
def scatter_nd(t: OnnxTranslation) -> None:
    function, operands = _scattered(t)
    operator = ScatterSlices(function=function)
    t.finish(t.emit(operator, operands, order=as_written(len(t.shape))))


def _behind_views(t: OnnxTranslation, name: str) -> Step | None:
    """Return the step that makes the elements of a tensor, of any shape."""
    maker = t.producers.get(name)
    while maker is not None and maker.operator.label in ("Flatten", "Reshape"):
        maker = t.producers.get(maker.inputs[0])
    return maker


def _are_zeros(t: OnnxTranslation, name: str) -> bool:
    """Tell whether a tensor is clipped to 0."""
    maker = _behind_views(t, name)
    if maker is None or maker.operator.label != "Clip" or len(maker.inputs) < 3:
        return False
    bounds = [t.builder.array(each) for each in maker.inputs[1:]]
    return all(bound is not None and not np.any(bound) for bound in bounds)


@translates("Resize", "Upsample", layout=InputLayout.CHANNELS_LAST)
def resize(t: OnnxTranslation) -> None:
    """Translate Resize or Upsample by nearest neighbour or linearly."""
    value = t.value()
    rank = len(value.shape)
    mode = t.attribute("mode", "nearest")
    require_type(t.dtype, DType.FLOAT32)
    if rank != 4:
        raise unsupported("input rank", rank, 4)
    if not same_lengths(value.shape[:2], t.shape[:2]):
        raise NotLoweredError(
            f"resizing {value.shape} to {t.shape} is unsupported, batch and channels must stay"
        )
    if mode not in ("nearest", "linear"):
        raise unsupported("mode", mode, "nearest", "linear")
    if t.attribute("antialias", 0):
        raise unsupported("antialias", 1, 0)
    value = t.builder.in_order(value, channels_last(4), t.target)
    scales = _scales(t)
    axes = [_source_places(t, value.shape[axis], t.shape[axis], scales[axis]) for axis in (2, 3)]
    height, width = (bounds(each, t.builder.model.dimensions)[1] for each in value.shape[2:])
    if mode == "nearest":
        rows, columns = (_rounded(t, places) for places in axes)
        operator = nearest(rows, columns, height, width)
    else:
        operator = linear(axes[0], axes[1], height, width)
    t.finish(t.emit(operator, [value], order=channels_last(4)))


def _scales(t: OnnxTranslation) -> tuple[float, ...]:
    """Return the factor of each axis, exactly as the model states it if it does."""
    is_upsample = t.kind == "Upsample"
    position = 1 if is_upsample or t.opset < 11 else 2
    given = t.optional_array(position)
    if given is not None and given.size == 4 and given.dtype != object:
        return tuple(float(scale) for scale in given.reshape(-1))
    source = t.value().shape
    for old, new in zip(source, t.shape, strict=True):
        common = math.gcd(old, new) or 1
        if not same(new * (int(old) // common), old * (int(new) // common)):
            raise NotLoweredError(
                f"resizing {Expression.of(old)} to {Expression.of(new)} elements is unsupported, "
                "one scale for all sizes is"
            )
    return tuple(new / old for new, old in zip(t.shape, source, strict=True))


def _source_places(t: OnnxTranslation, old: int, new: int, scale: float) -> Array:
    """Return the place in the input of each row or column of the output, where it has most."""
    if t.opset < 11 or t.kind == "Upsample":
        mode = "asymmetric"
    else:
        mode = t.attribute("coordinate_transformation_mode", "half_pixel")
    if mode == "align_corners" and (depends(old) or depends(new)):
        raise unsupported("coordinate_transformation_mode", mode, "one scale for all sizes")
    least, new = bounds(new, t.builder.model.dimensions)
    if mode == "pytorch_half_pixel" and least <= 1 < new:
        raise unsupported("coordinate_transformation_mode", mode, "more than one element")
    x = np.arange(new, dtype=np.float32)
    factor = np.float32(scale)
    if mode == "asymmetric":
        return x / factor
    if mode == "align_corners":
        return x * np.float32(old - 1) / np.float32(max(new - 1, 1))
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and new > 1):
        return (x + np.float32(0.5)) / factor - np.float32(0.5)
    if mode == "pytorch_half_pixel":
        return np.zeros(new, np.float32)
    raise unsupported(
        "coordinate_transformation_mode", mode, "half_pixel", "pytorch_half_pixel",
        "align_corners", "asymmetric",
    )  # fmt: skip


def _rounded(t: OnnxTranslation, places: Array) -> Array:
    mode = t.attribute("nearest_mode", "round_prefer_floor")
    if t.opset < 11 or t.kind == "Upsample":
        mode = "floor"
    rounding: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
        "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if mode not in rounding:
        raise unsupported("nearest_mode", mode, *rounding)
    return rounding[mode](places)
