"""The operators that the native core runs, as its schema `program.fbs` states them.

Images are stored channels last: N, H, W, C. Axes count stored axes. Padding is top, right,
bottom, left. The result is clamped to [min, max].
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from arenite.planner.dtypes import DType
from arenite.planner.units import align_up

Pair: TypeAlias = tuple[int, int]
Sides: TypeAlias = tuple[int, int, int, int]

_NONE = (0, 0, 0, 0)
_FLOAT = 4
"""Bytes."""
_GEMM_PANEL = 16
"""Columns that the core packs together for a product of matrices."""


class Shaped(Protocol):
    """An operand of a step: its stored shape and the type of its elements."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the stored axes."""

    @property
    def dtype(self) -> DType:
        """Of an element."""


Operands: TypeAlias = Sequence[Shaped | None]
"""None where an optional operand is left out."""


class OperatorBase:
    """What each operator says of the step that computes it."""

    __slots__ = ()

    def scratch(self, inputs: Operands, outputs: Operands) -> int:
        """Return the bytes of working memory that a step on these operands needs.

        The core refuses a program that gives less. It lies at a multiple of 64 bytes.
        """
        return 0


@dataclass(frozen=True, slots=True)
class Clamped(OperatorBase):
    """An operator whose kernel clamps the result as it writes it."""

    min: float = -math.inf
    max: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2D(Clamped):
    """Reads x, a filter Cout, kh, kw, Cin / groups, and an optional bias."""

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = _NONE
    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwiseConv2D(Clamped):
    """Reads x, a filter 1, kh, kw, C * multiplier, and an optional bias."""

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = _NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedConv2D(Clamped):
    """Reads x, a filter Cout, kh, kw, Cin / groups, and an optional bias.

    `adjustment` rows and columns are added at the bottom and at the right.
    """

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = _NONE
    adjustment: Pair = (0, 0)
    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FullyConnected(Clamped):
    """Reads x: ..., in; weights: out, in; and an optional bias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWeights(OperatorBase):
    """Reads constant weights: rows, ..., and an optional constant bias; makes a window.

    A later convolution or product finds its filter where the window lies.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMul(OperatorBase):
    """Multiplies the matrices of the last two axes; the leading axes broadcast."""

    transpose_a: bool = False
    transpose_b: bool = False

    def scratch(self, inputs: Operands, outputs: Operands) -> int:
        """Return the bytes of the second matrix, packed in panels of columns."""
        rows, columns = _shape(inputs[1])[-2:]
        if self.transpose_b:
            rows, columns = columns, rows
        return _FLOAT * align_up(columns, _GEMM_PANEL) * rows


class PoolKind(StrEnum):
    """What a pool makes of its window."""

    MAXIMUM = "maximum"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool2D(Clamped):
    """Maximum or average over windows; `count_padding`: an average takes padding as zeros."""

    kind: PoolKind
    window: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = _NONE
    count_padding: bool = False


class UnaryFunction(StrEnum):
    """Of one element; what alpha and beta are is in the schema."""

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
class Unary(OperatorBase):
    """Applies a function to each element."""

    function: UnaryFunction
    alpha: float = 0.0
    beta: float = 0.0


class BinaryFunction(StrEnum):
    """Of two elements."""

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
class Binary(Clamped):
    """Applies a function to each pair of elements; shapes broadcast."""

    function: BinaryFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiplyAdd(Clamped):
    """Reads x: ..., C, factors and terms of C: x * factor + term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(OperatorBase):
    """Reads a condition, what to take where it is true, and where it is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(OperatorBase):
    """Over the last axis, of beta times x; with `logarithm` the logarithm of it."""

    logarithm: bool = False
    beta: float = 1.0


