"""Operators that only move elements: other axes, joined, cut, padded and picked."""

import math

from arenite.planner.importers.tflite.shapes.resized import (
    Resized,
    Shape,
    ShapesByCode,
    UnknownShapeError,
    require,
)


def _reshape(r: Resized) -> list[Shape]:
    new_shape = r.options.get("NewShape", ())
    wanted = r.integers(1) if len(r.inputs) > 1 else new_shape
    assert isinstance(wanted, tuple)
    count, known = math.prod(r.source), math.prod(n for n in wanted if n != -1)
    require(
        wanted.count(-1) <= 1 and (known == count if -1 not in wanted else bool(known)),
        f"{r.source} does not become {wanted}, which the file fixes",
    )
    require(not known or count % known == 0, f"{r.source} does not become {wanted}")
    return [tuple(count // known if n == -1 else n for n in wanted)]


def _expand_dims(r: Resized) -> list[Shape]:
    axis = r.axis(r.integers(1)[0], len(r.source) + 1)
    return [(*r.source[:axis], 1, *r.source[axis:])]


def _squeeze(r: Resized) -> list[Shape]:
    stated = r.options.get("SqueezeDims", ())
    assert isinstance(stated, tuple)
    axes = {r.axis(axis) for axis in stated}
    axes = axes or {axis for axis, length in enumerate(r.source) if length == 1}
    require(all(r.source[axis] == 1 for axis in axes), f"not all axes {stated} have length 1")
    return [tuple(length for axis, length in enumerate(r.source) if axis not in axes)]


def _transpose(r: Resized) -> list[Shape]:
    axes = [r.axis(axis) for axis in r.integers(1)]
    require(sorted(axes) == list(range(len(r.source))), "its axes are for another rank")
    return [tuple(r.source[axis] for axis in axes)]


def _concatenation(r: Resized) -> list[Shape]:
    axis = r.axis(r.integer("Axis"))
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in r.inputs}
    require(len(others) == 1, f"its inputs {' and '.join(map(str, r.inputs))} do not join")
    total = sum(shape[axis] for shape in r.inputs)
    return [(*r.source[:axis], total, *r.source[axis + 1 :])]


def _pack(r: Resized) -> list[Shape]:
    require(len(set(r.inputs)) == 1, "its inputs differ in shape")
    axis = r.axis(r.integer("Axis"), len(r.source) + 1)
    return [(*r.source[:axis], len(r.inputs), *r.source[axis:])]


def _unpack(r: Resized) -> list[Shape]:
    axis = r.axis(r.integer("Axis"))
    require(r.source[axis] == len(r.outputs), f"axis {axis} is not {len(r.outputs)} long")
    return [(*r.source[:axis], *r.source[axis + 1 :])] * len(r.outputs)


def _split(r: Resized) -> list[Shape]:
    whole, axis = r.inputs[1], r.axis(r.integers(0)[0], len(r.inputs[1]))
    count = len(r.outputs)
    require(whole[axis] % count == 0, f"axis {axis} of {whole} is not cut into {count}")
    return [(*whole[:axis], whole[axis] // count, *whole[axis + 1 :])] * count


def _split_v(r: Resized) -> list[Shape]:
    sizes, axis = list(r.integers(1)), r.axis(r.integers(2)[0])
    rest = r.source[axis] - sum(size for size in sizes if size != -1)
    sizes = [rest if size == -1 else size for size in sizes]
    fits = min(sizes, default=0) >= 0 and sum(sizes) == r.source[axis]
    require(fits and len(sizes) == len(r.outputs), f"{r.source} is not cut into {sizes}")
    return [(*r.source[:axis], size, *r.source[axis + 1 :]) for size in sizes]


def _pad(r: Resized) -> list[Shape]:
    widths = r.integers(1)
    require(len(widths) == 2 * len(r.source), "its widths are for another rank")
    before, after = widths[::2], widths[1::2]
    lengths = zip(r.source, before, after, strict=True)
    return [tuple(length + b + a for length, b, a in lengths)]


def _tile(r: Resized) -> list[Shape]:
    times = r.integers(1)
    require(len(times) == len(r.source), "its multiples are for another rank")
    return [tuple(length * n for length, n in zip(r.source, times, strict=True))]


def _slice(r: Resized) -> list[Shape]:
    begins, sizes = r.integers(1), r.integers(2)
    require(len(begins) == len(sizes) == len(r.source), "its bounds are for another rank")
    found = []
    for length, begin, size in zip(r.source, begins, sizes, strict=True):
        found.append(length - begin if size == -1 else size)
        require(0 <= begin <= length and 0 <= found[-1] <= length - begin, "it cuts outside")
    return [tuple(found)]


def strided(r: Resized) -> list[slice | int]:
    """Return the index that STRIDED_SLICE takes of its first input."""
    begins, ends, steps = (r.integers(position) for position in (1, 2, 3))
    if r.integer("EllipsisMask") or r.integer("NewAxisMask"):
        raise UnknownShapeError("it has an ellipsis or a new axis")
    require(0 not in steps, "it steps by 0")
    require(len(begins) == len(ends) == len(steps) <= len(r.source), "its bounds do not fit")
    index: list[slice | int] = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if r.integer("ShrinkAxisMask") >> axis & 1:
            index.append(r.axis(begin, r.source[axis]))
            continue
        first = None if r.integer("BeginMask") >> axis & 1 else begin
        last = None if r.integer("EndMask") >> axis & 1 else end
        index.append(slice(first, last, step))
    return index


def _strided_slice(r: Resized) -> list[Shape]:
    index = strided(r)
    found = [
        len(range(*each.indices(length)))
        for each, length in zip(index, r.source, strict=False)
        if isinstance(each, slice)
    ]
    return [(*found, *r.source[len(index) :])]


def _gather(r: Resized) -> list[Shape]:
    if r.integer("BatchDims"):
        raise UnknownShapeError("it gathers batch by batch")
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
