"""One step of an ONNX model, for its translator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from arenite.planner.dtypes import DType
from arenite.planner.operators.imported import AttributeValue, Imported
from arenite.planner.program import Array, Step
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Order, Shape, as_written, channels_last
from arenite.runtime.lowering.step_translation import StepTranslation
from arenite.runtime.operators.base import RuntimeOperator

T = TypeVar("T", bound=AttributeValue)


@dataclass(frozen=True, slots=True)
class Translation(StepTranslation):
    """A step of an ONNX model to translate, and its context.

    Attributes:
        opset: Version of ONNX's own operator set.
    """

    opset: int

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Attributes of the node."""
        return attributes_of(self.step)

    def value(self, position: int = 0) -> Value:
        """Return an input."""
        return self.builder.value(self.step.inputs[position])

    def optional_array(self, position: int) -> Array | None:
        """Return the elements of an input that must be constant if it is given."""
        return self.array(position) if self.has(position) else None

    def attribute(self, name: str, default: T) -> T:
        """Return an attribute, or its default."""
        value = self.attributes.get(name, default)
        if isinstance(default, float) and isinstance(value, int):
            value = float(value)
        if not isinstance(value, type(default)):
            raise NotLoweredError(f"its attribute {name!r} is {value!r}")
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of integers; empty if it is not given."""
        value = self.attributes.get(name, ())
        if not isinstance(value, tuple):
            raise NotLoweredError(f"its attribute {name!r} is {value!r}")
        return tuple(int(each) for each in value)

    def axis(self, default: int, rank: int) -> int:
        """Return the attribute `axis`, counted from the front."""
        axis = self.attribute("axis", default)
        return axis + rank if axis < 0 else axis

    def image(self, position: int = 0) -> Value:
        """Return an input of rank 4, or of rank 3 with a height of 1, channels last."""
        value = self.value(position)
        if len(value.shape) == 3:
            batch, channels, width = value.shape
            value = self.builder.reshaped(value, (batch, channels, 1, width), self.target)
        if len(value.shape) != 4:
            raise NotLoweredError(f"its input has rank {len(value.shape)}, not 4")
        return self.builder.in_order(value, channels_last(4), self.target)

    def emit(
        self,
        operator: RuntimeOperator,
        inputs: list[Value | None],
        *,
        shape: Shape | None = None,
        order: Order | None = None,
        dtype: DType | None = None,
        name: str = "",
    ) -> Value:
        """Add the step that makes the first output or, given a name, an intermediate result."""
        shape = self.shape if shape is None else shape
        (result,) = self.builder.emit(
            operator,
            inputs,
            [(name or self.target, shape, as_written(len(shape)) if order is None else order)],
            dtype=dtype or self.dtype,
            step=name or self.step.name,
        )
        return result

    def finish(self, value: Value) -> None:
        """Bind the first output to this value, under its own shape."""
        if value.shape != self.shape:
            value = self.builder.reshaped(value, self.shape, self.target)
        self.builder.bind(self.target, value)


def attributes_of(step: Step) -> Mapping[str, AttributeValue]:
    """Return the attributes of a step's node."""
    operator = step.operator
    return operator.attributes if isinstance(operator, Imported) else {}