class ReduceFunction(StrEnum):
    """What is made of many elements."""

    SUM = "sum"
    MEAN = "mean"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    PRODUCT = "product"
    L1 = "l1"
    L2 = "l2"
    SUM_SQUARE = "sum_square"
    LOG_SUM = "log_sum"
    LOG_SUM_EXP = "log_sum_exp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(OperatorBase):
    """Makes one element of all along some axes."""

    function: ReduceFunction
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgReduce(OperatorBase):
    """The index of the largest element along an axis, or of the smallest."""

    axis: int
    minimum: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalResponseNorm(OperatorBase):
    """Over `size` neighbours on the last axis."""

    size: int
    alpha: float
    beta: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm(OperatorBase):
    """Reads x, a scale and an optional bias of the last `num_axes` axes."""

    epsilon: float
    num_axes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceNorm(OperatorBase):
    """Reads x: N, ..., C, a scale and a bias of C."""

    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class L2Norm(OperatorBase):
    """Divides by the length along the last axis, at least epsilon."""

    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSum(OperatorBase):
    """Along an axis."""

    axis: int
    exclusive: bool = False
    reverse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A strided copy; starts and strides in elements.

    Attributes:
        input: Position among the step's inputs.
        output: Position among its outputs.
        shape: Of what is copied.
    """

    input: int = 0
    output: int = 0
    shape: tuple[int, ...]
    input_start: int = 0
    input_strides: tuple[int, ...]
    output_start: int = 0
    output_strides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(OperatorBase):
    """Moves elements; `fill`, one element, is written all over the outputs first."""

    moves: tuple[Move, ...]
    fill: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(OperatorBase):
    """Reads data and indices: slices of the data along an axis."""

    axis: int
    batch_axes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize2D(OperatorBase):
    """Rows and columns of the input for each of the output.

    Without weights the row or column `low` is taken; with them low and high are blended.
    """

    row_low: tuple[int, ...]
    column_low: tuple[int, ...]
    row_high: tuple[int, ...] = ()
    row_weight: tuple[float, ...] = ()
    column_high: tuple[int, ...] = ()
    column_weight: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert(OperatorBase):
    """To the output's type; quantises and dequantises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lstm(OperatorBase):
    """Reads x, weights, recurrent weights, a bias, and the states to start from.

    Makes y, the hidden and the cell state; one that keeps its states writes them where it reads
    them, and makes y alone. The schema states the shapes.
    """

    reverse: bool = False
    batch_major: bool = False
    keeps_state: bool = False
    cell_clip: float = math.inf

    def scratch(self, inputs: Operands, outputs: Operands) -> int:
        """Return the bytes of the products of one time with both weights, for all gates."""
        batch = _shape(inputs[0])[0 if self.batch_major else 1]
        return _FLOAT * 2 * batch * 4 * _shape(inputs[2])[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gru(OperatorBase):
    """Reads x, weights, recurrent weights, both biases, and the state to start from.

    Makes y and the state. With `reset_after` the reset gate applies to the product
    with the recurrent weights, else to the state before it.
    """

    reverse: bool = False
    batch_major: bool = False
    reset_after: bool = False

    def scratch(self, inputs: Operands, outputs: Operands) -> int:
        """Return the bytes of the products of one time: 3 gates, 2, 1, and the reset state."""
        batch = _shape(inputs[0])[0 if self.batch_major else 1]
        return _FLOAT * 7 * batch * _shape(inputs[2])[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Svdf(Clamped):
    """Reads x, weights of features and of time, an optional bias, and the state it keeps."""

    rank: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class External(OperatorBase):
    """Runs in another runtime, as a model of one operator.

    Attributes:
        runtime: Its name: `onnxruntime`.
        model: The model file's bytes.
        input_names: For the step's inputs, in order.
        output_names: For its outputs.
    """

    runtime: str
    model: bytes
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


def _shape(operand: Shaped | None) -> tuple[int, ...]:
    assert operand is not None
    return operand.shape


RuntimeOperator: TypeAlias = (
    Conv2D
    | DepthwiseConv2D
    | TransposedConv2D
    | FullyConnected
    | MatMul
    | Pool2D
    | Unary
    | Binary
    | MultiplyAdd
    | Select
    | Softmax
    | Reduce
    | ArgReduce
    | LocalResponseNorm
    | LayerNorm
    | InstanceNorm
    | L2Norm
    | CumulativeSum
    | Copy
    | Gather
    | Resize2D
    | Convert
    | Lstm
    | Gru
    | Svdf
    | LoadWeights
    | External
)
