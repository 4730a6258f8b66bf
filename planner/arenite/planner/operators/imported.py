"""Operators of model files.

`Imported` itself promises no more than to give the same outputs for the same inputs every time,
and `Opaque` not even that. Its other subclasses promise more; each importer has one table from
the operator names of its format to these or to subclasses of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from arenite.planner.operators.operator import Operands, Operator, same_layout
from arenite.planner.operators.parts import Part, parts_along_axis
from arenite.planner.operators.traits import ElementWise, Keeping, Normalising, Viewing
from arenite.planner.operators.windows import AutoPad, Sliding, positive_pair, sliding_over

AttributeValue: TypeAlias = (
    int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
)


@dataclass(frozen=True, slots=True)
class Imported(Operator):
    """An operator of a model file.

    Attributes:
        op_type: `Conv`, `CONV_2D`, `com.microsoft.FusedConv`: the format's own name.
        attributes: Its attributes or options.
        reserve: Bytes that hidden subgraphs need while it runs.
        origin: The operator as the file has it, for lowering.
        is_bound: Whether the sizes of its outputs depend on data, and are upper bounds here.
    """

    op_type: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    reserve: int = 0
    origin: object = field(default=None, compare=False, repr=False)
    is_bound: bool = False

    repeatable: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return self.op_type

    def scratch(self, operands: Operands) -> int:
        return self.reserve


class Opaque(Imported):
    """An operator without known traits, or one that draws random numbers."""

    __slots__ = ()

    repeatable: ClassVar[bool] = False


class ImportedElementWise(ElementWise, Imported):
    """An element-wise operator, such as Sigmoid."""

    __slots__ = ()


class ImportedSum(ImportedElementWise):
    """Add, Sub, Mul: element-wise, and kernels can clamp the result."""

    __slots__ = ()

    takes_clamp: ClassVar[bool] = True


class ImportedClamp(ImportedElementWise):
    """A clamp, such as Relu."""

    __slots__ = ()

    is_clamp: ClassVar[bool] = True


class ImportedCombination(ImportedElementWise):
    """An element-wise operator of any number of inputs, such as Max; the identity of one."""

    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        return len(operands.inputs) == 1 and same_layout(operands.source, operands.result)


class ImportedProduct(Imported):
    """A product, such as MatMul: opaque, but kernels can clamp the result."""

    __slots__ = ()

    takes_clamp: ClassVar[bool] = True


class ImportedWindow(Imported):
    """A convolution or a pool; this class itself is a pool.

    The attributes `kernel_shape`, `strides`, `dilations`, `auto_pad` and `pads` mean what they
    mean in ONNX, whatever the format.
    """

    __slots__ = ()

    row_axis: ClassVar[int] = 1

    def kernel(self, operands: Operands) -> tuple[int, int] | None:
        """Return the taps along rows and columns, None if they are not stated."""
        return positive_pair(self.attributes.get("kernel_shape", ()))

    def groups(self, operands: Operands) -> int:
        """Return the number of groups of channels, 0 if it is unknown."""
        source = operands.source
        channel_axis = 3 if self.row_axis == 1 else 1
        has_channels = source is not None and len(source.shape) > channel_axis
        return source.shape[channel_axis] if source is not None and has_channels else 0

    def sliding(self, operands: Operands) -> Sliding | None:
        """Return how the window slides, None unless that is known and over two axes."""
        kernel = self.kernel(operands)
        strides = positive_pair(self.attributes.get("strides", (1, 1)))
        dilations = positive_pair(self.attributes.get("dilations", (1, 1)))
        mode, pads = self.attributes.get("auto_pad", "NOTSET"), self.attributes.get("pads")
        if kernel is None or strides is None or dilations is None or mode not in set(AutoPad):
            return None
        before = (0, 0)
        if isinstance(pads, tuple) and len(pads) == 4:
            before = (int(pads[0]), int(pads[1]))
        return sliding_over(
            operands.source,
            operands.result,
            kernel=kernel,
            strides=strides,
            dilations=dilations,
            groups=self.groups(operands),
            before=before,
            mode=AutoPad(mode),
            row_axis=self.row_axis,
        )


class ImportedNormalisation(Normalising, Imported):
    """A normalisation, such as Softmax."""

    __slots__ = ()


class ImportedKeeper(Keeping, Imported):
    """An operator that changes nothing if the shape stays the same, such as Expand."""

    __slots__ = ()


class ImportedView(Viewing, Imported):
    """A view, such as Reshape."""

    __slots__ = ()


class ImportedConcatenation(Imported):
    """Joins its inputs along an axis."""

    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether there is one operand, laid out as the result."""
        return len(operands.inputs) == 1 and same_layout(operands.source, operands.result)

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        result = operands.result
        return () if result is None else parts_along_axis(result, operands.inputs)
