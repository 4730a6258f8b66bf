"""The lengths of what is moved: reshaped, cut, joined, gathered."""

import math
from collections.abc import Iterable, Sequence

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.call import Call, Rule, Shape, text
from arenite.planner.importers.onnx.window_lengths import rounded_up
from arenite.planner.sizes import Ranges, depends


def _reshaped(call: Call) -> list[Shape]:
    source = call.shape()
    target = call.stated("shape", 1) or ()
    copies = not call.integer("allowzero", 0)
    lengths = [
        source[axis] if copies and not depends(each) and each == 0 else each
        for axis, each in enumerate(target)
    ]
    total = math.prod(source)
    open_axes = [axis for axis, each in enumerate(lengths) if not depends(each) and each == -1]
    if open_axes:
        axis = open_axes[0]
        others = math.prod(each for at_, each in enumerate(lengths) if at_ != axis)
        if not depends(others) and others == 0:
            raise SizeError("-1 beside a length of 0 in shape of Reshape")
        lengths[axis] = total // others
    made = math.prod(lengths)
    if not call.ranges.same(total, made):
        raise SizeError(
            f"it makes {text(made)} elements of {text(total)}, as is possible at some sizes only"
        )
    return [tuple(lengths)]


def _flattened(call: Call) -> list[Shape]:
    source = call.shape()
    axis = call.axis(1, len(source))
    return [(math.prod(source[:axis]), math.prod(source[axis:]))]


def axes_of(given: Iterable[int], rank: int) -> list[int]:
    """Return axes counted from the front, in ascending order."""
    return sorted(axis % rank for axis in given)


def _squeezed(call: Call) -> list[Shape]:
    source = call.shape()
    stated = call.stated("axes", 1)
    if stated is None:
        if any(depends(each) and call.ranges.bounds(each)[0] <= 1 for each in source):
            raise SizeError("axes of Squeeze are not stated, and a length is 1 at some sizes only")
        return [tuple(each for each in source if each != 1)]
    removed = axes_of(stated, len(source))
    for axis in removed:
        call.require_same(source[axis], 1, "lengths")
    return [tuple(each for axis, each in enumerate(source) if axis not in removed)]


def _unsqueezed(call: Call) -> list[Shape]:
    stated = call.stated("axes", 1) or ()
    lengths = list(call.shape())
    for axis in axes_of(stated, len(lengths) + len(stated)):
        lengths.insert(axis, 1)
    return [tuple(lengths)]


def _expanded(call: Call) -> list[Shape]:
    return [call.broadcast(call.shape(), call.elements(1))]


def _tiled(call: Call) -> list[Shape]:
    return [tuple(n * times for n, times in zip(call.shape(), call.elements(1), strict=True))]


def _transposed(call: Call) -> list[Shape]:
    source = call.shape()
    order = call.integers("perm") or tuple(reversed(range(len(source))))
    return [tuple(source[axis] for axis in order)]


def _joined(call: Call, shapes: Sequence[Shape]) -> list[Shape]:
    first = shapes[0]
    axis = call.axis(1, len(first))
    result = list(first)
    for shape in shapes[1:]:
        for at_, length in enumerate(shape):
            if at_ == axis:
                result[at_] = result[at_] + length
            else:
                result[at_] = call.require_same(result[at_], length, "lengths")
    return [tuple(result)]


def _concatenated(call: Call) -> list[Shape]:
    return _joined(call, [shape for shape in call.shapes if shape is not None])


def _quantised_concatenation(call: Call) -> list[Shape]:
    return _joined(call, [shape for shape in call.shapes[2::3] if shape is not None])


def _split(call: Call) -> list[Shape]:
    source = call.shape()
    axis = call.axis(0, len(source))
    parts = call.stated("split", 1)
    if parts is None:
        count = len(call.made)
        even = rounded_up(source[axis], count)
        parts = (*[even] * (count - 1), source[axis] - even * (count - 1))
        if call.ranges.bounds(parts[-1])[0] < 0:
            raise SizeError(f"{text(source[axis])} cannot be split into {count} at all sizes")
    call.require_same(sum(parts), source[axis], "the parts of Split and the length of its input,")
    return [(*source[:axis], part, *source[axis + 1 :]) for part in parts]


def _sliced(call: Call) -> list[Shape]:
    source = list(call.shape())
    starts, ends = call.stated("starts", 1) or (), call.stated("ends", 2) or ()
    axes = call.stated("axes", 3) or range(len(starts))
    steps = call.stated("steps", 4) or (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        source[axis] = slice_length(call.ranges, source[axis], start, end, step)
    return [tuple(source)]


def slice_length(ranges: Ranges, length: int, start: int, end: int, step: int) -> int:
    """Return how many elements a slice takes of an axis."""
    if depends(step):
        raise SizeError(f"the step {text(step)} of a slice depends on the sizes")
    if step > 0:
        first = from_front(ranges, length, start, 0, length)
        taken = from_front(ranges, length, end, 0, length) - first
    else:
        first = from_front(ranges, length, start, 0, length - 1)
        taken = first - from_front(ranges, length, end, -1, length - 1)
    return ranges.largest(0, rounded_up(taken, abs(step)))


def from_front(ranges: Ranges, length: int, place: int, low: int, high: int) -> int:
    """Return a place of a slice, counted from the front and inside the axis."""
    sign = ranges.sign(place)
    if sign is None and ranges.bounds(place)[0] < 0:
        raise SizeError(f"the end {text(place)} of a slice is below 0 at some sizes only")
    if sign == -1:
        if not depends(place) and place < -ranges.bounds(length)[1]:
            return low  # a number that stands for no limit overflows in an expression
        place = place + length
    return ranges.largest(low, ranges.smallest(place, high))


def _gathered(call: Call) -> list[Shape]:
    data = call.shape()
    axis = call.axis(0, len(data))
    return [(*data[:axis], *call.shape(1), *data[axis + 1 :])]


def _gathered_nd(call: Call) -> list[Shape]:
    data, indices = call.shape(), call.shape(1)
    batch = call.integer("batch_dims", 0)
    return [(*indices[:-1], *data[batch + indices[-1] :])]


def without_axes(call: Call, source: Shape, axes: Sequence[int]) -> Shape:
    """Return a shape without some axes, or with ones there if the operator keeps them."""
    kept = call.integer("keepdims", 1)
    return tuple(
        1 if axis in axes else length
        for axis, length in enumerate(source)
        if kept or axis not in axes
    )


def _depth_to_space(call: Call) -> list[Shape]:
    batch, channels, rows, columns = call.shape()
    block = call.integer("blocksize", 1)
    return [(batch, channels // (block * block), rows * block, columns * block)]


def _space_to_depth(call: Call) -> list[Shape]:
    batch, channels, rows, columns = call.shape()
    block = call.integer("blocksize", 1)
    if not all(call.ranges.same(n % block, 0) for n in (rows, columns)):
        raise SizeError(f"blocksize={block} divides the sides only at some sizes")
    return [(batch, channels * block * block, rows // block, columns // block)]


MOVED_RULES: dict[str, Rule] = {
    "Reshape": _reshaped,
    "Flatten": _flattened,
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
    "Expand": _expanded,
    "Tile": _tiled,
    "Transpose": _transposed,
    "Concat": _concatenated,
    "QLinearConcat": _quantised_concatenation,
    "Split": _split,
    "Slice": _sliced,
    "Gather": _gathered,
    "GatherND": _gathered_nd,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
"""The rule of each operator that moves elements."""
