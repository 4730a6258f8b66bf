"""A class for each TFLite operator; the opaque one for those that nothing is known about."""

from collections.abc import Mapping
from typing import ClassVar

from arenite.planner.dtypes import DType
from arenite.planner.operators.imported import (
    AttributeValue,
    Imported,
    ImportedConcatenation,
    ImportedElementWise,
    ImportedKeeper,
    ImportedNormalisation,
    ImportedView,
    Opaque,
)
from arenite.planner.operators.operator import Operands, Region
from arenite.planner.operators.parts import Part, parts_along_axis
from arenite.planner.operators.sliding import Sliding, Window, positive_pair
from arenite.planner.tensors import Tensor


class _Split(Imported):
    """SPLIT_V; SPLIT has the axis first."""

    __slots__ = ()

    _whole = 0

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        """Return the outputs as parts of the tensor that is cut."""
        whole = operands.input(self._whole)
        return () if whole is None else parts_along_axis(whole, operands.outputs)


class _SplitAxisFirst(_Split):
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
            reason = "uint8 inputs may be scaled anew as they are joined"
            return tuple(Part(part.inner, part.outer, None, reason) for part in parts)
        return parts


class _Sliding(Imported):
    """A window over the rows and columns of N, H, W, C."""

    __slots__ = ()

    def sliding(self, operands: Operands) -> Sliding | None:
        """Return how the window slides, None if that is unknown."""
        source, result = operands.source, operands.result
        if source is None or result is None or len(source.shape) != 4 or len(result.shape) != 4:
            return None
        weights = operands.input(1)
        kernel = self._kernel(weights)
        strides = positive_pair(self.attributes.get("strides", (1, 1)))
        dilations = positive_pair(self.attributes.get("dilations", (1, 1)))
        sizes = (*source.shape, *result.shape, *(weights.shape if weights else ()))
        if kernel is None or strides is None or dilations is None or 0 in sizes:
            return None
        is_same = self.attributes.get("padding", "NOTSET") == "SAME"
        windows: list[Window] = []
        for axis in range(2):
            length, count = source.shape[1 + axis], result.shape[1 + axis]
            extent = (count - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
            before = max(0, extent - length) // 2 if is_same else 0
            windows.append(
                Window(length, count, kernel[axis], strides[axis], dilations[axis], before)
            )
        groups = self._groups(source.shape[3], result.shape[3], weights)
        if source.shape[3] % groups or result.shape[3] % groups:
            return None
        return Sliding(windows[0], windows[1], row_axis=1, channel_axis=3, groups=groups)

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the region of the image under the windows, and the whole of other inputs."""
        sliding, source, result = self.sliding(operands), operands.source, operands.result
        if position or sliding is None or source is None or result is None:
            return super().input_region(operands, position, region)
        return sliding.input_region(region, source.shape[3], result.shape[3])

    def _kernel(self, weights: Tensor | None) -> tuple[int, int] | None:
        if weights is None or len(weights.shape) != 4:
            return None
        return weights.shape[1], weights.shape[2]

    def _groups(self, inputs: int, outputs: int, weights: Tensor | None) -> int:
        raise AssertionError


class _Conv2D(_Sliding):
    """Reads x, a filter Cout, kh, kw, Cin / groups, and an optional bias."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of the result times the weights that each takes."""
        weights, result = operands.input(1), operands.result
        if weights is None or result is None or not weights.shape or not weights.shape[0]:
            return 0
        return result.num_elements * (weights.num_elements // weights.shape[0])

    def _groups(self, inputs: int, outputs: int, weights: Tensor | None) -> int:
        assert weights is not None
        return inputs // weights.shape[3] if inputs % weights.shape[3] == 0 else 1


class _DepthwiseConv2D(_Sliding):
    """Reads x, a filter 1, kh, kw, C * multiplier, and an optional bias."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of the result times the taps of the window."""
        weights, result = operands.input(1), operands.result
        if weights is None or result is None or len(weights.shape) != 4:
            return 0
        return result.num_elements * weights.shape[1] * weights.shape[2]

    def _groups(self, inputs: int, outputs: int, weights: Tensor | None) -> int:
        return inputs


class _Pool2D(_Sliding):
    __slots__ = ()

    def _kernel(self, weights: Tensor | None) -> tuple[int, int] | None:
        return positive_pair(self.attributes.get("kernel_shape", ()))

    def _groups(self, inputs: int, outputs: int, weights: Tensor | None) -> int:
        return inputs


class _FullyConnected(Imported):
    """Reads x: ..., in; weights: out, in; and an optional bias."""

    __slots__ = ()

    def multiply_adds(self, operands: Operands) -> int:
        """Return the elements of the result times the length of the products."""
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
    """Copies what it reads to the inputs of a subgraph, whose steps follow until its exit."""

    __slots__ = ()

    fixes_order: ClassVar[bool] = True


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
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), _Pool2D),
    **dict.fromkeys(
        ("CUSTOM", "MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"), Opaque
    ),
    "CONCATENATION": _Concatenation,
    "CONV_2D": _Conv2D,
    "DEPTHWISE_CONV_2D": _DepthwiseConv2D,
    "FULLY_CONNECTED": _FullyConnected,
    "SPLIT": _SplitAxisFirst,
    "SPLIT_V": _Split,
    "TRANSPOSE_CONV": _TransposeConv,
}  # fmt: skip
"""The class of each operator that something is known about."""


def tflite_operator(
    op_type: str,
    attributes: Mapping[str, AttributeValue] | None = None,
    *,
    origin: object = None,
) -> Imported:
    """Return the operator of this name.

    Args:
        op_type: Name in the schema, such as `CONV_2D`.
        attributes: Options that describe a window.
        origin: The operator as the file has it, for lowering.
    """
    return _CLASSES.get(op_type, Imported)(op_type, attributes or {}, 0, origin)
