"""The lowest plan there is, with a proof where the time suffices."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.plan import ParameterValue, Plan
from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.strategy import StrategyKind, Watch, silent
from arenite.strategies.gap_search import fits_native
from arenite.strategies.lowest import lowest_plan
from arenite.strategies.place.greedy_by_area import GreedyByArea
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.strip_packing import StripPacking
from arenite.strategies.place.tflm import Tflm
from arenite.strategies.sinking import sunk

try:
    from arenite.strategies import _core
except ImportError:  # a checkout that is not installed
    _core = None  # type: ignore[assignment]  # mypy knows the module only by its stub


_NO_LIMIT = 1 << 62
_HEURISTICS = (GreedyBySize(), GreedyByArea(), StripPacking(), Tflm())


@dataclass(frozen=True, slots=True)
class Optimal:
    """Search all plans in which no record could be moved down alone.

    One of the lowest plans is such a plan, so nothing is lost. The search asks for a plan at
    the lower bound first, where most is pruned, then also between the bound and the best
    plan so far, with ever new orders of the records. It fills one section of time at a
    time: on its floor lies one of the records that wait there, or nothing, and then some
    other record must come under each that could have lain there. Between the attempts a local
    search over the order in which records are dropped lowers the best plan; records too many
    to be searched are left to it.

    The plan is proved optimal when its height meets the bound, or when a complete search
    below it found none. Permitted overlaps are made use of when all is done, by letting the
    records sink; where there are any, what the search proves of plans without them is no
    bound, and only the problem's own is stated.

    Attributes:
        time_limit_s: Wall-clock seconds. A search that ends earlier, by a proof or for want
            of nodes, gives the same plan for the same seed.
        seed: Decides the random orders among those that are tried.
        max_nodes: Possibilities that may be tried in all.

    Cost: exponential at worst; memory O(n + records live in each section), a few GB at most.
    Source: our own; that a complete search should ask for the bound first and keep to plans
        without room below a record is after Moffitt 2023, MiniMalloc (ASPLOS 2023).
    """

    name: ClassVar[str] = "optimal"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "exponential, stops when told"
    source: ClassVar[str] = "after MiniMalloc (Moffitt 2023)"
    quick: ClassVar[bool] = False

    time_limit_s: float = 10.0
    seed: int = 0
    max_nodes: int = _NO_LIMIT

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return what the native search cannot do."""
        if _core is None:
            return "needs the native core, which was not built"
        if not fits_native(problem):
            return "handles sizes that add up to less than 2^62 B"
        colliding = _colliding(problem.records)
        if colliding:
            a, b = colliding
            return f"cannot keep both {a.name!r} and {b.name!r} where they are fixed"
        return None

    def __call__(self, problem: Problem) -> Plan:
        """Return the best plan found."""
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the best plan when it is proved, the time is up or `watch` stops it.

        Raises:
            InfeasibleError: Proved: no plan fits the problem's capacity.
            SearchLimitError: None was found within the capacity; one may exist.
        """
        deadline = time.monotonic() + self.time_limit_s
        start = lowest_plan(_HEURISTICS, problem)
        assert start is not None
        plan = self._improve(problem, start, watch, deadline)
        if problem.capacity is not None and plan.height > problem.capacity:
            if plan.lower_bound > problem.capacity:
                raise InfeasibleError(problem.capacity, plan.lower_bound)
            raise SearchLimitError(
                f"no plan within {problem.capacity} B was found in the time, though one may "
                f"exist: the lowest takes {plan.height} B, at least {plan.lower_bound} B are "
                "needed; raise the time limit or the capacity",
                problem.capacity,
            )
        return plan

    def improve(self, problem: Problem, start: Plan, watch: Watch = silent) -> Plan:
        """Return a plan that is no higher than `start`, whatever the problem's capacity."""
        return self._improve(problem, start, watch, time.monotonic() + self.time_limit_s)

    def _improve(self, problem: Problem, start: Plan, watch: Watch, deadline: float) -> Plan:
        best = Plan.of(
            problem, start.offsets, self.name, self._parameters(), lower_bound=start.lower_bound
        )
        if best.optimal:
            return best
        may_overlap = any(record.overlaps for record in problem.records)

        def keep(offsets: list[int], height: int, lower_bound: int) -> bool:
            nonlocal best
            if height < best.height:
                best = replace(best, offsets=tuple(offsets), heights=(height,))
            if not may_overlap:
                best = best.with_bound(lower_bound)
            return watch(best, best.lower_bound) or time.monotonic() >= deadline

        records = problem.records
        offsets, lower_bound = _core.minimise(
            [record.start for record in records],
            [record.end for record in records],
            [record.size for record in records],
            [record.alignment for record in records],
            [-1 if record.offset is None else record.offset for record in records],
            start.offsets,
            best.lower_bound,
            -1 if problem.capacity is None else problem.capacity,
            self.seed,
            self.max_nodes,
            keep,
        )
        if may_overlap:
            return Plan.of(problem, sunk(problem, offsets), self.name, best.parameters)
        return Plan.of(
            problem, tuple(offsets), self.name, best.parameters, lower_bound=lower_bound
        )

    def _parameters(self) -> Mapping[str, ParameterValue]:
        if self.max_nodes == _NO_LIMIT:
            return {"seed": self.seed}
        return {"seed": self.seed, "max_nodes": self.max_nodes}


def _colliding(records: Sequence[UsageRecord]) -> tuple[UsageRecord, UsageRecord] | None:
    """Return two records that share bytes at some step where they are fixed, if any do."""
    live: list[tuple[int, UsageRecord]] = []
    fixed = ((record.offset, record) for record in records if record.offset is not None)
    for offset, record in sorted(fixed, key=lambda item: item[1].start):
        live = [item for item in live if item[1].end > record.start]
        for other_offset, other in live:
            if other_offset < offset + record.size and offset < other_offset + other.size:
                return other, record
        live.append((offset, record))
    return None
