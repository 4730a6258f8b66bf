"""The lowest of the quick orders."""

from dataclasses import dataclass, replace
from typing import ClassVar

from arenite.planner.graph import Graph
from arenite.planner.liveness import liveness
from arenite.planner.ordering import MemoryModel, Order, ShouldStop, never
from arenite.planner.rewrites.aliasing import alias
from arenite.strategies.order.searches import Beam
from arenite.strategies.order.walks import BreadthFirst, DepthFirst, Given
from arenite.strategies.place.greedy_by_size import GreedyBySize


@dataclass(frozen=True, slots=True)
class BestOrder:
    """Keep the lowest of given, depth-first, breadth-first and beam.

    Of orders with the same peak the one whose tensors, placed greedily by size, take the
    smaller arena is kept, of those the first.
    """

    name: ClassVar[str] = "best"
    complexity: ClassVar[str] = "that of the beam"
    source: ClassVar[str] = "lowest of the quick orders"

    def __call__(self, graph: Graph, model: MemoryModel) -> Order:
        """Return the lowest order."""
        return self.search(graph, model, never)

    def search(self, graph: Graph, model: MemoryModel, should_stop: ShouldStop) -> Order:
        """Return the lowest order when all are found or `should_stop` ends the beam."""
        orders = [find(graph, model) for find in (Given(), DepthFirst(), BreadthFirst())]
        orders.append(Beam().search(graph, model, should_stop))
        peak = min(order.peak for order in orders)
        lower_bound = max(order.lower_bound for order in orders)
        lowest = {
            order.operators: replace(order, lower_bound=lower_bound)
            for order in orders
            if order.peak == peak
        }
        if len(lowest) == 1 or should_stop():
            return next(iter(lowest.values()))
        return min(lowest.values(), key=lambda order: _height(graph, order, model))


def _height(graph: Graph, order: Order, model: MemoryModel) -> int:
    """Return the arena of a quick placement, in bytes."""
    shared = alias(
        graph.reordered(order.operators), model.aliases, model.boundary, model.alignment
    )
    problem = liveness(shared, boundary=model.boundary, alignment=model.alignment)
    return GreedyBySize()(problem).height
