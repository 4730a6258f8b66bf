"""The class of each TFLite operator; unknown operators are opaque."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.imported import (
    AttributeValue,
    Imported,
    ImportedConcatenation,
    ImportedElementWise,
    ImportedKeeper,
    ImportedNormalisation,
    ImportedView,
    ImportedWindow,
    Opaque,
)
from arenite.planner.operators.operator import Operands
from arenite.planner.operators.parts import Part, parts_along_axis
from arenite.planner.programs.program import Program, Step
from arenite.planner.tensors import DType


class _SplitV(Imported):
    """SPLIT_V; SPLIT has the axis first."""

    __slots__ = ()

    _whole = 0

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        whole = operands.input(self._whole)
        return () if whole is None else parts_along_axis(whole, operands.outputs)


class _SplitAxisFirst(_SplitV):
    __slots__ = ()

    _whole = 1


class _Concatenation(ImportedConcatenation):
    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Return False: even a single input may be requantised."""
        return False

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        """Return the inputs as parts of the result, except for uint8."""
        parts = super().parts(operands)
        if operands.result is not None and operands.result.dtype is DType.UINT8:
            reason = "uint8 inputs may be rescaled as they are joined"
            return tuple(Part(part.inner, part.outer, None, reason) for part in parts)
        return parts


class _Convolution(ImportedWindow):
    __slots__ = ()

    def kernel(self, operands: Operands) -> tuple[int, int] | None:
        weights = operands.input(1)
        if weights is None or len(weights.shape) != 4 or 0 in weights.shape:
            return None
        return weights.shape[1], weights.shape[2]


class _Conv2D(_Convolution):
    """Reads x, a filter Cout, kh, kw, Cin / groups, and an optional bias."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of the result times the weights that each takes."""
        weights, result = operands.input(1), operands.result
        if weights is None or result is None or not weights.shape or not weights.shape[0]:
            return 0
        return result.num_elements * (weights.num_elements // weights.shape[0])

    def groups(self, operands: Operands) -> int:
        """Return how often the channels of the filter go into those of x, 1 if they do not."""
        weights, inputs = operands.input(1), super().groups(operands)
        assert weights is not None
        return 1 if inputs % weights.shape[3] else inputs // weights.shape[3]


class _DepthwiseConv2D(_Convolution):
    """Reads x, a filter 1, kh, kw, C * multiplier, and an optional bias."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of the result times the taps of the window."""
        weights, result = operands.input(1), operands.result
        if weights is None or result is None or len(weights.shape) != 4:
            return 0
        return result.num_elements * weights.shape[1] * weights.shape[2]


class _FullyConnected(Imported):
    """Reads x: ..., in; weights: out, in; and an optional bias."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        weights, result = operands.input(1), operands.result
        if weights is None or result is None or not weights.shape:
            return 0
        return result.num_elements * weights.shape[-1]


class _TransposeConv(Imported):
    """Reads the shape of its result, a filter Cout, kh, kw, Cin, and x."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of x times the weights that each is multiplied by."""
        weights, source = operands.input(1), operands.input(2)
        if weights is None or source is None or not weights.shape or not weights.shape[-1]:
            return 0
        return source.num_elements * (weights.num_elements // weights.shape[-1])


class SubgraphEntry(Imported):
    """Copies its inputs to the inputs of a subgraph, whose steps follow until its exit."""

    __slots__ = ()

    fixes_order: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Imported):
    """Carries values through its body for as long as its condition holds.

    Attributes:
        condition: Makes one boolean of the carried values.
        body: Makes the next carried values.
    """

    condition: Program
    body: Program


def steps_of(program: Program) -> Iterator[Step]:
    """Yield the steps of a program and of its loops."""
    for step in program.steps:
        yield step
        if isinstance(step.operator, Loop):
            yield from steps_of(step.operator.condition)
            yield from steps_of(step.operator.body)


_CLASSES: Mapping[str, type[Imported]] = {
    **dict.fromkeys(
        ("ABS", "ADD", "CEIL", "COS", "DIV", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH",
         "LEAKY_RELU", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC", "MAXIMUM",
         "MINIMUM", "MUL", "NEG", "POW", "PRELU", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1",
         "ROUND", "RSQRT", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH"),
        ImportedElementWise,
    ),
    **dict.fromkeys(("L2_NORMALIZATION", "LOG_SOFTMAX", "SOFTMAX"), ImportedNormalisation),
    **dict.fromkeys(("BITCAST", "EXPAND_DIMS", "RESHAPE", "SQUEEZE"), ImportedView),
    **dict.fromkeys(
        ("BROADCAST_TO", "CAST", "PAD", "PADV2", "SLICE", "TILE"), ImportedKeeper
    ),
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), ImportedWindow),
    **dict.fromkeys(
        ("CUSTOM", "MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"), Opaque
    ),
    "CONCATENATION": _Concatenation,
    "CONV_2D": _Conv2D,
    "DEPTHWISE_CONV_2D": _DepthwiseConv2D,
    "FULLY_CONNECTED": _FullyConnected,
    "SPLIT": _SplitAxisFirst,
    "SPLIT_V": _SplitV,
    "TRANSPOSE_CONV": _TransposeConv,
}  # fmt: skip
"""The class of each known operator."""


def tflite_operator(
    op_type: str, attributes: Mapping[str, AttributeValue] | None = None
) -> Imported:
    """Return the operator of this name.

    Args:
        op_type: Name in the schema, such as `CONV_2D`.
        attributes: Options that describe a window.
    """
    return _CLASSES.get(op_type, Imported)(op_type, attributes or {})
