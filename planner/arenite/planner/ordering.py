"""What an operator order is. The ways to find one live in `arenite.strategies.order`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from arenite.planner.graph import Graph
from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary, liveness
from arenite.planner.rewrites.aliasing import AliasKind, alias, has_parts


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """What counts while an order is sought: the same that liveness will count.

    Attributes:
        aliases: What may share storage. Searches leave slices and concat out: those are
            decided for the order found, and only lower its peak.
        boundary: Whether graph inputs and outputs count.
        alignment: Bytes that sizes are rounded up to.
    """

    aliases: tuple[AliasKind, ...] = ()
    boundary: Boundary = Boundary.INCLUDE
    alignment: int = DEFAULT_ALIGNMENT


@dataclass(frozen=True, slots=True)
class Order:
    """A topological order of a graph's operators.

    Attributes:
        operators: Their names.
        peak: Largest load over the steps, in bytes, as the memory model counts.
        lower_bound: Bytes that no order goes below, as far as is known.
    """

    operators: tuple[str, ...]
    peak: int
    lower_bound: int

    @property
    def optimal(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak == self.lower_bound


@runtime_checkable
class OrderStrategy(Protocol):
    """From a graph to an order: pure and deterministic.

    Attributes:
        name: As on the command line.
        complexity: Time in the number of operators n.
        source: The paper or system it comes from.
    """

    name: ClassVar[str]
    complexity: ClassVar[str]
    source: ClassVar[str]

    def __call__(self, graph: Graph, model: MemoryModel) -> Order:
        """Return an order of the graph's operators."""
        ...


ShouldStop: TypeAlias = Callable[[], bool]
"""Asked again and again while an order is sought; returns True to stop the search."""


@runtime_checkable
class AnytimeOrder(OrderStrategy, Protocol):
    """An order strategy that has an order early and a better one later."""

    def search(self, graph: Graph, model: MemoryModel, should_stop: ShouldStop) -> Order:
        """Return the best order found when the search ends or `should_stop` says so.

        Its lower bound tells whether it is proved the best.
        """
        ...


def never() -> bool:
    """Let a search run to its end."""
    return False


FindOrder: TypeAlias = Callable[[Graph, MemoryModel], Order]
"""An order strategy, or anything that does the same."""


def choose_order(graph: Graph, find_order: FindOrder, model: MemoryModel) -> Order:
    """Return the order found, or the graph's own where parts of tensors tip the scales.

    A search counts every part of a tensor as a storage of its own; which parts lie in the
    whole is decided in the order it found. So the peak it states is an upper bound, and
    what it proved does not hold.
    """
    found = find_order(graph, model)
    if not has_parts(graph, model.aliases):
        return found
    orders = (found.operators, tuple(operator.name for operator in graph.operators))
    peaks = [_peak(graph.reordered(operators), model) for operators in orders]
    peak = min(peaks)
    return Order(orders[peaks.index(peak)], peak, lower_bound=0)


def _peak(graph: Graph, model: MemoryModel) -> int:
    graph = alias(graph, model.aliases, model.boundary, model.alignment)
    return liveness(graph, boundary=model.boundary, alignment=model.alignment).lower_bound
