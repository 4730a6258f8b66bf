"""What the translations of a step have in common, whichever format its model is of."""

from collections.abc import Mapping
from dataclasses import dataclass

from arenite.planner.dtypes import DType
from arenite.planner.program import Array, Step
from arenite.runtime.lowering.builder import Builder
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Shape


@dataclass(frozen=True, slots=True)
class StepTranslation:
    """A step to translate, and its context.

    Attributes:
        builder: The program so far.
        step: The step to translate.
        producers: For each tensor of the model, the step that makes it.
    """

    builder: Builder
    step: Step
    producers: Mapping[str, Step]

    @property
    def kind(self) -> str:
        """The operator's name; of ONNX its domain in front, unless that is ONNX's own."""
        return self.step.operator.label

    def has(self, position: int) -> bool:
        """Tell whether an optional input is given."""
        return position < len(self.step.inputs) and bool(self.step.inputs[position])

    def source(self, position: int = 0) -> str:
        """Return the name of an input."""
        return self.step.inputs[position]

    def array(self, position: int) -> Array:
        """Return the elements of an input that must be constant."""
        array = self.builder.array(self.source(position))
        if array is None:
            raise NotLoweredError(f"its input {position} is not constant")
        return array

    @property
    def target(self) -> str:
        """Name of the first output."""
        return self.step.outputs[0]

    @property
    def shape(self) -> Shape:
        """Shape of the first output."""
        return self.builder.shape(self.target)

    @property
    def dtype(self) -> DType:
        """Type of the first output."""
        return self.builder.model.tensors[self.target].dtype
