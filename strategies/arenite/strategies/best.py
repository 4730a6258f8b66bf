"""The lowest plan of several strategies."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.strategy import Strategy, StrategyKind, Watch, silent


@dataclass(frozen=True, slots=True)
class Best:
    """Run every quick strategy there is and keep the lowest plan.

    The plan names the strategy that made it; of equals, the earlier in the table. A plan
    that reaches the lower bound ends the search.

    Cost: the sum over the quick strategies.
    Source: our own; no one-pass order dominates the others.
    """

    name: ClassVar[str] = "best"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "sum of the quick strategies"
    source: ClassVar[str] = "lowest plan of the quick strategies"
    quick: ClassVar[bool] = False

    def supports(self, _problem: Problem) -> str | None:
        """Return None: greedy strategies support any problem."""
        return None

    def __call__(self, problem: Problem) -> Plan:
        """Return the lowest plan."""
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the lowest plan so far when all have run or `watch` stops them."""
        # The table lists this very class.
        from arenite.strategies.table import known

        quick = [strategy for strategy in known().values() if strategy.quick]
        plan = lowest_plan(quick, problem, watch)
        if plan is None:
            raise UnsupportedProblemError(self.name, "has no quick strategy that handles it")
        return plan


def lowest_plan(
    strategies: Iterable[Strategy], problem: Problem, watch: Watch = silent
) -> Plan | None:
    """Return the lowest plan, the first of equals; None if none supports the problem.

    Stops at a plan that reaches the lower bound, or when `watch` says so.
    """
    lower_bound = problem.lower_bound
    best: Plan | None = None
    for strategy in strategies:
        if strategy.supports(problem) is not None:
            continue
        plan = strategy(problem)
        if best is None or plan.height < best.height:
            best = plan
        if watch(best, lower_bound) or best.height == lower_bound:
            break
    return best
