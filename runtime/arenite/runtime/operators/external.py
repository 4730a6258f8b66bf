"""Operators that another runtime runs, on tensors that lie in our arena."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from arenite.runtime.operators.base import RuntimeOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class External(RuntimeOperator):
    """Runs in another runtime, as a model of one operator.

    Attributes:
        runtime: Its name: `onnxruntime`.
        model: The model file's bytes; in the program file the constant that holds them.
        input_names: For the step's inputs, in order.
        output_names: For its outputs.
    """

    number: ClassVar[int] = 22

    runtime: str
    model: Annotated[bytes, "int"]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
