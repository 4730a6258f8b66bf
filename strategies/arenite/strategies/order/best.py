"""The lowest of the quick orders."""

from dataclasses import dataclass, replace
from typing import ClassVar

from arenite.planner import Order, Program, Rules, ShouldStop, liveness
from arenite.planner.programs import never
from arenite.planner.rewrites import share
from arenite.strategies.order.memory_graph import MemoryGraph
from arenite.strategies.order.searches import Beam
from arenite.strategies.order.walks import BreadthFirst, DepthFirst, Given
from arenite.strategies.place.one_pass import GreedyBySize

_MOST_WORK = 500_000_000
"""Of the beam: about a second."""


@dataclass(frozen=True, slots=True)
class BestOrder:
    """Keep the lowest of given, depth-first, breadth-first and beam.

    Among orders with the same peak, the one whose tensors take the smallest arena when placed
    greedily by size wins, then the first.
    """

    name: ClassVar[str] = "best"
    complexity: ClassVar[str] = "time of the beam search"
    source: ClassVar[str] = "lowest peak of the quick orders"

    def __call__(self, program: Program, rules: Rules) -> Order:
        return self.search(program, rules, never)

    def search(self, program: Program, rules: Rules, should_stop: ShouldStop) -> Order:
        memory = MemoryGraph.of(program, rules)
        orders = [walk.of(memory) for walk in (Given(), DepthFirst(), BreadthFirst())]
        orders.append(Beam(max_work=_MOST_WORK).of(memory, should_stop))
        peak = min(order.peak for order in orders)
        lower_bound = max(order.lower_bound for order in orders)
        lowest = {
            order.steps: replace(order, lower_bound=lower_bound)
            for order in orders
            if order.peak == peak
        }
        if len(lowest) == 1 or should_stop():
            return next(iter(lowest.values()))
        return min(lowest.values(), key=lambda order: _height(program, order, rules))


def _height(program: Program, order: Order, rules: Rules) -> int:
    """Return the arena of a quick placement, in bytes."""
    shared = share(program.reordered(order.steps), rules.aliases, rules.boundary, rules.alignment)
    problem = liveness(shared, boundary=rules.boundary, alignment=rules.alignment)
    return GreedyBySize()(problem).height
