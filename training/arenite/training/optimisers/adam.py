"""Adam."""

from typing import ClassVar

from arenite.planner.dtypes import DType
from arenite.training.builder import Builder
from arenite.training.graph import Value
from arenite.training.optimisers.optimiser import Update


class Adam:
    """w' = w - rate m^ / (sqrt(v^) + epsilon), m and v running means of g and g g.

    The moments are corrected for having started as zeros. The factors of that are numbers
    near 1 less numbers near 1, so they are computed in 64 bits.

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
        """Write the count of runs, and the corrections that follow from it."""
        runs = graph.new("adam/runs", DType.FLOAT64, ())
        count = graph.plus(runs, graph.scalar(1, runs))
        first, second = (
            graph.minus(
                graph.scalar(1, count), graph.binary("Pow", graph.scalar(stays, count), count)
            )
            for stays in (self._first, self._second)
        )
        # rate m^ / (sqrt(v^) + epsilon) = (rate / first) m / (sqrt(v) / sqrt(second) + epsilon)
        step = graph.over(graph.cast(rate, DType.FLOAT64), first)
        self._step = graph.cast(step, rate.dtype)
        root = graph.unary("Reciprocal", graph.unary("Sqrt", second))
        self._root = graph.cast(root, rate.dtype)
        return [Update(runs, count)]

    def update(self, graph: Builder, weight: Value, gradient: Value) -> list[Update]:
        """Write the update of a weight and of its moments."""
        assert self._step is not None
        assert self._root is not None
        mean, square = (
            graph.new(f"{weight.name}/{name}", weight.dtype, weight.shape)
            for name in ("mean", "square")
        )
        own = graph.scaled(graph.times(gradient, gradient), 1 - self._second)
        new_square = graph.plus(graph.scaled(square, self._second), own)
        new_mean = graph.plus(
            graph.scaled(mean, self._first), graph.scaled(gradient, 1 - self._first)
        )
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
