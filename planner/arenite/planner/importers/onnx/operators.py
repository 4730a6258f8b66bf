"""The class of each ONNX operator; unknown operators are opaque."""

from collections.abc import Mapping
from typing import ClassVar

from arenite.planner.operators.imported import (
    AttributeValue,
    Imported,
    ImportedClamp,
    ImportedCombination,
    ImportedConcatenation,
    ImportedElementWise,
    ImportedKeeper,
    ImportedNormalisation,
    ImportedProduct,
    ImportedSum,
    ImportedView,
    ImportedWindow,
    Opaque,
)
from arenite.planner.operators.operator import Operands, same_layout
from arenite.planner.operators.parts import Part, part_at, parts_along_axis
from arenite.planner.operators.windows import positive_pair
from arenite.planner.sizes import depends, smallest


class _Transpose(Imported):
    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether every axis stays where it is."""
        source = operands.source
        if source is None or not same_layout(source, operands.result):
            return False
        identity = tuple(range(len(source.shape)))
        return self.attributes.get("perm", identity[::-1]) == identity


class _Pad(Imported):
    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether the padding is known to be empty."""
        pads = self.attributes.get("pads")
        is_empty = isinstance(pads, tuple) and not any(pads)
        return is_empty and same_layout(operands.source, operands.result)


class _Slice(Imported):
    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether everything is taken; not if there are steps, which may be negative."""
        return len(operands.inputs) < 5 and same_layout(operands.source, operands.result)

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        outer, inner = operands.source, operands.result
        if outer is None or inner is None:
            return ()
        starts, axes, steps = (self.attributes.get(name) for name in ("starts", "axes", "steps"))
        if not isinstance(starts, tuple):
            reason = "the start of the slice is unknown before the run"
            return (Part(inner.name, outer.name, None, reason),)
        if isinstance(steps, tuple) and any(step != 1 for step in steps):
            return (Part(inner.name, outer.name, None, "steps other than 1 are unsupported"),)
        rank = len(outer.shape)
        along = axes if isinstance(axes, tuple) else tuple(range(len(starts)))
        if len(along) != len(starts) or not all(-rank <= int(axis) < rank for axis in along):
            reason = "the axes do not match the rank of the input"
            return (Part(inner.name, outer.name, None, reason),)
        begins = [0] * rank
        for axis, start in zip(map(int, along), starts, strict=True):
            length = outer.shape[int(axis)]
            if not isinstance(start, int) or depends(start) or (start < 0 and depends(length)):
                reason = "the start of the slice depends on the sizes"
                return (Part(inner.name, outer.name, None, reason),)
            begins[axis] = smallest(start if start >= 0 else max(0, start + length), length)
        return (part_at(outer, inner, begins),)


class _Split(Imported):
    __slots__ = ()

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        source = operands.source
        return () if source is None else parts_along_axis(source, operands.outputs)


class _Pool(ImportedWindow):
    __slots__ = ()

    row_axis: ClassVar[int] = 2


class _Conv(ImportedWindow, ImportedProduct):
    """Reads x, a filter Cout, Cin / group, kh, kw, and an optional bias."""

    __slots__ = ()

    row_axis: ClassVar[int] = 2

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of the result times the weights that each takes."""
        weights, result = operands.input(1), operands.result
        if weights is None or result is None or not weights.shape or not weights.shape[0]:
            return 0
        return result.num_elements * (weights.num_elements // weights.shape[0])

    def kernel(self, operands: Operands) -> tuple[int, int] | None:
        weights = operands.input(1)
        return positive_pair(weights.shape[2:]) if weights and len(weights.shape) == 4 else None

    def groups(self, operands: Operands) -> int:
        groups = self.attributes.get("group", 1)
        return groups if isinstance(groups, int) else 0


class _ConvTranspose(ImportedProduct):
    """Reads x, a filter Cin, Cout / group, kh, kw, and an optional bias."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of x times the weights that each is multiplied by."""
        source, weights = operands.source, operands.input(1)
        if source is None or weights is None or not weights.shape or not weights.shape[0]:
            return 0
        return source.num_elements * (weights.num_elements // weights.shape[0])


class _FusedConv(Imported):
    """ONNX Runtime's convolution that also adds a tensor to its result.

    It reads each element of that tensor just before it writes the sum.
    """

    __slots__ = ()

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        return (3,) if same_layout(operands.input(3), operands.result) else ()


class _MatMul(ImportedProduct):
    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        source, result = operands.source, operands.result
        if source is None or result is None or not source.shape:
            return 0
        return result.num_elements * source.shape[-1]


class _Gemm(ImportedProduct):
    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        source, result = operands.source, operands.result
        if source is None or result is None or len(source.shape) != 2:
            return 0
        return result.num_elements * source.shape[0 if self.attributes.get("transA") else 1]


RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike"}
)  # fmt: skip
"""Operators whose results are not determined by their inputs."""

FORMER_ATTRIBUTES = {"Pad": ("pads",), "Slice": ("starts", "ends", "axes", "steps")}
"""Attributes of early versions that are inputs in later ones, from the second input on."""

_CLASSES: Mapping[str, type[Imported]] = {
    **dict.fromkeys(
        ("Abs", "Acos", "Acosh", "And", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization",
         "Ceil", "Celu", "Cos", "Cosh", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu",
         "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Mod", "Neg", "Not", "Or",
         "PRelu", "Pow", "Reciprocal", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh",
         "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Xor"),
        ImportedElementWise,
    ),
    **dict.fromkeys(("Add", "Mul", "Sub"), ImportedSum),
    **dict.fromkeys(("Clip", "Relu"), ImportedClamp),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), ImportedCombination),
    # Not LRN: its groups overlap.
    **dict.fromkeys(
        ("GroupNormalization", "Hardmax", "InstanceNormalization", "LayerNormalization",
         "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "RMSNormalization",
         "Softmax"),
        ImportedNormalisation,
    ),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), ImportedView),
    **dict.fromkeys(
        ("Cast", "CastLike", "Dropout", "Expand", "Identity", "Tile"), ImportedKeeper
    ),
    **dict.fromkeys(("com.microsoft.FusedConv", "com.microsoft.nchwc.Conv"), _FusedConv),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _Pool),
    **dict.fromkeys(RANDOM, Opaque),
    "Concat": ImportedConcatenation,
    "Conv": _Conv,
    "ConvTranspose": _ConvTranspose,
    "Gemm": _Gemm,
    **dict.fromkeys(("MatMul", "com.microsoft.MatMulNBits"), _MatMul),
    "Pad": _Pad,
    "Slice": _Slice,
    "Split": _Split,
    "Transpose": _Transpose,
}  # fmt: skip
"""The class of each known operator."""


def onnx_operator(
    op_type: str,
    attributes: Mapping[str, AttributeValue] | None = None,
    *,
    reserve: int = 0,
    origin: object = None,
    is_bound: bool = False,
) -> Imported:
    """Return the operator of this name.

    Args:
        op_type: Name, with the domain unless that is ONNX's own.
        reserve: Bytes that hidden subgraphs need.
        origin: The node as the file has it, for lowering.
        is_bound: Whether the sizes of its outputs are upper bounds.
    """
    kind = _CLASSES.get(op_type, Opaque if "." in op_type else Imported)
    return kind(op_type, attributes or {}, reserve, origin, is_bound)
