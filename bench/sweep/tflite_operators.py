"""TFLite's built-in operators, each on small operands of numbers."""

from functools import cache

import ai_edge_litert.schema_py_generated as schema

from sweep.tflite_file import Operator, Options
from sweep.tflite_operands import IMAGE, ROWS, TRUTH, integers, x
from sweep.tflite_written import CUSTOM, written_out

_NO_OPERATORS = frozenset({"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"})


def builtin_operators() -> list[str]:
    """Return the names of the schema's operators, sorted."""
    names = vars(schema.BuiltinOperator)
    return sorted(name for name in names if name[0] != "_" and name not in _NO_OPERATORS)


_UNARY: dict[str, Options] = {
    **dict.fromkeys((
        "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG",
        "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT",
        "SQUARE", "TANH", "ZEROS_LIKE", "STABLEHLO_LOGISTIC", "STABLEHLO_ABS",
        "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR", "STABLEHLO_LOG",
        "STABLEHLO_NEGATE", "STABLEHLO_RSQRT", "STABLEHLO_TANH", "STABLEHLO_CBRT",
    )),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.2}),
    "GELU": ("GeluOptions", {"approximate": False}),
    "FAKE_QUANT": ("FakeQuantOptions", {"min": -1.0, "max": 1.0, "numBits": 8}),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        {"radius": 1, "bias": 1.0, "alpha": 0.1, "beta": 0.5},
    ),
    "L2_NORMALIZATION": ("L2NormOptions", {}),
    "DEQUANTIZE": None,
}  # fmt: skip
_BINARY: dict[str, Options] = {
    **dict.fromkeys((
        "DIV", "MAXIMUM", "MINIMUM", "POW", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE",
        "ATAN2", "STABLEHLO_ADD", "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM",
        "STABLEHLO_MINIMUM", "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_SUBTRACT",
    )),
    "ADD": ("AddOptions", {}),
    "SUB": ("SubOptions", {}),
    "MUL": ("MulOptions", {}),
}  # fmt: skip
_COMPARED = ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL")
_REDUCED = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")


@cache
def operators() -> dict[str, Operator]:
    """Return a form of each built-in operator, and of the custom ones, by name.

    One of which nothing more is known here takes and gives one tensor, enough to see whether it
    is imported and planned.
    """
    found = {code: Operator(code, (IMAGE,), (IMAGE,), options) for code, options in _UNARY.items()}
    for code, options in _BINARY.items():
        found[code] = Operator(code, (IMAGE, IMAGE), (IMAGE,), options)
    for code in _COMPARED:
        found[code] = Operator(code, (ROWS, ROWS), (x(4, 9, **TRUTH),))
    for code in _REDUCED:
        found[code] = Operator(code, (IMAGE, integers(1, 2)), (x(1, 4),), ("ReducerOptions", {}))
    found |= {each.code: each for each in written_out()}
    for code in builtin_operators():
        found.setdefault(code, Operator(code, (IMAGE,), (IMAGE,)))
    return {code: found[code] for code in (*builtin_operators(), *CUSTOM)}
