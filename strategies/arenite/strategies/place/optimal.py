"""The lowest plan there is, with a proof where the time suffices."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.plan import ParameterValue, Plan
from arenite.planner.problem import Problem
from arenite.planner.strategy import StrategyKind, Watch, silent
from arenite.strategies.gap_search import fits_native
from arenite.strategies.lowest import lowest_plan
from arenite.strategies.place.greedy_by_area import GreedyByArea
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.strip_packing import StripPacking
from arenite.strategies.place.tflm import Tflm

try:
    from arenite.strategies import _core
except ImportError:  # a checkout that is not installed
    _core = None  # type: ignore[assignment]  # mypy knows the module only by its stub


_NO_LIMIT = 1 << 62
_HEURISTICS = (GreedyBySize(), GreedyByArea(), StripPacking(), Tflm())


@dataclass(frozen=True, slots=True)
class Optimal:
    """Search all placements in which every record rests on the floor or on another.

    Any plan can be pushed down to such a one, so nothing is lost. The search asks for a
    plan at the lower bound first, where most is pruned, then climbs between the bound and
    the best plan so far, with several orders of the records in turn. The plan is proved
    optimal when its height meets the bound, or when all below it was searched in vain.

    Attributes:
        time_limit_s: Wall-clock seconds. A search that ends earlier, by a proof or for want
            of nodes, gives the same plan for the same seed.
        seed: Decides the random orders among those that are tried.
        max_nodes: Placements that may be tried in all.

    Cost: exponential at worst; memory O(n + pairs of records that meet).
    Source: Moffitt 2023, MiniMalloc (ASPLOS 2023), for the canonical placements and their
        pruning; the order of capacities and the random orders are our own.
    """

    name: ClassVar[str] = "optimal"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "exponential, stops when told"
    source: ClassVar[str] = "after MiniMalloc (Moffitt 2023)"
    quick: ClassVar[bool] = False

    time_limit_s: float = 30.0
    seed: int = 0
    max_nodes: int = _NO_LIMIT

    def supports(self, problem: Problem) -> str | None:
        """Return what the native search cannot do."""
        if _core is None:
            return "needs the native core, which was not built"
        if not fits_native(problem):
            return "handles sizes that add up to less than 2^62 B"
        if any(record.offset is not None for record in problem.records):
            return "does not place records at fixed offsets"
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
        start = lowest_plan(_HEURISTICS, problem)
        assert start is not None
        plan = self.improve(problem, start, watch)
        if problem.capacity is not None and plan.height > problem.capacity:
            if plan.lower_bound > problem.capacity:
                raise InfeasibleError(problem.capacity, plan.lower_bound)
            raise SearchLimitError(
                f"no plan within {problem.capacity} B was found in the time; the lowest takes "
                f"{plan.height} B and at least {plan.lower_bound} B are needed",
                problem.capacity,
            )
        return plan

    def improve(self, problem: Problem, start: Plan, watch: Watch = silent) -> Plan:
        """Return a plan that is no higher than `start`, whatever the problem's capacity."""
        found = self._improved(problem, start, watch) if not start.optimal else start
        return Plan.of(
            problem,
            found.offsets,
            self.name,
            self._parameters(),
            lower_bound=found.lower_bound,
        )

    def _parameters(self) -> Mapping[str, ParameterValue]:
        if self.max_nodes == _NO_LIMIT:
            return {"seed": self.seed}
        return {"seed": self.seed, "max_nodes": self.max_nodes}

    def _improved(self, problem: Problem, start: Plan, watch: Watch) -> Plan:
        deadline = time.monotonic() + self.time_limit_s
        records = problem.records

        def should_stop(height: int, lower_bound: int) -> bool:
            best = Plan(start.offsets, height, self.name, lower_bound)
            return watch(best, lower_bound) or time.monotonic() >= deadline

        offsets, height, lower_bound = _core.minimise(
            [record.start for record in records],
            [record.end for record in records],
            [record.size for record in records],
            [record.alignment for record in records],
            start.offsets,
            start.height,
            problem.lower_bound,
            self.seed,
            self.max_nodes,
            should_stop,
        )
        return Plan(tuple(offsets), height, self.name, lower_bound)
