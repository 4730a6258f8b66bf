"""An operator that is written as simpler ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from arenite.training.builder import Builder
from arenite.training.graph import Node, Value


class NotExpandedError(Exception):
    """An operator with these attributes or operands is not written as others."""


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its operands.

    Attributes:
        graph: Where the simpler operators are written.
        node: The operator.
        inputs: Its operands by position; None where one is left out.
        outputs: Its results, of which the types count.
    """

    graph: Builder
    node: Node
    inputs: Sequence[Value | None]
    outputs: Sequence[Value | None]

    def input(self, position: int) -> Value:
        """Return an operand that must be there."""
        found = self.optional(position)
        if found is None:
            raise NotExpandedError(f"input {position} is missing")
        return found

    def optional(self, position: int) -> Value | None:
        """Return an operand, None if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None


Expansion: TypeAlias = Callable[[Call], Sequence[Value | None]]
"""Writes an operator and returns its results by position; None for those it does not make."""
