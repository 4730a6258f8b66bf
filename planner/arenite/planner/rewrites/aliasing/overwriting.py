"""Operators that may write their result over an operand.

Element-wise ones read each element before they write that element. Softmax and
normalisation reduce a group of elements to a few numbers before they write any of the
group, and read no element of another group. A convolution that also adds a tensor reads
each element of that one just before it writes the sum.
"""

from collections.abc import Collection

from arenite.planner.graph import Graph, Operator, TensorKind
from arenite.planner.rewrites.aliasing.kinds import AliasKind

ELEMENT_WISE = frozenset(
    {"Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization",
     "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu",
     "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul",
     "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign",
     "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh",
     "ThresholdedRelu", "Xor"}
    | {"ABS", "ADD", "CEIL", "COS", "DIV", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH",
       "LEAKY_RELU", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC", "MAXIMUM",
       "MINIMUM", "MUL", "NEG", "POW", "PRELU", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1",
       "ROUND", "RSQRT", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH"}
)  # fmt: skip
"""Operators that compute each element of the first output from the same element, or its
broadcast, of each input."""

NORMALISERS = frozenset(
    {"GroupNormalization", "Hardmax", "InstanceNormalization", "LayerNormalization",
     "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "RMSNormalization", "Softmax"}
    | {"L2_NORMALIZATION", "LOG_SOFTMAX", "SOFTMAX"}
)  # fmt: skip
"""Operators that rescale groups of elements of the first input by what each group as a
whole amounts to. Not LRN: its groups overlap."""

ACCUMULATORS = {"com.microsoft.FusedConv": 3, "com.microsoft.nchwc.Conv": 3}
"""Convolutions that add an operand to what they write, and its position."""


def overwriting_kind(operator: Operator) -> AliasKind | None:
    """Return the kind of sharing that lets the operator run in place, None if none does."""
    if not any(operator.outputs[:1]):
        return None
    if operator.op_type in ELEMENT_WISE or operator.op_type in ACCUMULATORS:
        return AliasKind.IN_PLACE
    return AliasKind.NORMALISATION if operator.op_type in NORMALISERS else None


def overwritable(
    graph: Graph, operator: Operator, kinds: Collection[AliasKind]
) -> tuple[str, ...]:
    """Return the operands whose place the first output may take if they die there."""
    kind = overwriting_kind(operator)
    if kind is None or kind not in kinds:
        return ()
    result = graph.tensors[operator.outputs[0]]
    if result.alias is not None or result.kind is TensorKind.STATE:
        return ()
    spared = () if AliasKind.REUSE_INPUTS in kinds else graph.inputs
    return tuple(
        name
        for name in _read_in_step(operator)
        if graph.tensors[name].dtype.bits == result.dtype.bits
        and graph.tensors[name].shape == result.shape
        and graph.root(name)[0] not in spared
    )


def _read_in_step(operator: Operator) -> tuple[str, ...]:
    """Return the operands of which nothing is read after its place is written."""
    if operator.op_type in ELEMENT_WISE:
        return operator.reads
    position = ACCUMULATORS.get(operator.op_type, 0)
    return tuple(name for name in operator.inputs[position : position + 1] if name)
