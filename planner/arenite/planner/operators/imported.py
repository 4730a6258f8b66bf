"""Operators as a model file names them.

`Imported` itself is opaque. The classes below say more, and each importer has one table from
the names of its format to them or to classes of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from arenite.planner.operators.elementwise import ElementWise
from arenite.planner.operators.keeping import Keeping, Viewing
from arenite.planner.operators.normalising import Normalising
from arenite.planner.operators.operator import Operands, Operator, same_layout
from arenite.planner.operators.parts import Part, parts_along_axis

AttributeValue: TypeAlias = (
    int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
)


@dataclass(frozen=True, slots=True)
class Imported(Operator):
    """An operator of a model file.

    Attributes:
        op_type: `Conv`, `CONV_2D`, `com.microsoft.FusedConv`: the format's own name.
        attributes: What the format states beside the tensors.
        reserve: Bytes that hidden subgraphs need while it runs.
        origin: What the importer keeps of the file, for who lowers the operator.
    """

    op_type: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    reserve: int = 0
    origin: object = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """The format's own name."""
        return self.op_type

    def scratch(self, operands: Operands) -> int:
        """Return what its subgraphs need."""
        return self.reserve


class ImportedElementWise(ElementWise, Imported):
    """Such as Sigmoid."""

    __slots__ = ()


class ImportedSum(ImportedElementWise):
    """Add, Sub, Mul: kernels clamp their results."""

    __slots__ = ()

    takes_clamp: ClassVar[bool] = True


class ImportedClamp(ImportedElementWise):
    """Such as Relu."""

    __slots__ = ()

    is_clamp: ClassVar[bool] = True


class ImportedCombination(ImportedElementWise):
    """Such as Max: of any number of operands; one alone stays as it is."""

    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether there is one operand, laid out as the result."""
        return len(operands.inputs) == 1 and same_layout(operands.source, operands.result)


class ImportedProduct(Imported):
    """Such as MatMul: opaque, but for kernels that clamp their results."""

    __slots__ = ()

    takes_clamp: ClassVar[bool] = True


class ImportedNormalisation(Normalising, Imported):
    """Such as Softmax."""

    __slots__ = ()


class ImportedKeeper(Keeping, Imported):
    """Such as Expand."""

    __slots__ = ()


class ImportedView(Viewing, Imported):
    """Such as Reshape."""

    __slots__ = ()


class ImportedConcatenation(Imported):
    """Joins its inputs along an axis."""

    __slots__ = ()

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether there is one operand, laid out as the result."""
        return len(operands.inputs) == 1 and same_layout(operands.source, operands.result)

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        """Return its inputs inside the result."""
        result = operands.result
        return () if result is None else parts_along_axis(result, operands.inputs)
