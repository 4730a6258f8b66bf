"""The lowest of the quick orders."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.graph import Graph
from arenite.planner.liveness import liveness
from arenite.planner.ordering import MemoryModel, Order
from arenite.planner.rewrites.aliasing import alias
from arenite.strategies.order.searches import Beam
from arenite.strategies.order.walks import BreadthFirst, DepthFirst, Given
from arenite.strategies.place.greedy_by_size import GreedyBySize


@dataclass(frozen=True, slots=True)
class BestOrder:
    """Keep the lowest of given, depth-first, breadth-first and beam.

    Of orders with the same peak the one whose tensors, placed greedily by size, take the
    smaller arena is kept, of those the first.

    Cost: that of the beam.
    """

    name: ClassVar[str] = "best"
    complexity: ClassVar[str] = "O(n x width x ready)"
    source: ClassVar[str] = "lowest of the quick orders"

    def __call__(self, graph: Graph, model: MemoryModel) -> Order:
        """Return the lowest order."""
        orders = [find(graph, model) for find in (Given(), DepthFirst(), BreadthFirst(), Beam())]
        peak = min(order.peak for order in orders)
        lowest = {order.operators: order for order in orders if order.peak == peak}
        if len(lowest) == 1:
            return next(iter(lowest.values()))
        return min(lowest.values(), key=lambda order: _height(graph, order, model))


def _height(graph: Graph, order: Order, model: MemoryModel) -> int:
    """Return the arena of a quick placement, in bytes."""
    shared = alias(
        graph.reordered(order.operators), model.aliases, model.boundary, model.alignment
    )
    problem = liveness(shared, boundary=model.boundary, alignment=model.alignment)
    return GreedyBySize()(problem).height
