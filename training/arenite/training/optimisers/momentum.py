"""Gradient descent with momentum."""

from typing import ClassVar

from arenite.training.builder import Builder
from arenite.training.graph import Value
from arenite.training.optimisers.optimiser import Update


class Momentum:
    """v' = momentum v + g, w' = w - rate v'; v starts as zeros.

    Args:
        momentum: How much of v stays.

    Source: PyTorch's SGD with momentum, without dampening; Sutskever et al., ICML 2013.
    """

    scales_seed: ClassVar[bool] = False

    def __init__(self, momentum: float = 0.9) -> None:
        self._momentum = momentum
        self._rate: Value | None = None

    def begin(self, graph: Builder, rate: Value) -> list[Update]:
        """Write nothing."""
        del graph
        self._rate = rate
        return []

    def update(self, graph: Builder, weight: Value, gradient: Value) -> list[Update]:
        """Write the update of a weight and of its v."""
        assert self._rate is not None
        speed = graph.new(f"{weight.name}/momentum", weight.dtype, weight.shape)
        new = graph.plus(graph.scaled(speed, self._momentum), gradient)
        moved = graph.minus(weight, graph.times(new, self._rate))
        return [Update(weight, moved), Update(speed, new)]
