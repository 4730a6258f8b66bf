"""Shape arithmetic that converters leave in a model, computed before the run.

A file may state a dimension as 1 that is only known at run time; here it is inferred from the
shapes and constants before it.
"""

import math

import numpy as np

from arenite.planner.importers.tflite.shapes import (
    SHAPE,
    SHAPES,
    MisfitError,
    Resized,
    Shape,
    UnknownShapeError,
)
from arenite.planner.importers.tflite.values import MAX_VALUES, VALUES
from arenite.planner.operators.imported import Imported
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.tflite.translation import Translation


def fold(t: Translation) -> bool:
    """Make the outputs constants if their values are known; tell whether they are."""
    evaluate = VALUES.get(t.kind)
    shapes = [t.builder.shape(name) for name in t.step.outputs]
    if evaluate is None or t.is_quantised or any(map(_is_large, shapes)):
        return False
    arrays = [t.builder.array(name) for name in t.step.inputs if name]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays) and t.kind != SHAPE:
        return False
    asked = _asked(t)
    if asked.integer("FusedActivationFunction"):
        return False
    try:
        with np.errstate(all="raise"):
            found = evaluate(asked, known)
    except (MisfitError, ArithmeticError, LookupError, TypeError, ValueError):
        return False
    if [array.shape for array in found] != shapes:
        return False
    for name, array in zip(t.step.outputs, found, strict=True):
        elements = array.astype(t.builder.model.tensors[name].dtype.label)
        t.builder.bind(name, t.builder.constant(elements, name))
    return True


def restate(t: Translation) -> None:
    """Give the outputs the shapes that follow from the inputs, if the file states others.

    Raises:
        NotLoweredError: The inputs do not fit together, or a window into its input.
    """
    infer = SHAPES.get(t.kind)
    if infer is None:
        return
    asked = _asked(t)
    try:
        found = infer(asked)
    except UnknownShapeError:
        return  # whether it is run all the same is for its translator to say
    except MisfitError as reason:
        hint = "if the model leaves the size of its input open, give it with --shape"
        raise NotLoweredError(
            f"{reason}; {hint}" if t.kind in _WINDOWS else str(reason)
        ) from reason
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return
    if len(found) == len(asked.outputs):
        for name, stated, shape in zip(t.step.outputs, asked.outputs, found, strict=True):
            if shape != stated:
                t.builder.restate_shape(name, shape)


def _asked(t: Translation) -> Resized:
    inputs = [_shape(t, name) if name else () for name in t.step.inputs]
    arrays = {p: t.builder.array(name) for p, name in enumerate(t.step.inputs) if name}
    values = {p: each for p, each in arrays.items() if each is not None and each.dtype.kind == "i"}
    outputs = [t.builder.shape(name) for name in t.step.outputs]
    attributes = t.step.operator.attributes if isinstance(t.step.operator, Imported) else {}
    return Resized(inputs, values, outputs, t.options, attributes)


def _shape(t: Translation, name: str) -> Shape:
    stored = t.builder.value(name).shape
    return stored[:-1] if t.is_complex(name) else stored


def _is_large(shape: Shape) -> bool:
    return math.prod(shape) > MAX_VALUES


_WINDOWS = frozenset(
    {"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "L2_POOL_2D", "MAX_POOL_2D"}
)
