"""Find an order while the user watches: Ctrl-C, time, and whether it is proved."""

import logging
import multiprocessing
import time
from contextlib import nullcontext

import click

from arenite.cli.console.interrupt import StopRequest, stop_on_interrupt
from arenite.cli.console.streams import note
from arenite.planner.ordering import AnytimeOrder, FindOrder, Order
from arenite.planner.program import Program
from arenite.planner.rewrites.aliasing import has_parts
from arenite.planner.rules import Rules
from arenite.strategies.deadline import time_is_up
from arenite.strategies.order import find_order

logger = logging.getLogger(__name__)


def order_finder(name: str, time_limit_s: float | None = None) -> FindOrder | None:
    """Return what finds the order; None for the model's own.

    A search that is stopped, by the time limit or the first Ctrl-C, keeps its best order so
    far, and the user is told.

    Args:
        name: Of the order strategy.
        time_limit_s: Seconds for each search; None for as many as it takes.

    Raises:
        UnknownStrategyError: There is no such order.
    """
    strategy = find_order(name)
    if name == "given":
        return None
    if not isinstance(strategy, AnytimeOrder):
        return strategy

    def find(program: Program, rules: Rules) -> Order:
        return _search(strategy, program, rules, time_limit_s)

    return find


def _search(
    strategy: AnytimeOrder, program: Program, rules: Rules, time_limit_s: float | None
) -> Order:
    # What works for another process leaves Ctrl-C to it.
    is_alone = multiprocessing.parent_process() is None
    is_over = time_is_up(float("inf") if time_limit_s is None else time_limit_s)
    was_stopped = False
    with stop_on_interrupt() if is_alone else nullcontext(StopRequest()) as request:

        def should_stop() -> bool:
            nonlocal was_stopped
            if request.asked and not was_stopped:
                click.echo(
                    f"order {strategy.name}: stopping; the best order so far is kept "
                    "(Ctrl-C again to abort)",
                    err=True,
                )
            was_stopped = was_stopped or request.asked or is_over()
            return was_stopped

        started = time.perf_counter()
        order = strategy.search(program, rules, should_stop)
    seconds = time.perf_counter() - started
    # Of tensors in parts of others the search proves nothing.
    is_proved = order.optimal and not has_parts(program, rules.aliases)
    verdict = "proved the least" if is_proved else "not proved the least"
    logger.info("order %s: peak %d B, %s, in %.3f s", strategy.name, order.peak, verdict, seconds)
    if was_stopped and not is_proved:
        note(f"order {strategy.name}: stopped; its peak of {order.peak} B is {verdict}")
    return order
