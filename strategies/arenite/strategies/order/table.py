"""The table of orders."""

from arenite.planner.errors import UnknownStrategyError
from arenite.planner.programs import OrderStrategy
from arenite.strategies.order.best import BestOrder
from arenite.strategies.order.searches import Beam, GreedyByMemory, OptimalOrder
from arenite.strategies.order.walks import BreadthFirst, DepthFirst, Given

ORDERS: tuple[OrderStrategy, ...] = (
    Given(),
    DepthFirst(),
    BreadthFirst(),
    GreedyByMemory(),
    Beam(),
    OptimalOrder(),
    BestOrder(),
)
"""Ours, in the order of the documentation."""


def find_order(name: str) -> OrderStrategy:
    """Return the order strategy of that name.

    Raises:
        UnknownStrategyError: There is none; the error lists the known.
    """
    for order in ORDERS:
        if order.name == name:
            return order
    raise UnknownStrategyError(name, [order.name for order in ORDERS])
