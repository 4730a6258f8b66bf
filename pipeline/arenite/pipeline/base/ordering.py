"""Find an order of a program within limits, observed."""

import logging
import time

from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.planner import FindOrder, Order, Program, Rules
from arenite.planner.programs import AnytimeOrder
from arenite.planner.rewrites import has_parts
from arenite.strategies import find_order

logger = logging.getLogger(__name__)


def order_finder(name: str, limits: SearchLimits = UNLIMITED) -> FindOrder | None:
    """Return a function that finds an order; None for the model's own.

    A search that is stopped keeps its best order so far, and the observer is told.

    Raises:
        UnknownStrategyError: There is no order strategy of that name.
    """
    strategy = find_order(name)
    if name == "given":
        return None
    if not isinstance(strategy, AnytimeOrder):
        return strategy

    def find(program: Program, rules: Rules) -> Order:
        return _search(strategy, program, rules, limits)

    return find


def _search(strategy: AnytimeOrder, program: Program, rules: Rules, limits: SearchLimits) -> Order:
    is_over = limits.is_over()
    was_stopped = False
    with limits.observer.searching(f"order {strategy.name}", "order") as search:

        def should_stop() -> bool:
            nonlocal was_stopped
            was_stopped = was_stopped or search.should_stop() or is_over()
            return was_stopped

        started = time.perf_counter()
        order = strategy.search(program, rules, should_stop)
    seconds = time.perf_counter() - started
    # The search proves nothing where tensors lie inside others.
    is_proved = order.optimal and not has_parts(program, rules.aliases)
    verdict = "proved the least" if is_proved else "not proved the least"
    logger.info("order %s: peak %d B, %s, in %.3f s", strategy.name, order.peak, verdict, seconds)
    if was_stopped and not is_proved:
        limits.observer.note(
            f"order {strategy.name}: stopped; its peak of {order.peak} B is {verdict}"
        )
    return order
