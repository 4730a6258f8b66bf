"""Operators whose result has the shape of an operand, or that to which operands broadcast."""

import numpy as np

from arenite.planner.importers.tflite.shapes.resized import (
    MisfitError,
    Resized,
    Shape,
    ShapesByCode,
    require,
)


def _kept(r: Resized) -> list[Shape]:
    return [r.source for _ in r.outputs]


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that all of these broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        listed = " and ".join(map(str, shapes))
        raise MisfitError(f"its inputs {listed} do not broadcast") from error


def _broadcast_to(r: Resized) -> list[Shape]:
    shape = r.integers(1)
    require(broadcast(r.source, shape) == shape, f"{r.source} does not become {shape}")
    return [shape]


def _of_state(r: Resized) -> list[Shape]:
    require(r.source == r.outputs[0], f"its variable keeps {r.outputs[0]}, not {r.source}")
    return [r.source]


ELEMENTWISE: ShapesByCode = {
    **dict.fromkeys(
        ("ABS", "CAST", "CEIL", "COS", "DENSIFY", "DEQUANTIZE", "ELU", "EXP", "FLOOR", "GELU",
         "HARD_SWISH", "L2_NORMALIZATION", "LEAKY_RELU", "LOG", "LOGICAL_NOT", "LOGISTIC",
         "LOG_SOFTMAX", "NEG", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1",
         "REVERSE_V2", "ROUND", "RSQRT", "SIN", "SOFTMAX", "SQRT", "SQUARE", "TANH"),
        _kept,
    ),
    **dict.fromkeys(
        ("ADD", "DIV", "EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "LESS",
         "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "MAXIMUM", "MINIMUM", "MUL", "NOT_EQUAL",
         "POW", "PRELU", "SELECT_V2", "SQUARED_DIFFERENCE", "SUB"),
        lambda r: [broadcast(*r.inputs)],
    ),
    **dict.fromkeys(("ASSIGN_VARIABLE", "READ_VARIABLE"), _of_state),
    "BROADCAST_TO": _broadcast_to,
}  # fmt: skip
