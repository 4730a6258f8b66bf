"""Adam."""

from typing import ClassVar

from arenite.training.builder import Builder
from arenite.training.graph import Value
from arenite.training.optimisers.optimiser import Update


class Adam:
    """w' = w - rate m^ / (sqrt(v^) + epsilon), m and v running means of g and g g.

    The moments are corrected for having started as zeros: c = 1 - stays^t divides them. That is
    a small difference of numbers near 1 at first, so it is a state of its own, which grows as
    c' = stays c + (1 - stays) from 0 and loses no digits.

    Args:
        first: How much of m stays.
        second: How much of v stays.
        epsilon: Keeps the divisor above 0.

    Source: Kingma and Ba, arXiv 1412.6980, algorithm 1.
    """

    scales_seed: ClassVar[bool] = False

    def __init__(self, first: float = 0.9, second: float = 0.999, epsilon: float = 1e-8) -> None:
        self._first = first
        self._second = second
        self._epsilon = epsilon
        self._step: Value | None = None
        self._root: Value | None = None

    def begin(self, graph: Builder, rate: Value) -> list[Update]:
        """Write the corrections of this run."""
        updates: list[Update] = []
        for name, stays in (("first", self._first), ("second", self._second)):
            state = graph.new(f"adam/{name}", rate.dtype, ())
            kept = graph.scaled(state, stays)
            updates.append(Update(state, graph.plus(kept, graph.scalar(1 - stays, kept))))
        first, second = (each.new for each in updates)
        # rate m^ / (sqrt(v^) + epsilon) = (rate / first) m / (sqrt(v) / sqrt(second) + epsilon)
        self._step = graph.over(rate, first)
        self._root = graph.unary("Reciprocal", graph.unary("Sqrt", second))
        return updates

    def update(self, graph: Builder, weight: Value, gradient: Value) -> list[Update]:
        """Write the update of a weight and of its moments."""
        assert self._step is not None
        assert self._root is not None
        mean, square = (
            graph.new(f"{weight.name}/{name}", weight.dtype, weight.shape)
            for name in ("mean", "square")
        )
        # m + (1 - stays) (g - m) needs one tensor beside g, stays m + (1 - stays) g two.
        spread = graph.minus(graph.times(gradient, gradient), square)
        new_square = graph.plus(square, graph.scaled(spread, 1 - self._second))
        change = graph.minus(gradient, mean)
        new_mean = graph.plus(mean, graph.scaled(change, 1 - self._first))
        divisor = graph.plus(
            graph.times(graph.unary("Sqrt", new_square), self._root),
            graph.scalar(self._epsilon, weight),
        )
        moved = graph.over(graph.times(new_mean, self._step), divisor)
        return [
            Update(weight, graph.minus(weight, moved)),
            Update(mean, new_mean),
            Update(square, new_square),
        ]
