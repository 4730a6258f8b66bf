"""The lowest of the quick orders."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.graph import Graph
from arenite.planner.ordering import MemoryModel, Order
from arenite.strategies.order.searches import Beam
from arenite.strategies.order.walks import BreadthFirst, DepthFirst, Given


@dataclass(frozen=True, slots=True)
class BestOrder:
    """Keep the lowest of given, depth-first, breadth-first and beam, the first of equals.

    Cost: that of the beam.
    """

    name: ClassVar[str] = "best"
    complexity: ClassVar[str] = "O(n x width x ready)"
    source: ClassVar[str] = "lowest of the quick orders"

    def __call__(self, graph: Graph, model: MemoryModel) -> Order:
        """Return the lowest order."""
        orders = [find(graph, model) for find in (Given(), DepthFirst(), BreadthFirst(), Beam())]
        return min(orders, key=lambda order: order.peak)
