"""Steps of a program that is being built, and the values that they take and make."""

from dataclasses import dataclass

from arenite.planner.dtypes import DType
from arenite.planner.program import Array
from arenite.runtime.lowering.layout import Order, Shape, stored_shape
from arenite.runtime.operators.base import RuntimeOperator


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the model, and where its bytes are.

    Attributes:
        tensor: Name of the storage or constant.
        dtype: Element type.
        shape: Shape in the model.
        order: Order of the stored axes.
        offset: First byte in the storage.
        array: Elements of a constant, axes in the model's order; None for other tensors.
    """

    tensor: str
    dtype: DType
    shape: Shape
    order: Order
    offset: int = 0
    array: Array | None = None

    @property
    def stored(self) -> Shape:
        """Lengths of the stored axes."""
        return stored_shape(self.shape, self.order)


@dataclass(slots=True)
class Draft:
    """A step into which the operators that follow may still be folded."""

    name: str
    operator: RuntimeOperator
    inputs: list[Value | None]
    outputs: list[Value]
