"""What an optimiser is."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from arenite.training.builder import Builder
from arenite.training.graph import Value


@dataclass(frozen=True, slots=True)
class Update:
    """A state and what replaces it.

    Attributes:
        state: The value that the step reads.
        new: The value that it leaves for the next run.
    """

    state: Value
    new: Value


class Optimiser(Protocol):
    """Changes weights by their gradients.

    Attributes:
        scales_seed: Whether the learning rate is a factor of the gradients already, from the
            seed of the loss on: one multiplication instead of one a parameter.
    """

    scales_seed: ClassVar[bool]

    def begin(self, graph: Builder, rate: Value) -> list[Update]:
        """Write what all updates share, and return the states among it.

        Args:
            graph: The graph, before the first gradient.
            rate: The learning rate, without axes.
        """
        ...

    def update(self, graph: Builder, weight: Value, gradient: Value) -> list[Update]:
        """Write the update of a weight; the first is its own, then those of its moments."""
        ...
