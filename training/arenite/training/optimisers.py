"""Optimisers: the update of a weight by its gradient."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from arenite.training.graph import StepGraph, Value


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """A state and its next value.

    Attributes:
        state: The value that the step reads.
        new: The value for the next run.
    """

    state: Value
    new: Value


class Optimiser(Protocol):
    """Changes weights by their gradients.

    Attributes:
        scales_seed: Whether the gradients contain the learning rate already, from the seed of
            the loss on: one multiplication instead of one per parameter.
    """

    scales_seed: ClassVar[bool]

    def begin(self, graph: StepGraph, rate: Value) -> list[StateUpdate]:
        """Write the common part of all updates, and return its states.

        Args:
            graph: The graph, before the first gradient.
            rate: The learning rate, a scalar.
        """
        ...

    def update(
        self, graph: StepGraph, weight: Value, gradient: Value
    ) -> tuple[Value, list[StateUpdate]]:
        """Write the update of a weight.

        Returns:
            The difference to subtract from the weight, and the updates of its moments.
        """
        ...


class Sgd:
    """Stochastic gradient descent: w' = w - rate g; g contains the rate."""

    scales_seed: ClassVar[bool] = True

    def begin(self, graph: StepGraph, rate: Value) -> list[StateUpdate]:
        del graph, rate
        return []

    def update(
        self, graph: StepGraph, weight: Value, gradient: Value
    ) -> tuple[Value, list[StateUpdate]]:
        del graph, weight
        return gradient, []


class Momentum:
    """v' = momentum v + g, w' = w - rate v'; v starts as zeros.

    Args:
        momentum: Factor of v.

    Source: PyTorch's SGD with momentum, without dampening; Sutskever et al., ICML 2013.
    """

    scales_seed: ClassVar[bool] = False

    def __init__(self, momentum: float = 0.9) -> None:
        self._momentum = momentum
        self._rate: Value | None = None

    def begin(self, graph: StepGraph, rate: Value) -> list[StateUpdate]:
        del graph
        self._rate = rate
        return []

    def update(
        self, graph: StepGraph, weight: Value, gradient: Value
    ) -> tuple[Value, list[StateUpdate]]:
        assert self._rate is not None
        speed = graph.new(f"{weight.name}/momentum", weight.dtype, weight.shape)
        new = graph.plus(graph.scaled(speed, self._momentum), gradient)
        return graph.times(new, self._rate), [StateUpdate(speed, new)]


class Adam:
    """w' = w - rate m^ / (sqrt(v^) + epsilon), m and v running means of g and g g.

    The moments start as zeros, so they are divided by c = 1 - decay^t. At first c is a small
    difference of numbers near 1: it is a state of its own, which grows from 0 as
    c' = decay c + (1 - decay) and loses no digits.

    Args:
        first: Decay of m.
        second: Decay of v.
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

    def begin(self, graph: StepGraph, rate: Value) -> list[StateUpdate]:
        """Write the corrections of this run."""
        updates: list[StateUpdate] = []
        for name, decay in (("first", self._first), ("second", self._second)):
            state = graph.new(f"adam/{name}", rate.dtype, ())
            kept = graph.scaled(state, decay)
            updates.append(StateUpdate(state, graph.plus(kept, graph.scalar(1 - decay, kept))))
        first, second = (each.new for each in updates)
        # rate m^ / (sqrt(v^) + epsilon) = (rate / first) m / (sqrt(v) / sqrt(second) + epsilon)
        self._step = graph.over(rate, first)
        self._root = graph.unary("Reciprocal", graph.unary("Sqrt", second))
        return updates

    def update(
        self, graph: StepGraph, weight: Value, gradient: Value
    ) -> tuple[Value, list[StateUpdate]]:
        assert self._step is not None
        assert self._root is not None
        mean, square = (
            graph.new(f"{weight.name}/{name}", weight.dtype, weight.shape)
            for name in ("mean", "square")
        )
        # m + (1 - decay) (g - m) needs one tensor beside g, decay m + (1 - decay) g two.
        spread = graph.minus(graph.times(gradient, gradient), square)
        new_square = graph.plus(square, graph.scaled(spread, 1 - self._second))
        change = graph.minus(gradient, mean)
        new_mean = graph.plus(mean, graph.scaled(change, 1 - self._first))
        divisor = graph.plus(
            graph.times(graph.unary("Sqrt", new_square), self._root),
            graph.scalar(self._epsilon, weight),
        )
        moved = graph.over(graph.times(new_mean, self._step), divisor)
        return moved, [StateUpdate(mean, new_mean), StateUpdate(square, new_square)]


OPTIMISERS: Final[Mapping[str, Callable[[], Optimiser]]] = {
    "sgd": Sgd,
    "momentum": Momentum,
    "adam": Adam,
}
"""Optimisers by name."""
