"""Exact placement by the constraint solver CP-SAT of OR-tools."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, TypeAlias

from arenite.planner import ParameterValue, Plan, Problem, Strategy, StrategyKind, UsageRecord
from arenite.planner.errors import InfeasibleError, MissingDependencyError, SearchLimitError
from arenite.planner.placement import Watch, silent
from arenite.strategies.base.lowest import lowest_plan
from arenite.strategies.place.one_pass import (
    GreedyByArea,
    GreedyByBreadth,
    GreedyBySize,
    TflmGreedy,
)
from arenite.strategies.place.strip_packing import StripPacking

Section: TypeAlias = Sequence[int]
"""Indices of the records in one stretch of time."""

_SEEDS: tuple[Strategy, ...] = (
    GreedyBySize(),
    TflmGreedy(),
    GreedyByBreadth(),
    GreedyByArea(),
    StripPacking(),
)

_FIRST_ATTEMPT = 0.4
"""Work of the first attempts on a section: a few seconds. Each round doubles it."""


@dataclass(frozen=True, slots=True)
class CpSat:
    """Search from the lowest greedy plan until one is proved lowest.

    Time is divided where no record is live; each section is a model of rectangles that are fixed
    in time and free in address. A section that cannot change the height is not searched;
    of the others the tallest comes first. Attempts to reach the bound alternate with
    minimisation of the height, with twice the work each time: with the ceiling fixed the
    solver prunes far more.

    It ends with a proof, when the work is done, or when its watch stops it. Work is counted in
    the solver's deterministic seconds, not timed, so unless it is stopped the same problem
    gives the same plan.

    Attributes:
        seed: Seed of the solver.
        workers: Threads of the solver; the plan is reproducible with 1.
        max_work: Limit in the solver's deterministic seconds, by default about ten seconds of
            one processor; None for no limit.
    """

    seed: int = 0
    workers: int = 1
    max_work: float | None = 1.5

    name: ClassVar[str] = "cp-sat"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "exponential; memory O(n)"
    source: ClassVar[str] = "OR-tools, CP-SAT with NoOverlap2D"
    quick: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.workers < 1 or (self.max_work is not None and self.max_work <= 0):
            raise ValueError("max_work must be above 0 and workers at least 1")

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return a reason if records may overlap: the model forbids it, so its proofs fail."""
        if any(record.overlaps for record in problem.records):
            return "does not know permitted overlaps"
        return None

    def __call__(self, problem: Problem) -> Plan:
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the lowest plan found when the search ends or `watch` stops it.

        Raises:
            MissingDependencyError: `ortools` is not installed.
            InfeasibleError: It is proved that nothing fits the capacity.
            SearchLimitError: Nothing was found that fits the capacity.
        """
        try:
            from arenite.strategies.place.cp_sat_model import Limits, solve
        except ImportError as error:
            raise MissingDependencyError("ortools", "solvers", "strategy 'cp-sat'") from error

        if problem.capacity is not None and problem.lower_bound > problem.capacity:
            raise InfeasibleError(problem.capacity, problem.lower_bound)
        best = _Incumbent(problem, self)
        work_left = math.inf if self.max_work is None else self.max_work
        sections = _sections(problem.records)
        for attempt in count():
            at_bound = attempt % 2 == 0
            work = _FIRST_ATTEMPT * 2 ** (attempt // 2)
            section = max(sections, key=best.height, default=())
            if not section or best.height(section) <= best.lower_bound:
                break
            if work_left <= 0 or watch(best.plan(), best.lower_bound):
                break

            def stop(
                offsets: Sequence[int] | None, lower_bound: int, section: Section = section
            ) -> bool:
                return watch(best.plan(section, offsets), lower_bound)

            result = solve(
                [problem.records[index] for index in section],
                [best.offsets[index] for index in section],
                best.lower_bound,
                best.lower_bound if at_bound else best.ceiling(section),
                Limits(min(work, work_left), self.seed, self.workers),
                stop,
            )
            best.learn(section, result.offsets, result.lower_bound)
            work_left -= result.deterministic_s
            if result.stopped:
                break
        plan = best.plan()
        if plan is None:
            raise SearchLimitError(
                f"no plan of {problem.capacity:,} B was found before the search ended; raise the "
                "time limit or the capacity",
                problem.capacity,
            )
        watch(plan, plan.lower_bound)
        return plan

    def parameters(self) -> Mapping[str, ParameterValue]:
        stated: dict[str, ParameterValue] = {"seed": self.seed, "workers": self.workers}
        return stated if self.max_work is None else stated | {"max_work": self.max_work}


class _Incumbent:
    """The offsets and the bound so far."""

    def __init__(self, problem: Problem, strategy: CpSat) -> None:
        seed = lowest_plan(_SEEDS, problem)
        self.offsets = [] if seed is None else list(seed.offsets)
        self.lower_bound = problem.lower_bound
        self._problem = problem
        self._strategy = strategy

    def height(self, section: Section) -> int:
        """Return the first byte above the section's records."""
        records = self._problem.records
        return max(self.offsets[index] + records[index].size for index in section)

    def ceiling(self, section: Section) -> int:
        """Return the height that a section must not exceed to be better, or to fit."""
        capacity = self._problem.capacity
        height = self.height(section)
        return height if capacity is None else min(height, capacity)

    def learn(self, section: Section, offsets: Sequence[int] | None, lower_bound: int) -> None:
        """Take over the result of a search of a section.

        Raises:
            InfeasibleError: The section does not fit the capacity.
        """
        capacity = self._problem.capacity
        if offsets is not None:
            for index, offset in zip(section, offsets, strict=True):
                self.offsets[index] = offset
        elif capacity is not None and capacity < lower_bound:
            raise InfeasibleError(capacity, lower_bound)
        self.lower_bound = max(self.lower_bound, min(lower_bound, self.height(section)))

    def plan(
        self, section: Section = (), section_offsets: Sequence[int] | None = None
    ) -> Plan | None:
        """Return the plan with these offsets in a section; None above the capacity."""
        offsets = list(self.offsets)
        for index, offset in zip(section, section_offsets or (), strict=False):
            offsets[index] = offset
        plan = Plan.of(
            self._problem,
            tuple(offsets),
            self._strategy.name,
            self._strategy.parameters(),
            lower_bound=self.lower_bound,
        )
        capacity = self._problem.capacity
        return plan if capacity is None or plan.height <= capacity else None


def _sections(records: Sequence[UsageRecord]) -> Sequence[Section]:
    """Return the indices of records by stretches of time that no lifetime connects."""
    sections: list[list[int]] = []
    end = 0
    for index in sorted(range(len(records)), key=lambda index: records[index].start):
        if not sections or records[index].start >= end:
            sections.append([])
        sections[-1].append(index)
        end = max(end, records[index].end)
    return sections
