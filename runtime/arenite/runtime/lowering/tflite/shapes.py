"""Shape arithmetic that converters leave in a model, computed before the run.

A file may state a dimension as 1 that is only known at run time; here it is inferred from the
shapes and constants before it.
"""

from collections.abc import Callable, Mapping

import numpy as np

from arenite.planner.importers.tflite.shapes import (
    SHAPES,
    MisfitError,
    Resized,
    UnknownShapeError,
)
from arenite.planner.operators.imported import Imported
from arenite.planner.program import Array
from arenite.runtime.lowering.errors import NotLoweredError
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
    """Give the outputs the shapes that follow from the inputs, if the file states others.

    Raises:
        NotLoweredError: The inputs do not fit together, or a window into its input.
    """
    infer = SHAPES.get(t.kind)
    if infer is None:
        return
    inputs = [t.value(p).shape if t.has(p) else () for p in range(len(t.step.inputs))]
    arrays = {p: t.builder.array(t.source(p)) for p in range(len(inputs)) if t.has(p)}
    values = {p: each for p, each in arrays.items() if each is not None and each.dtype.kind == "i"}
    outputs = [t.builder.shape(name) for name in t.step.outputs]
    attributes = t.step.operator.attributes if isinstance(t.step.operator, Imported) else {}
    try:
        found = infer(Resized(inputs, values, outputs, t.options, attributes))
    except UnknownShapeError:
        return  # whether it is run all the same is for its translator to say
    except MisfitError as reason:
        hint = "if the model leaves the size of its input open, give it with --shape"
        raise NotLoweredError(
            f"{reason}; {hint}" if t.kind in _WINDOWS else str(reason)
        ) from reason
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return
    if len(found) == len(outputs):
        for name, stated, shape in zip(t.step.outputs, outputs, found, strict=True):
            if shape != stated:
                t.builder.restate_shape(name, shape)


_WINDOWS = frozenset(
    {"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "L2_POOL_2D", "MAX_POOL_2D"}
)


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
