"""One call of an operator: operands and attributes, whichever of the two an opset uses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch


@dataclass(frozen=True, slots=True)
class Call:
    """An operator and its operands.

    Attributes:
        inputs: Operands, None where an optional one is left out.
        attributes: By name, as Python values.
        num_outputs: Results that the node names.
        opset: Version of the default domain.
        is_training: Whether the module is in training mode.
    """

    inputs: Sequence["torch.Tensor | None"]
    attributes: Mapping[str, Any]
    num_outputs: int
    opset: int
    is_training: bool

    def __getitem__(self, index: int) -> "torch.Tensor":
        """Return an operand that must be there."""
        found = self.optional(index)
        if found is None:
            raise ValueError(f"operand {index} is missing")
        return found

    def optional(self, index: int) -> "torch.Tensor | None":
        """Return an operand, None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def ints(self, name: str, index: int | None = None) -> list[int] | None:
        """Return integers that an attribute holds in older opsets, an operand in newer ones."""
        operand = None if index is None else self.optional(index)
        if operand is not None:
            return [int(value) for value in operand.reshape(-1).tolist()]
        found = self.attributes.get(name)
        return None if found is None else [int(value) for value in found]

    def number(self, name: str, default: float) -> float:
        """Return an attribute that is a number."""
        return float(self.attributes.get(name, default))

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is an integer."""
        return int(self.attributes.get(name, default))


Operator: TypeAlias = Callable[[Call], Any]
