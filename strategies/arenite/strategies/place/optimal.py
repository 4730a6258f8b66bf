"""The lowest plan, with a proof if time permits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from arenite.planner import ParameterValue, Plan, Problem, StrategyKind
from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.placement import Watch, silent
from arenite.strategies.base import native
from arenite.strategies.base.lowest import lowest_plan
from arenite.strategies.base.records import colliding
from arenite.strategies.place.compaction import compacted
from arenite.strategies.place.one_pass import GreedyByArea, GreedyBySize, TflmGreedy
from arenite.strategies.place.strip_packing import StripPacking

_MOST_NODES = 1 << 62  # more than any machine tries
_HEURISTICS = (GreedyBySize(), GreedyByArea(), StripPacking(), TflmGreedy())


@dataclass(frozen=True, slots=True)
class Optimal:
    """Search all plans in which no single record could be moved down.

    One of the lowest plans is such a plan, so nothing is lost. The search first asks for a
    plan at the lower bound, where pruning is strongest, and later also between the bound and
    the best plan so far, each time with a different order of the records. It fills one section
    of time at a time. On the floor of a section lies one of the records that wait there, or
    nothing; if nothing, some other record must come to lie under each of them. Between these
    attempts a local search changes the order in which records are dropped into gaps to lower
    the best plan; with too many records for the exact search it is the only method.

    It ends with a proof, when the nodes are used up, or when its watch stops it. Unless it is
    stopped, the same seed gives the same plan. A plan is proved optimal when its height meets
    the bound, or when a complete search below it found none.

    Permitted overlaps are used at the end, by moving the records down as far as the
    overlaps allow. Records with outlines are searched as whole rectangles. Where there are any of
    either, what the search proves of plans without them is no bound, and only the problem's own
    is stated.

    Attributes:
        seed: Decides the random orders among those that are tried.
        max_nodes: Limit of nodes to search, by default enough for some seconds; None for no
            limit.
    """

    name: ClassVar[str] = "optimal"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "exponential; memory O(n + records live in each section)"
    source: ClassVar[str] = "our own, after MiniMalloc (Moffitt 2023)"
    quick: ClassVar[bool] = False

    seed: int = 0
    max_nodes: int | None = 10_000_000

    def why_unsupported(self, problem: Problem) -> str | None:
        reason = native.why_unsupported(problem)
        if reason is not None:
            return reason
        collision = colliding(problem.hulls().records)
        if collision:
            a, b = collision
            return f"cannot keep both {a.name!r} and {b.name!r} where they are fixed"
        return None

    def __call__(self, problem: Problem) -> Plan:
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the best plan when it is proved, the nodes are used up or `watch` stops it.

        Raises:
            InfeasibleError: Proved: no plan fits the problem's capacity.
            SearchLimitError: None was found within the capacity; one may exist.
        """
        start = lowest_plan(_HEURISTICS, problem)
        assert start is not None
        plan = self.improve(problem, start, watch)
        if problem.capacity is not None and plan.height > problem.capacity:
            if plan.lower_bound > problem.capacity:
                raise InfeasibleError(problem.capacity, plan.lower_bound)
            raise SearchLimitError(
                f"no plan within {problem.capacity:,} B was found before the search ended, "
                f"though one may exist: the lowest takes {plan.height:,} B, at least "
                f"{plan.lower_bound:,} B are needed; raise the time limit or the capacity",
                problem.capacity,
            )
        return plan

    def improve(
        self, problem: Problem, start: Plan, watch: Watch = silent, *, until_it_fits: bool = False
    ) -> Plan:
        """Return a plan that is no higher than `start`; the capacity is ignored.

        Args:
            until_it_fits: Whether a plan within the problem's capacity is low enough.
        """
        best = Plan.of(
            problem, start.offsets, self.name, self._parameters(), lower_bound=start.lower_bound
        )
        if best.optimal:
            return best
        may_overlap = any(record.overlaps for record in problem.records)

        def on_progress(offsets: list[int], height: int, lower_bound: int) -> bool:
            nonlocal best
            if height < best.height:
                best = replace(best, offsets=tuple(offsets), heights=(height,))
            if not (may_overlap or problem.has_outlines):
                best = best.with_bound(lower_bound)
            return watch(best, best.lower_bound)

        offsets, lower_bound = native.core.minimise(
            native.records_of(problem),
            start.offsets,
            best.lower_bound,
            -1 if problem.capacity is None else problem.capacity,
            until_it_fits,
            self.seed,
            _MOST_NODES if self.max_nodes is None else self.max_nodes,
            on_progress,
        )
        if may_overlap:
            return Plan.of(problem, compacted(problem, offsets), self.name, best.parameters)
        if problem.has_outlines:
            return Plan.of(problem, tuple(offsets), self.name, best.parameters)
        return Plan.of(
            problem, tuple(offsets), self.name, best.parameters, lower_bound=lower_bound
        )

    def _parameters(self) -> Mapping[str, ParameterValue]:
        if self.max_nodes is None:
            return {"seed": self.seed}
        return {"seed": self.seed, "max_nodes": self.max_nodes}
