"""Operators that compute each element from the same element of each input."""

import math

from arenite.planner import DType
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.tflite.special import part
from arenite.runtime.lowering.tflite.translation import TfliteTranslation, as_numbers, translates
from arenite.runtime.operators.elementwise import (
    Binary,
    BinaryFunction,
    Convert,
    Select,
    Unary,
    UnaryFunction,
)

F = UnaryFunction
UNARY = {
    "ABS": F.ABSOLUTE, "CEIL": F.CEILING, "COS": F.COSINE, "EXP": F.EXPONENTIAL,
    "FLOOR": F.FLOOR, "HARD_SWISH": F.HARD_SWISH, "LOG": F.LOGARITHM,
    "LOGICAL_NOT": F.LOGICAL_NOT, "LOGISTIC": F.SIGMOID, "NEG": F.NEGATE, "ROUND": F.ROUND,
    "RSQRT": F.RECIPROCAL_SQUARE_ROOT, "SIGN": F.SIGN, "SIN": F.SINE, "SQRT": F.SQUARE_ROOT,
    "SQUARE": F.SQUARE, "TANH": F.HYPERBOLIC_TANGENT,
}  # fmt: skip
CLAMPS = {
    "RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}  # fmt: skip
B = BinaryFunction
BINARY = {
    "ADD": B.ADD, "DIV": B.DIVIDE, "EQUAL": B.EQUAL, "FLOOR_DIV": B.FLOOR_DIVIDE,
    "FLOOR_MOD": B.MODULUS, "GREATER": B.GREATER, "GREATER_EQUAL": B.GREATER_EQUAL,
    "LESS": B.LESS, "LESS_EQUAL": B.LESS_EQUAL, "LOGICAL_AND": B.LOGICAL_AND,
    "LOGICAL_OR": B.LOGICAL_OR, "MAXIMUM": B.MAXIMUM, "MINIMUM": B.MINIMUM, "MUL": B.MULTIPLY,
    "NOT_EQUAL": B.NOT_EQUAL, "POW": B.POWER, "PRELU": B.PRELU,
    "SQUARED_DIFFERENCE": B.SQUARED_DIFFERENCE, "SUB": B.SUBTRACT,
}  # fmt: skip
_KNOWN = (
    DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64,
    DType.BOOL,
)  # fmt: skip


@translates(*UNARY)
def unary(t: TfliteTranslation) -> None:
    """Translate a function of one number."""
    kind = t.kind
    t.of_elements(Unary(function=UNARY[kind]))


@translates(*CLAMPS)
def relu(t: TfliteTranslation) -> None:
    """Translate an activation that clamps."""
    t.clamp(*CLAMPS[t.kind])


@translates("ELU")
def elu(t: TfliteTranslation) -> None:
    t.of_elements(Unary(function=F.ELU, alpha=1.0))


@translates("LEAKY_RELU")
def leaky_relu(t: TfliteTranslation) -> None:
    t.of_elements(Unary(function=F.LEAKY_RELU, alpha=t.number("Alpha", 0.0)))


@translates("GELU")
def gelu(t: TfliteTranslation) -> None:
    function = F.GELU_TANH if t.integer("Approximate", 0) else F.GELU
    t.of_elements(Unary(function=function))


@translates(*BINARY)
def binary(t: TfliteTranslation) -> None:
    """Translate a function of two numbers."""
    kind = t.kind
    values = [t.stored(0), t.stored(1)]
    if t.dtype is DType.BOOL and values[0].dtype in (DType.INT8, DType.UINT8):
        values = [as_numbers(t, value) for value in values]
    rank = max(len(value.shape) for value in values)
    aligned = [value.aligned(rank) for value in values]
    leader = max(aligned, key=lambda each: (each.array is None, math.prod(each.shape)))
    operands = [t.builder.in_order(each, leader.order, t.target) for each in aligned]
    t.finish(t.emit(Binary(function=BINARY[kind]), operands, order=leader.order))


@translates("ADD_N")
def add_all(t: TfliteTranslation) -> None:
    """Translate ADD_N, a sum at a time."""
    total = t.value(0)
    last = len(t.step.inputs) - 1
    for position in range(1, last):
        total = t.builder.emit_one(
            Binary(function=B.ADD), [total, t.value(position)], f"{t.target}/sum", total.shape
        )
    if last:
        total = t.emit(Binary(function=B.ADD), [total, t.value(last)])
    t.finish(total)


@translates("SELECT", "SELECT_V2", int16=True)
def select(t: TfliteTranslation) -> None:
    values = [t.value(position) for position in range(3)]
    rank = max(len(value.shape) for value in values)
    if t.kind == "SELECT" and len(values[0].shape) == 1 and rank > 1:
        # One truth for each row, not for each element of one.
        shape = (*values[0].shape, *(1,) * (rank - 1))
        values[0] = t.builder.reshaped(values[0], shape, t.target)
    operands = [value.aligned(rank) for value in values]
    t.finish(t.emit(Select(), operands))


@translates("CAST", "DEQUANTIZE", "QUANTIZE", int16=True)
def convert(t: TfliteTranslation) -> None:
    value = t.stored()
    if t.is_complex(t.source()) and t.dtype is DType.FLOAT32:
        part(t)
        return
    stated = t.builder.model.tensors[t.source()].dtype
    if stated not in _KNOWN or t.dtype not in _KNOWN:
        raise NotLoweredError(f"conversion from {stated.label} to {t.dtype.label} is unsupported")
    if t.kind == "CAST" and not all(
        _stands_for_itself(t, name) for name in (t.source(), t.target)
    ):
        raise NotLoweredError("CAST of a quantised tensor is unsupported, use DEQUANTIZE")
    array = t.builder.array(t.source())
    if array is not None and t.dtype is DType.FLOAT32 and array.dtype.name == "float16":
        widened = t.builder.constant(array.astype("float32"), t.source())
        t.builder.bind(t.target, widened)
        return
    is_wide = DType.INT16 in (value.dtype, t.dtype)
    rescales = t.kind == "QUANTIZE" and is_wide and value.dtype is not DType.FLOAT32
    t.of_elements(Convert(rescales=rescales))


def _stands_for_itself(t: TfliteTranslation, name: str) -> bool:
    """Tell whether the elements of a tensor are its numbers, as CAST takes them all to be."""
    stated = t.builder.stated_quantisation(name)
    return stated is None or (set(stated.scales) == {1.0} and stated.zero_point == 0)
