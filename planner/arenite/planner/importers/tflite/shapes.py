"""The shapes that TFLite operators give their outputs, from the shapes of their inputs.

Asked where an input is resized, or a value computed from a shape; an operator that is not listed
is then refused.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from arenite.planner.operators.imported import AttributeValue
from arenite.planner.operators.windows import AutoPad, num_positions
from arenite.planner.programs.program import Array
from arenite.planner.sizes import Size, depends, largest, same, same_lengths, smallest

Shape: TypeAlias = tuple[int, ...]
Options: TypeAlias = Mapping[str, int | float | bool | tuple[int, ...]]


def whole(value: float) -> int:
    """Return a number as an integer; a size stays one."""
    return value if isinstance(value, Size) else int(value)


class MisfitError(Exception):
    """The operator does not take inputs of these shapes."""


class UnknownShapeError(MisfitError):
    """The shape of the output depends on values of the run."""


@dataclass(frozen=True, slots=True)
class Resized:
    """An operator some of whose inputs have another shape than in the file.

    Attributes:
        inputs: Shapes of its inputs, by position; () where one is left out.
        values: Elements of the inputs that are known before the run, by position.
        outputs: Shapes of its outputs as the file states them.
        options: Its options, by the schema's names.
        attributes: How its window slides, if it has one.
    """

    inputs: Sequence[Shape]
    values: Mapping[int, Array]
    outputs: Sequence[Shape]
    options: Options
    attributes: Mapping[str, AttributeValue]

    @property
    def source(self) -> Shape:
        """Shape of the first input."""
        return self.inputs[0]

    def integers(self, position: int) -> Shape:
        """Return the elements of an input that must be known."""
        if position not in self.values:
            raise UnknownShapeError(f"input {position} is unknown before the run")
        return tuple(map(whole, self.values[position].reshape(-1).tolist()))

    def integer(self, name: str, default: int = 0) -> int:
        """Return an option that is an integer."""
        value = self.options.get(name, default)
        return int(value) if isinstance(value, int | bool) else default

    def axis(self, value: int, rank: int | None = None) -> int:
        """Return an axis of the first input, counted from the front."""
        rank = len(self.source) if rank is None else rank
        require(-rank <= value < rank, f"axis {value} does not exist")
        return value % rank

    def pair(self, name: str, default: tuple[int, int] = (1, 1)) -> tuple[int, int]:
        """Return an attribute of rows and columns."""
        value = self.attributes.get(name, default)
        assert isinstance(value, tuple)
        return int(value[0]), int(value[1])


def require(fits: bool, reason: str) -> None:
    """Raise unless it fits."""
    if not fits:
        raise MisfitError(reason)


ShapesByCode: TypeAlias = Mapping[str, Callable[[Resized], list[Shape]]]
"""The shapes that operators make, by the schema's names of them."""


