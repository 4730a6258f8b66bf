"""The lowest of several plans."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from arenite.planner import Plan, Problem, Strategy
from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.placement import AbandonedError, Abandoning, Watch, run, silent


def lowest_plan(
    strategies: Iterable[Strategy],
    problem: Problem,
    watch: Watch = silent,
    best: Plan | None = None,
) -> Plan | None:
    """Return the lowest plan, the first of equals; None if none supports the problem.

    `best` is a plan to begin with. Stops at a plan that reaches the lower bound, or when `watch`
    stops it, but not before the second plan: the first strategy may be the baseline that reuses
    nothing. Once there is a plan, a watch that can abandon a strategy need not wait for the next.
    """
    lower_bound = problem.lower_bound if best is None else best.lower_bound
    for strategy in strategies:
        try:
            with _stoppable(watch, best):
                plan = run(strategy, problem)
                lowest = plan if best is None or plan.height < best.height else best
                is_stopped = watch(lowest, lower_bound) and best is not None
        except UnsupportedProblemError:
            continue
        except AbandonedError:
            watch(best, lower_bound)
            break
        best = lowest.with_bound(lower_bound)
        if is_stopped or best.height <= lower_bound:
            break
    return best


def _stoppable(watch: Watch, best: Plan | None) -> AbstractContextManager[None]:
    if best is not None and isinstance(watch, Abandoning):
        return watch.abandoning()
    return nullcontext()
