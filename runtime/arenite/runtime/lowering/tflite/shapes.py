"""Shape arithmetic that converters leave in a model, computed before the run.

A file may state a dimension as 1 that is only known at run time; here it is inferred from the
shapes and constants before it.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from arenite.planner.program import Array
from arenite.runtime.lowering.layout import Shape
from arenite.runtime.lowering.tflite.translation import Translation

_MAX_ELEMENTS = 65_536


def fold(t: Translation) -> bool:
    """Make the output a constant if its value is known; tell whether it is."""
    evaluate = _EVALUATED.get(t.kind)
    if evaluate is None or len(t.step.outputs) != 1 or np.prod(t.shape) > _MAX_ELEMENTS:
        return False
    if t.kind == "SHAPE":
        shape = t.value().shape
        result: Array = np.array(shape, np.dtype(t.dtype.label))
    else:
        arrays = [t.builder.array(name) for name in t.step.inputs if name]
        known = [array for array in arrays if array is not None]
        if len(known) < len(arrays) or t.is_quantised:
            return False
        try:
            result = evaluate(t, known)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return False
    if result.shape != t.shape or result.dtype.name != t.dtype.label:
        return False
    t.builder.bind(t.target, t.builder.constant(result, t.target))
    return True


def restate(t: Translation) -> None:
    """Give the output the shape that follows from its inputs, if the file states another."""
    kind = t.kind
    shapes = [t.value(p).shape for p in range(len(t.step.inputs)) if t.has(p)]
    found: Shape | None = None
    if kind == "RESHAPE" and t.has(1) and (wanted := t.builder.array(t.source(1))) is not None:
        count = math.prod(shapes[0])
        known = math.prod(int(n) for n in wanted.reshape(-1) if n != -1)
        found = tuple(int(n) if n != -1 else count // max(known, 1) for n in wanted.reshape(-1))
    elif kind == "CONCATENATION" and len({len(shape) for shape in shapes}) == 1:
        axis = t.integer("Axis", 0) % len(shapes[0])
        total = sum(shape[axis] for shape in shapes)
        found = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    elif kind == "SPACE_TO_BATCH_ND" and (blocks := t.builder.array(t.source(1))) is not None:
        found = (shapes[0][0] * math.prod(blocks.tolist()), *t.shape[1:])
    elif kind in _KEEP_BATCH and shapes[0] and not (kind == "PAD" and len(shapes[0]) != 4):
        found = (shapes[0][0], *t.shape[1:])
    elif kind in _KEEP_SHAPE:
        found = np.broadcast_shapes(*shapes[: _KEEP_SHAPE[kind]])
    if found is not None and found != t.shape:
        t.builder.restate_shape(t.target, found)


_KEEP_BATCH = frozenset(
    {"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "PAD",
     "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}
)  # fmt: skip
"""Operators whose first axis is that of their first input."""

_KEEP_SHAPE = {
    "ADD": 2, "DEQUANTIZE": 1, "LOGISTIC": 1, "MUL": 2, "QUANTIZE": 1, "RELU": 1, "RELU6": 1,
    "SOFTMAX": 1, "SUB": 2, "TANH": 1,
}  # fmt: skip
"""Operators whose shape is the broadcast of this many of their first inputs."""


def _strided_slice(t: Translation, arrays: list[Array]) -> Array:
    data, begins, ends, steps = arrays
    if t.integer("EllipsisMask", 0) or t.integer("NewAxisMask", 0):
        raise ValueError("its bounds are not those of the axes in order")
    index: list[slice | int] = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if t.integer("ShrinkAxisMask", 0) >> axis & 1:
            index.append(int(begin))
            continue
        first = None if t.integer("BeginMask", 0) >> axis & 1 else int(begin)
        last = None if t.integer("EndMask", 0) >> axis & 1 else int(end)
        index.append(slice(first, last, int(step)))
    result: Array = np.asarray(data[tuple(index)])
    return result


_EVALUATED: Mapping[str, Callable[[Translation, list[Array]], Array]] = {
    "ADD": lambda _t, a: np.asarray(a[0] + a[1]),
    "CAST": lambda t, a: a[0].astype(t.dtype.label),
    "CONCATENATION": lambda t, a: np.concatenate(a, t.integer("Axis", 0)),
    "EXPAND_DIMS": lambda t, a: a[0].reshape(t.shape),
    "FILL": lambda _t, a: np.full(tuple(a[0]), a[1]),
    "GATHER": lambda t, a: np.take(a[0], a[1], t.integer("Axis", 0)),
    "MUL": lambda _t, a: np.asarray(a[0] * a[1]),
    "PACK": lambda t, a: np.stack(a, t.integer("Axis", 0)),
    "RANGE": lambda t, a: np.arange(*(each.item() for each in a)).astype(t.dtype.label),
    "REDUCE_PROD": lambda t, a: np.prod(a[0], tuple(a[1].reshape(-1))).reshape(t.shape),
    "RESHAPE": lambda t, a: a[0].reshape(t.shape),
    "SHAPE": lambda _t, a: a[0],
    "SQUEEZE": lambda t, a: a[0].reshape(t.shape),
    "STRIDED_SLICE": _strided_slice,
    "SUB": lambda _t, a: np.asarray(a[0] - a[1]),
    "TRANSPOSE": lambda _t, a: a[0].transpose(a[1]),
}
