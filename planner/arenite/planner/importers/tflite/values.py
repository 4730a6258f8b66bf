"""The elements that TFLite operators make of elements that are known before the run."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from arenite.planner.importers.tflite.shapes import (
    SHAPE,
    SHAPES,
    Resized,
    Shape,
    require,
    strided,
)
from arenite.planner.program import Array

MAX_VALUES = 65_536
"""Elements of values that are computed: larger ones are weights, not shapes."""


def _shape(code: str, r: Resized) -> Shape:
    return SHAPES[code](r)[0]


def _counted(start: float, end: float, step: float) -> Array:
    count = math.ceil((end - start) / step)
    require(count <= MAX_VALUES, f"it makes {count} elements")
    return np.arange(start, end, step)


VALUES: Mapping[str, Callable[[Resized, list[Array]], list[Array]]] = {
    "ADD": lambda _r, a: [np.asarray(a[0] + a[1])],
    "CAST": lambda _r, a: a,
    "CONCATENATION": lambda r, a: [np.concatenate(a, r.integer("Axis"))],
    "EXPAND_DIMS": lambda r, a: [a[0].reshape(_shape("EXPAND_DIMS", r))],
    "FILL": lambda r, a: [np.full(_shape("FILL", r), a[1])],
    "FLOOR_DIV": lambda _r, a: [np.asarray(a[0] // a[1])],
    "FLOOR_MOD": lambda _r, a: [np.asarray(a[0] % a[1])],
    "GATHER": lambda r, a: [np.take(a[0], a[1], r.integer("Axis"))],
    "MAXIMUM": lambda _r, a: [np.maximum(*a)],
    "MINIMUM": lambda _r, a: [np.minimum(*a)],
    "MUL": lambda _r, a: [np.asarray(a[0] * a[1])],
    "PACK": lambda r, a: [np.stack(a, r.integer("Axis"))],
    "RANGE": lambda _r, a: [_counted(*(each.item() for each in a))],
    "REDUCE_PROD": lambda _r, a: [np.prod(a[0], tuple(a[1].reshape(-1)))],
    "RESHAPE": lambda r, a: [a[0].reshape(_shape("RESHAPE", r))],
    SHAPE: lambda r, _a: [np.array(r.source, np.int64)],
    "SPLIT_V": lambda r, a: np.split(a[0], np.cumsum(a[1])[:-1], r.axis(r.integers(2)[0])),
    "SQUEEZE": lambda r, a: [a[0].reshape(_shape("SQUEEZE", r))],
    "STRIDED_SLICE": lambda r, a: [np.asarray(a[0][tuple(strided(r))])],
    "SUB": lambda _r, a: [np.asarray(a[0] - a[1])],
    "TRANSPOSE": lambda _r, a: [a[0].transpose(a[1])],
    "UNPACK": lambda r, a: list(np.moveaxis(a[0], r.integer("Axis"), 0)),
}
"""The arithmetic that converters do on shapes: elements of the outputs, of types to be cast."""
