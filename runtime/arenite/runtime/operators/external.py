"""Operators that another runtime runs, on tensors that lie in our arena."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from arenite.runtime.operators.base import UNSTORED, RuntimeOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class External(RuntimeOperator):
    """Runs in another runtime, as a model of one operator.

    Attributes:
        runtime: Name of the runtime: `onnxruntime`.
        model: Bytes of the model file; in the program file, the constant that holds them.
        input_names: Names in that file of the step's inputs, in order.
        output_names: Names in that file of the step's outputs, in order.
        op_type: Name of the operator in the original model, for display.
        repeats: Whether the same inputs give the same outputs every time, as the importer knows;
            one that draws random numbers does not. The program file does not say.
    """

    number: ClassVar[int] = 22

    runtime: str
    model: Annotated[bytes, "int"]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    op_type: str = ""
    repeats: bool = field(default=False, metadata={UNSTORED: True})

    @property
    def repeatable(self) -> bool:  # type: ignore[override]  # of each its own
        """Whether a step may run once more instead of keeping what it made."""
        return self.repeats

    @property
    def label(self) -> str:
        """The operator's name in the model."""
        return self.op_type or "External"
