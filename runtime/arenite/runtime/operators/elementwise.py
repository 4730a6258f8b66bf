"""Functions of each element."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from arenite.planner.operators import ElementWise
from arenite.runtime.operators.base import Clamped, RowWise, RuntimeOperator


class UnaryFunction(StrEnum):
    """A function of one element."""

    CLAMP = "clamp"
    ABSOLUTE = "absolute"
    NEGATE = "negate"
    SQUARE = "square"
    SQUARE_ROOT = "square_root"
    RECIPROCAL_SQUARE_ROOT = "reciprocal_square_root"
    RECIPROCAL = "reciprocal"
    FLOOR = "floor"
    CEILING = "ceiling"
    ROUND = "round"
    SIGN = "sign"
    EXPONENTIAL = "exponential"
    LOGARITHM = "logarithm"
    SINE = "sine"
    COSINE = "cosine"
    HYPERBOLIC_TANGENT = "hyperbolic_tangent"
    SIGMOID = "sigmoid"
    HARD_SIGMOID = "hard_sigmoid"
    HARD_SWISH = "hard_swish"
    SWISH = "swish"
    ELU = "elu"
    CELU = "celu"
    SELU = "selu"
    LEAKY_RELU = "leaky_relu"
    THRESHOLDED_RELU = "thresholded_relu"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    MISH = "mish"
    ERF = "erf"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    LOGICAL_NOT = "logical_not"
    IS_NAN = "is_nan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(RowWise, ElementWise, RuntimeOperator):
    """Applies a function to each element.

    alpha and beta: clamp [alpha, beta]; leaky_relu, elu, celu, thresholded_relu and swish alpha;
    selu alpha, gamma = beta; hard_sigmoid max(0, min(1, alpha x + beta)).
    """

    number: ClassVar[int] = 7

    function: UnaryFunction
    alpha: float = 0.0
    beta: float = 0.0


class BinaryFunction(StrEnum):
    """A function of two elements."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    SQUARED_DIFFERENCE = "squared_difference"
    POWER = "power"
    PRELU = "prelu"
    MODULUS = "modulus"
    FLOOR_DIVIDE = "floor_divide"
    EQUAL = "equal"
    NOT_EQUAL = "not_equal"
    LESS = "less"
    LESS_EQUAL = "less_equal"
    GREATER = "greater"
    GREATER_EQUAL = "greater_equal"
    LOGICAL_AND = "logical_and"
    LOGICAL_OR = "logical_or"
    LOGICAL_XOR = "logical_xor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(RowWise, ElementWise, Clamped):
    """Applies a function to each pair of elements; shapes broadcast."""

    number: ClassVar[int] = 8

    function: BinaryFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiplyAdd(RowWise, ElementWise, Clamped):
    """Reads x: ..., C, factors and terms of C: x * factor + term."""

    number: ClassVar[int] = 23


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(RowWise, ElementWise, RuntimeOperator):
    """Reads a condition, the values where it is true, and the values where it is false."""

    number: ClassVar[int] = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert(RowWise, ElementWise, RuntimeOperator):
    """Converts to the output's type; also quantises and dequantises.

    Attributes:
        rescales: Whether quantised integers change their scale by a multiplier of 31 bits, as
            LiteRT has it, rather than as numbers.
    """

    number: ClassVar[int] = 21
    moves_halves: ClassVar[bool] = True

    rescales: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicQuantise(RuntimeOperator):
    """Quantises floats as uint8 by their range in this run.

    Makes the integers, their scale and their zero point. The range includes 0.
    """

    number: ClassVar[int] = 38
