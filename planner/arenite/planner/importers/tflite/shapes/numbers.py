"""Operators between shapes and numbers: what has a shape that numbers say, and the reverse."""

from arenite.planner.importers.tflite.shapes.resized import Resized, Shape, ShapesByCode, require


def _range(r: Resized) -> list[Shape]:
    (start,), (end,), (step,) = (r.integers(position) for position in range(3))
    require(step != 0, "it steps by 0")
    return [(len(range(start, end, step)),)]


def _fill(r: Resized) -> list[Shape]:
    return [r.integers(0)]


def _shape(r: Resized) -> list[Shape]:
    return [(len(r.source),)]


SHAPE = "SHAPE"
"""The operator that makes a value of a shape."""

NUMBERS: ShapesByCode = {
    "FILL": _fill,
    "RANGE": _range,
    SHAPE: _shape,
}