def _kept(r: Resized) -> list[Shape]:
    return [r.source for _ in r.outputs]


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that all of these broadcast to."""
    try:
        found = np.broadcast_shapes(*shapes)
        made = tuple(
            next(
                shape[axis]
                for shape in sorted(shapes, key=lambda shape: -sum(map(depends, shape)))
                if -axis <= len(shape) and shape[axis] == found[axis]
            )
            for axis in range(-len(found), 0)
        )
        _require_same(shapes, made)
        return made
    except ValueError as error:
        listed = " and ".join(map(str, shapes))
        raise MisfitError(f"inputs {listed} do not broadcast") from error


def _require_same(shapes: Sequence[Shape], made: Shape) -> None:
    for shape in shapes:
        for length, found in zip(reversed(shape), reversed(made), strict=False):
            is_one = length == 1 and not depends(length)
            require(is_one or same(length, found), f"lengths {length!r} and {found!r} may differ")


def _divides(length: int, divisor: int) -> bool:
    """Tell whether a length is a multiple at all sizes."""
    return same(length // divisor * divisor, length)


def _broadcast_to(r: Resized) -> list[Shape]:
    shape = r.integers(1)
    require(broadcast(r.source, shape) == shape, f"{r.source} does not broadcast to {shape}")
    return [shape]


def _of_state(r: Resized) -> list[Shape]:
    require(r.source == r.outputs[0], f"variable of shape {r.outputs[0]} is assigned {r.source}")
    return [r.source]


ELEMENTWISE: ShapesByCode = {
    **dict.fromkeys(
        ("ABS", "CAST", "CEIL", "COMPLEX_ABS", "COS", "DENSIFY", "DEQUANTIZE", "ELU", "EXP",
         "FLOOR", "GELU", "HARD_SWISH", "IMAG", "L2_NORMALIZATION", "LEAKY_RELU", "LOG",
         "LOGICAL_NOT", "LOGISTIC", "LOG_SOFTMAX", "NEG", "QUANTIZE", "REAL", "RELU", "RELU6",
         "RELU_0_TO_1", "RELU_N1_TO_1", "REVERSE_V2", "ROUND", "RSQRT", "SIN", "SOFTMAX", "SQRT",
         "SQUARE", "TANH"),
        _kept,
    ),
    **dict.fromkeys(
        ("ADD", "DIV", "EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "LESS",
         "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "MAXIMUM", "MINIMUM", "MUL", "NOT_EQUAL",
         "POW", "PRELU", "SELECT_V2", "SQUARED_DIFFERENCE", "SUB"),
        lambda r: [broadcast(*r.inputs)],
    ),
    **dict.fromkeys(("ASSIGN_VARIABLE", "READ_VARIABLE"), _of_state),
    "BROADCAST_ARGS": lambda r: [(max(math.prod(each) for each in r.inputs),)],
    "BROADCAST_TO": _broadcast_to,
}  # fmt: skip


def _window(r: Resized, kernel: tuple[int, int], channels: int) -> list[Shape]:
    require(len(r.source) == 4, f"input has rank {len(r.source)}, expected 4")
    strides, dilations = r.pair("strides"), r.pair("dilations")
    mode = AutoPad(str(r.attributes.get("auto_pad", AutoPad.VALID)))
    sizes = [
        num_positions(r.source[1 + axis], kernel[axis], strides[axis], dilations[axis], mode)
        if strides[axis] > 0
        else 0
        for axis in range(2)
    ]
    require(min(sizes) > 0, f"window is larger than {r.source[1:3]}")
    return [(r.source[0], *sizes, channels)]


def _convolution(r: Resized) -> list[Shape]:
    weights = r.inputs[1]
    require(len(weights) == 4 and len(r.source) == 4, "input and filter must have rank 4")
    groups = r.source[3] % weights[3] if weights[3] else 1
    require(groups == 0, f"input has {r.source[3]} channels, the filter {weights[3]}")
    return _window(r, (weights[1], weights[2]), weights[0])


def _depthwise(r: Resized) -> list[Shape]:
    weights = r.inputs[1]
    require(len(weights) == 4 and len(r.source) == 4, "input and filter must have rank 4")
    require(
        bool(r.source[3]) and weights[3] % r.source[3] == 0,
        f"input has {r.source[3]} channels, the filter {weights[3]}",
    )
    return _window(r, (weights[1], weights[2]), weights[3])


def _pool(r: Resized) -> list[Shape]:
    return _window(r, r.pair("kernel_shape"), r.source[-1] if r.source else 0)


def _resize(r: Resized) -> list[Shape]:
    rows, columns = r.integers(1)
    require(len(r.source) == 4, f"input has rank {len(r.source)}, expected 4")
    return [(r.source[0], rows, columns, r.source[3])]


def _space_to_batch(r: Resized) -> list[Shape]:
    blocks, pads = r.integers(1), r.integers(2)
    axes = len(blocks)
    require(
        len(pads) == 2 * axes < 2 * len(r.source), f"block_shape does not fit rank {len(r.source)}"
    )
    lengths = [r.source[1 + i] + pads[2 * i] + pads[2 * i + 1] for i in range(axes)]
    fits = all(block > 0 and _divides(n, block) for n, block in zip(lengths, blocks, strict=True))
    require(fits, f"{tuple(lengths)} does not divide into blocks of {blocks}")
    spatial = [n // block for n, block in zip(lengths, blocks, strict=True)]
    return [(r.source[0] * math.prod(blocks), *spatial, *r.source[1 + axes :])]


def _batch_to_space(r: Resized) -> list[Shape]:
    blocks, crops = r.integers(1), r.integers(2)
    axes = len(blocks)
    require(
        len(crops) == 2 * axes < 2 * len(r.source),
        f"block_shape does not fit rank {len(r.source)}",
    )
    count = math.prod(blocks)
    require(
        count > 0 and _divides(r.source[0], count),
        f"batch {r.source[0]} is not a multiple of {count}",
    )
    spatial = [r.source[1 + i] * blocks[i] - crops[2 * i] - crops[2 * i + 1] for i in range(axes)]
    require(min(spatial) >= 0, "crops exceed the image")
    return [(r.source[0] // count, *spatial, *r.source[1 + axes :])]


def _depth_to_space(r: Resized) -> list[Shape]:
    n, rows, columns, channels = r.source if len(r.source) == 4 else (0, 0, 0, -1)
    block = r.integer("BlockSize", 1)
    require(
        block > 0 and channels >= 0 and not channels % block**2,
        f"block_size={block} does not fit {r.source}",
    )
    return [(n, rows * block, columns * block, channels // block**2)]


def _space_to_depth(r: Resized) -> list[Shape]:
    n, rows, columns, channels = r.source if len(r.source) == 4 else (0, -1, 0, 0)
    block = r.integer("BlockSize", 1)
    fits = block > 0 and rows >= 0 and _divides(rows, block) and _divides(columns, block)
    require(fits, f"block_size={block} does not fit {r.source}")
    return [(n, rows // block, columns // block, channels * block**2)]


IMAGES: ShapesByCode = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), _pool),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": _space_to_depth,
}


def _reshape(r: Resized) -> list[Shape]:
    new_shape = r.options.get("NewShape", ())
    wanted = r.integers(1) if len(r.inputs) > 1 else new_shape
    assert isinstance(wanted, tuple)
    count, known = math.prod(r.source), math.prod(n for n in wanted if n != -1)
    require(
        wanted.count(-1) <= 1 and (same(known, count) if -1 not in wanted else bool(known)),
        f"cannot reshape {r.source} to {wanted}, fixed in the file",
    )
    require(not known or _divides(count, known), f"cannot reshape {r.source} to {wanted}")
    return [tuple(count // known if n == -1 else n for n in wanted)]


def _expand_dims(r: Resized) -> list[Shape]:
    axis = r.axis(r.integers(1)[0], len(r.source) + 1)
    return [(*r.source[:axis], 1, *r.source[axis:])]


def _squeeze(r: Resized) -> list[Shape]:
    stated = r.options.get("SqueezeDims", ())
    assert isinstance(stated, tuple)
    axes = {r.axis(axis) for axis in stated}
    axes = axes or {axis for axis, length in enumerate(r.source) if length == 1}
    require(
        all(same(r.source[axis], 1) for axis in axes),
        f"cannot squeeze axes {stated} of {r.source}",
    )
    return [tuple(length for axis, length in enumerate(r.source) if axis not in axes)]


def _transpose(r: Resized) -> list[Shape]:
    axes = [r.axis(axis) for axis in r.integers(1)]
    require(
        sorted(axes) == list(range(len(r.source))), f"permutation {axes} does not fit {r.source}"
    )
    return [tuple(r.source[axis] for axis in axes)]


def _concatenation(r: Resized) -> list[Shape]:
    axis = r.axis(r.integer("Axis"))
    others = [(*shape[:axis], *shape[axis + 1 :]) for shape in r.inputs]
    fits = all(same_lengths(each, others[0]) for each in others)
    require(fits, f"cannot concatenate {' and '.join(map(str, r.inputs))}")
    total = sum(shape[axis] for shape in r.inputs)
    return [(*r.source[:axis], total, *r.source[axis + 1 :])]


def _pack(r: Resized) -> list[Shape]:
    require(all(same_lengths(each, r.source) for each in r.inputs), "inputs differ in shape")
    axis = r.axis(r.integer("Axis"), len(r.source) + 1)
    return [(*r.source[:axis], len(r.inputs), *r.source[axis:])]


def _unpack(r: Resized) -> list[Shape]:
    axis = r.axis(r.integer("Axis"))
    require(
        same(r.source[axis], len(r.outputs)),
        f"axis {axis} has length {r.source[axis]}, expected {len(r.outputs)}",
    )
    return [(*r.source[:axis], *r.source[axis + 1 :])] * len(r.outputs)


def _split(r: Resized) -> list[Shape]:
    whole, axis = r.inputs[1], r.axis(r.integers(0)[0], len(r.inputs[1]))
    count = len(r.outputs)
    require(_divides(whole[axis], count), f"axis {axis} of {whole} does not split into {count}")
    return [(*whole[:axis], whole[axis] // count, *whole[axis + 1 :])] * count


def _split_v(r: Resized) -> list[Shape]:
    sizes, axis = list(r.integers(1)), r.axis(r.integers(2)[0])
    rest = r.source[axis] - sum(size for size in sizes if size != -1)
    sizes = [rest if size == -1 else size for size in sizes]
    fits = min(sizes, default=0) >= 0 and same(sum(sizes), r.source[axis])
    require(fits and len(sizes) == len(r.outputs), f"{r.source} does not split into {sizes}")
    return [(*r.source[:axis], size, *r.source[axis + 1 :]) for size in sizes]


def _pad(r: Resized) -> list[Shape]:
    widths = r.integers(1)
    require(len(widths) == 2 * len(r.source), f"paddings do not fit {r.source}")
    before, after = widths[::2], widths[1::2]
    lengths = zip(r.source, before, after, strict=True)
    return [tuple(length + b + a for length, b, a in lengths)]


def _tile(r: Resized) -> list[Shape]:
    times = r.integers(1)
    require(len(times) == len(r.source), f"multiples {times} do not fit {r.source}")
    return [tuple(length * n for length, n in zip(r.source, times, strict=True))]


def _slice(r: Resized) -> list[Shape]:
    begins, sizes = r.integers(1), r.integers(2)
    require(len(begins) == len(sizes) == len(r.source), f"begin and size do not fit {r.source}")
    found = []
    for length, begin, size in zip(r.source, begins, sizes, strict=True):
        found.append(length - begin if size == -1 else size)
        require(
            0 <= begin <= length and 0 <= found[-1] <= length - begin,
            f"the slice leaves {r.source}",
        )
    return [tuple(found)]


def strided(r: Resized) -> list[slice | int]:
    """Return the index that STRIDED_SLICE takes of its first input."""
    begins, ends, steps = (r.integers(position) for position in (1, 2, 3))
    if r.integer("EllipsisMask") or r.integer("NewAxisMask"):
        raise UnknownShapeError("ellipsis_mask and new_axis_mask are unsupported")
    require(0 not in steps, "a step is 0")
    require(
        len(begins) == len(ends) == len(steps) <= len(r.source),
        f"begin, end and strides do not fit {r.source}",
    )
    index: list[slice | int] = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if r.integer("ShrinkAxisMask") >> axis & 1:
            index.append(r.axis(begin, r.source[axis]))
            continue
        first = None if r.integer("BeginMask") >> axis & 1 else begin
        last = None if r.integer("EndMask") >> axis & 1 else end
        index.append(slice(first, last, step))
    return index


def _num_taken(taken: slice, length: int) -> int:
    """Return how many elements a slice takes of an axis."""
    start, stop, step = taken.start, taken.stop, taken.step
    if not any(depends(each) for each in (start, stop, step, length)):
        return len(range(*taken.indices(length)))
    require(step > 0, f"a step of {step} along an axis that has a range")
    first, last = (
        default if place is None else smallest(place if place >= 0 else place + length, length)
        for place, default in ((start, 0), (stop, length))
    )
    return largest(0, -(-(last - first) // step))


def _strided_slice(r: Resized) -> list[Shape]:
    index = strided(r)
    found = [
        _num_taken(each, length)
        for each, length in zip(index, r.source, strict=False)
        if isinstance(each, slice)
    ]
    return [(*found, *r.source[len(index) :])]


def _gather(r: Resized) -> list[Shape]:
    if r.integer("BatchDims"):
        raise UnknownShapeError("batch_dims other than 0 is unsupported")
    axis = r.axis(r.integer("Axis"))
    return [(*r.source[:axis], *r.inputs[1], *r.source[axis + 1 :])]


MOVEMENT: ShapesByCode = {
    **dict.fromkeys(("PAD", "PADV2"), _pad),
    "CONCATENATION": _concatenation,
    "EXPAND_DIMS": _expand_dims,
    "GATHER": _gather,
    "PACK": _pack,
    "RESHAPE": _reshape,
    "SLICE": _slice,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "UNPACK": _unpack,
}


def _range(r: Resized) -> list[Shape]:
    (start,), (end,), (step,) = (r.integers(position) for position in range(3))
    require(step != 0, "a step is 0")
    return [(largest(0, -(-(end - start) // step)),)]


def _fill(r: Resized) -> list[Shape]:
    return [r.integers(0)]


def _shape(r: Resized) -> list[Shape]:
    return [(len(r.source),)]


SHAPE = "SHAPE"
"""The operator that makes a value of a shape."""

NUMBERS: ShapesByCode = {"FILL": _fill, "RANGE": _range, SHAPE: _shape}


def _fully_connected(r: Resized) -> list[Shape]:
    units, depth = r.inputs[1]
    count = math.prod(r.source)
    require(
        depth > 0 and _divides(count, depth),
        f"{count} elements do not divide into rows of {depth}",
    )
    if r.integer("KeepNumDims"):
        require(r.source[-1:] == (depth,), f"rows have {r.source[-1:]} elements, expected {depth}")
        return [(*r.source[:-1], units)]
    return [(count // depth, units)]


def _matrices(r: Resized) -> list[Shape]:
    a, b = r.inputs
    require(min(len(a), len(b)) >= 2, "operands of rank below 2")
    rows, inner = (a[-1], a[-2]) if r.integer("AdjX") else (a[-2], a[-1])
    depth, columns = (b[-1], b[-2]) if r.integer("AdjY") else (b[-2], b[-1])
    require(same(inner, depth), f"cannot multiply {a} and {b}")
    return [(*broadcast(a[:-2], b[:-2]), rows, columns)]


def _reduce(r: Resized) -> list[Shape]:
    axes = {r.axis(axis) for axis in r.integers(1)}
    if r.integer("KeepDims"):
        return [tuple(1 if axis in axes else n for axis, n in enumerate(r.source))]
    return [tuple(n for axis, n in enumerate(r.source) if axis not in axes)]


def _arg_reduce(r: Resized) -> list[Shape]:
    axis = r.axis(r.integers(1)[0])
    return [(*r.source[:axis], *r.source[axis + 1 :])]


def _spectrum(r: Resized) -> list[Shape]:
    rows, columns = r.integers(1)
    require(
        len(r.source) >= 2 and rows > 0 and columns > 0,
        f"fft_length {[rows, columns]} does not fit {r.source}",
    )
    return [(*r.source[:-2], rows, columns // 2 + 1)]


REDUCTION: ShapesByCode = {
    **dict.fromkeys(
        ("MEAN", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"), _reduce
    ),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _arg_reduce),
    "BATCH_MATMUL": _matrices,
    "FULLY_CONNECTED": _fully_connected,
    "RFFT2D": _spectrum,
}


SHAPES: ShapesByCode = {**ELEMENTWISE, **IMAGES, **MOVEMENT, **NUMBERS, **REDUCTION}
"""The function of each operator that passes a new shape on."""
