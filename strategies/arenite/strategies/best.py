"""The lowest plan of several strategies."""

from dataclasses import dataclass, replace
from typing import ClassVar

from arenite.planner import Plan, Problem, Strategy, StrategyKind
from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.placement import Watch, run_on_hulls, silent
from arenite.strategies.base.lowest import lowest_plan
from arenite.strategies.base.records import count_conflicts
from arenite.strategies.place.optimal import Optimal
from arenite.strategies.place.stairs import Stairs
from arenite.strategies.place.table import PLACE
from arenite.strategies.registered import other_strategies
from arenite.strategies.share.table import SHARE

_MOST_RECORDS = 20_000
_MOST_NODES = 500_000
_MOST_WORK = 120_000_000  # a few seconds
_MOST_NODES_TO_FIT = 10_000_000
_MET_AT_ONCE = 16
_WORK_A_RECORD = 20_000
"""Least work of the search among records with outlines for each of them."""


def quick_strategies() -> list[Strategy]:
    """Return the quick strategies, ours and those that installed packages register."""
    others = (strategy for _, strategy in other_strategies())
    return [strategy for strategy in (*PLACE, *SHARE, *others) if strategy.quick]


@dataclass(frozen=True, slots=True)
class Best:
    """Run every quick strategy there is, keep the lowest plan, and search below it.

    A plan that reaches the lower bound ends it; on most networks a quick strategy makes
    one. Otherwise, once those that decide offsets have run, the exact search continues from the
    lowest, for a fixed number of nodes that takes a few seconds at most, or, without a limit of
    nodes, until it has a proof or its watch stops it. The strategies that share whole buffers,
    which are seldom lower, come last. While the lowest plan exceeds the capacity, the search
    continues until a plan fits or it is proved that none does. The plan names the strategy that
    made it; of equal plans, the first made wins.

    Records with outlines are placed by `stairs`. All others take them for whole rectangles, and
    run only if that can give a lower plan.

    Attributes:
        max_nodes: Most nodes of the exact search, fewer if records meet many others; None for no
            limit.
        max_nodes_to_fit: Nodes that may be visited to fit the capacity; None for no limit.
    """

    name: ClassVar[str] = "best"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "sum of the quick strategies, then a short search"
    source: ClassVar[str] = "our own; no one-pass order dominates the others"
    quick: ClassVar[bool] = False
    knows_outlines: ClassVar[bool] = True

    max_nodes: int | None = _MOST_NODES
    max_nodes_to_fit: int | None = _MOST_NODES_TO_FIT

    def why_unsupported(self, _problem: Problem) -> str | None:
        """Return None: any problem."""
        return None

    def why_not_searched(self, problem: Problem) -> str | None:
        """Return why it runs the quick strategies only; None if it searches below them."""
        if problem.has_outlines:
            return Stairs().why_unsupported(problem)
        return Optimal().why_unsupported(problem)

    def __call__(self, problem: Problem) -> Plan:
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the lowest plan so far when all have run or `watch` stops them.

        It may exceed the problem's capacity; its lower bound tells whether every plan does.
        """
        if problem.has_outlines:
            return self._search_outlines(problem, watch)
        quick = quick_strategies()
        by_offset = [each for each in quick if each.kind is StrategyKind.OFFSETS]
        plan = lowest_plan(by_offset, problem, watch)
        is_searched = self.why_not_searched(problem) is None
        if plan is not None and is_searched:
            plan = self._search_below(plan, problem, watch)
        if plan is None or not (plan.optimal or watch(plan, plan.lower_bound)):
            by_object = [each for each in quick if each.kind is not StrategyKind.OFFSETS]
            plan = lowest_plan(by_object, problem, watch, plan)
        if plan is None:
            raise UnsupportedProblemError(self.name, "has no quick strategy that handles it")
        if is_searched and problem.capacity is not None and plan.height > problem.capacity:
            to_fit = Optimal(max_nodes=self.max_nodes_to_fit)
            plan = _improved(to_fit, problem, plan, watch, until_it_fits=True)
        return plan

    def _search_below(self, plan: Plan, problem: Problem, watch: Watch) -> Plan:
        max_nodes = self.max_nodes
        if max_nodes is not None:
            if len(problem.records) > _MOST_RECORDS:
                return plan
            max_nodes = min(max_nodes, _MOST_WORK // _work_of_a_node(problem))
        return _improved(Optimal(max_nodes=max_nodes), problem, plan, watch, until_it_fits=False)

    def _search_outlines(self, problem: Problem, watch: Watch) -> Plan:
        stairs = Stairs()
        if stairs.why_unsupported(problem) is not None:
            return run_on_hulls(self, problem, watch)
        if stairs.max_work is not None:
            work = max(stairs.max_work, _WORK_A_RECORD * len(problem.records))
            stairs = replace(stairs, max_work=work)
        plan = stairs.search(problem, watch)
        if plan.height <= problem.hulls().lower_bound or watch(plan, plan.lower_bound):
            return plan

        def on_progress(best: Plan | None, lower_bound: int) -> bool:
            is_lower = best is not None and best.height < plan.height
            return watch(best if is_lower else plan, lower_bound)

        return min(plan, run_on_hulls(self, problem, on_progress), key=lambda each: each.height)


def _work_of_a_node(problem: Problem) -> int:
    """Return how much a node of the exact search does: from 1 up to the number of records.

    A node raises the records that meet the one that it places, and looks at the records beside
    each of those.
    """
    num_records = max(1, len(problem.records))
    met = sum(count_conflicts(problem.records)) // num_records
    return max(1, min(num_records, met * met // _MET_AT_ONCE))


def _improved(
    search: Optimal, problem: Problem, plan: Plan, watch: Watch, *, until_it_fits: bool
) -> Plan:
    """Return the plan that the search finds; the given plan if it finds nothing better."""
    if plan.optimal or watch(plan, plan.lower_bound):
        return plan
    found = search.improve(problem, plan, watch, until_it_fits=until_it_fits)
    if found.height < plan.height or found.optimal:
        return found
    return plan.with_bound(found.lower_bound)
