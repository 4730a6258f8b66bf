"""The lowest of several plans."""

from collections.abc import Iterable

from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.strategy import Strategy, Watch, run, silent


def lowest_plan(
    strategies: Iterable[Strategy], problem: Problem, watch: Watch = silent
) -> Plan | None:
    """Return the lowest plan, the first of equals; None if none supports the problem.

    Stops at a plan that reaches the lower bound, or when `watch` stops it.
    """
    lower_bound = problem.lower_bound
    best: Plan | None = None
    for strategy in strategies:
        try:
            plan = run(strategy, problem)
        except UnsupportedProblemError:
            continue
        if best is None or plan.height < best.height:
            best = plan
        if watch(best, lower_bound) or best.height == lower_bound:
            break
    return best
