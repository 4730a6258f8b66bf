"""Operators that make an element of many: reductions, products of matrices, spectra."""

import math

from arenite.planner.importers.tflite.shapes.elementwise import broadcast
from arenite.planner.importers.tflite.shapes.resized import Resized, Shape, ShapesByCode, require


def _fully_connected(r: Resized) -> list[Shape]:
    units, depth = r.inputs[1]
    count = math.prod(r.source)
    require(depth > 0 and count % depth == 0, f"{count} elements are no rows of {depth}")
    if r.integer("KeepNumDims"):
        require(r.source[-1:] == (depth,), f"its rows have {r.source[-1:]} elements, not {depth}")
        return [(*r.source[:-1], units)]
    return [(count // depth, units)]


def _matrices(r: Resized) -> list[Shape]:
    a, b = r.inputs
    require(min(len(a), len(b)) >= 2, "its operands are no matrices")
    rows, inner = (a[-1], a[-2]) if r.integer("AdjX") else (a[-2], a[-1])
    depth, columns = (b[-1], b[-2]) if r.integer("AdjY") else (b[-2], b[-1])
    require(inner == depth, f"its operands {a} and {b} do not fit")
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
    require(len(r.source) >= 2 and rows > 0 and columns > 0, "its lengths do not fit")
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
