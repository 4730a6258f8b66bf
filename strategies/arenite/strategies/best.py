"""The lowest plan of several strategies."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.strategy import Strategy, StrategyKind, Watch, silent
from arenite.strategies.lowest import lowest_plan
from arenite.strategies.place.optimal import Optimal
from arenite.strategies.place.table import PLACE
from arenite.strategies.registered import registered
from arenite.strategies.share.table import SHARE

_MOST_RECORDS = 20_000
_MOST_NODES = 250_000
_MOST_WORK = 60_000_000  # nodes times records: a few seconds


def quick_strategies() -> list[Strategy]:
    """Return the quick strategies, ours and those that installed packages register."""
    others = (strategy for _, strategy in registered())
    return [strategy for strategy in (*PLACE, *SHARE, *others) if strategy.quick]


@dataclass(frozen=True, slots=True)
class Best:
    """Run every quick strategy there is, keep the lowest plan, and search below it.

    A plan that reaches the lower bound ends it; on most networks a quick strategy makes
    one. Otherwise the exact search continues from the lowest, for a fixed number of nodes that
    takes a few seconds at most. The plan names the strategy that made it; of equal plans, the
    earlier in the table wins.
    """

    name: ClassVar[str] = "best"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "sum of the quick strategies, then a short search"
    source: ClassVar[str] = "our own; no one-pass order dominates the others"
    quick: ClassVar[bool] = False

    def why_unsupported(self, _problem: Problem) -> str | None:
        """Return None: greedy strategies support any problem."""
        return None

    def __call__(self, problem: Problem) -> Plan:
        """Return the lowest plan."""
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the lowest plan so far when all have run or `watch` stops them."""
        plan = lowest_plan(quick_strategies(), problem, watch)
        if plan is None:
            raise UnsupportedProblemError(self.name, "has no quick strategy that handles it")
        num_records = len(problem.records)
        if plan.optimal or num_records > _MOST_RECORDS or watch(plan, plan.lower_bound):
            return plan
        search = Optimal(max_nodes=min(_MOST_NODES, _MOST_WORK // num_records))
        if search.why_unsupported(problem) is not None:
            return plan
        found = search.improve(problem, plan, watch)
        return found if found.height < plan.height or found.optimal else plan
