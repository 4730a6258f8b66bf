"""Stochastic gradient descent."""

from typing import ClassVar

from arenite.training.builder import Builder
from arenite.training.graph import Value
from arenite.training.optimisers.optimiser import Update


class Sgd:
    """w' = w - rate g; the rate is in g already."""

    scales_seed: ClassVar[bool] = True

    def begin(self, graph: Builder, rate: Value) -> list[Update]:
        """Write nothing."""
        del graph, rate
        return []

    def update(self, graph: Builder, weight: Value, gradient: Value) -> list[Update]:
        """Write the update of a weight."""
        return [Update(weight, graph.minus(weight, gradient))]
