"""TVM's strategies: two greedy orders that never use gaps, and a hill climb."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from arenite.planner import ParameterValue, Plan, Problem, StrategyKind
from arenite.planner.placement import Watch, silent
from arenite.strategies.base import native
from arenite.strategies.base.gap_search import Fit, place_in_order
from arenite.strategies.base.records import count_conflicts
from arenite.strategies.place.one_pass import OnePass


class _Greedy(OnePass):
    """Place records above all they meet, gaps never used, by two keys and then by name.

    Names compare as strings: "9" comes before "10".
    """

    fit: ClassVar[Fit] = Fit.TOP
    size_first: ClassVar[bool]

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices by size and conflicts, or by conflicts and size, descending."""
        records = problem.records
        conflicts = count_conflicts(records)

        def key(index: int) -> tuple[int, int, str]:
            size, name = records[index].size, records[index].name
            if self.size_first:
                return size, conflicts[index], name
            return conflicts[index], size, name

        return sorted(range(len(records)), key=key, reverse=True)


@dataclass(frozen=True, slots=True)
class TvmBySize(_Greedy):
    """Place records by size, conflicts and name, all descending; gaps are never used."""

    name: ClassVar[str] = "tvm-by-size"
    source: ClassVar[str] = "TVM 0.14, USMP greedy_by_size"
    size_first: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TvmByConflicts(_Greedy):
    """Place records by conflicts, size and name, all descending; gaps are never used."""

    name: ClassVar[str] = "tvm-by-conflicts"
    source: ClassVar[str] = "TVM 0.14, USMP greedy_by_conflicts"
    size_first: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TvmHillClimb:
    """Climb from the order of `tvm-by-size` by swapping two records at a time.

    A record that touches the top is drawn; one it meets that comes earlier in the order
    changes place with another such one or, three times in four, with one that a record it
    meets itself meets earlier. A lower plan is kept, a higher one with a chance that falls
    with the attempts, any other swap is undone.

    Three things differ from upstream: the plan returned is the lowest seen, not the last
    accepted, so it is never above the first attempt; the random numbers are our own; and
    the second record is drawn by way of one random neighbour, where upstream lists the
    neighbours of all, which takes O(k^2).

    Attributes:
        seed: Seed of the random numbers.
        attempts: Most first-fit passes.
    """

    seed: int = 0
    attempts: int = 500

    name: ClassVar[str] = "tvm-hill-climb"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "attempts x O(n (log n + k log k))"
    source: ClassVar[str] = "TVM 0.14, USMP hill_climb"
    quick: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; at least 1 is needed")

    def why_unsupported(self, problem: Problem) -> str | None:
        return native.why_unsizable(problem)

    def __call__(self, problem: Problem) -> Plan:
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        climb = _Climb(problem, random.Random(self.seed))
        lower_bound = problem.lower_bound
        best = self._plan(problem, climb.offsets)
        for attempt in range(1, self.attempts):
            if watch(best, lower_bound) or best.height == lower_bound:
                break
            climb.step(attempt)
            if climb.height < best.height:
                best = self._plan(problem, climb.offsets)
        return best

    def parameters(self) -> Mapping[str, ParameterValue]:
        return {"seed": self.seed, "attempts": self.attempts}

    def _plan(self, problem: Problem, offsets: npt.NDArray[np.int64]) -> Plan:
        return Plan.of(problem, tuple(offsets.tolist()), self.name, self.parameters())


class _Climb:
    """The order that is accepted now, and the offsets it gives."""

    def __init__(self, problem: Problem, rng: random.Random) -> None:
        self._problem = problem
        self._rng = rng
        self._starts = np.array([record.start for record in problem.records], np.int64)
        self._ends = np.array([record.end for record in problem.records], np.int64)
        self._sizes = np.array([record.size for record in problem.records], np.int64)
        self._order = list(TvmBySize().order(problem))
        self._turns = np.empty(len(self._order), np.int64)
        self._turns[self._order] = np.arange(len(self._order))
        self.offsets = self._place()
        self.height = self._height(self.offsets)

    def step(self, attempt: int) -> None:
        """Swap two records and keep the swap, or undo it."""
        pair = self._draw_pair()
        if pair is None:
            return
        self._swap(*pair)
        offsets = self._place()
        height = self._height(offsets)
        chance = 50 * (height - self.height) // height // attempt  # per cent, if higher
        if height < self.height or self._rng.randrange(100) < chance:
            self.offsets, self.height = offsets, height
        else:
            self._swap(*pair)

    def _draw_pair(self) -> tuple[int, int] | None:
        touching = np.flatnonzero(self.offsets + self._sizes == self.height)
        top = self._draw(touching)
        met = self._met(top)
        first_level = met[self._turns[met] < self._turns[top]]
        if not first_level.size:
            return None
        one = self._draw(first_level)
        others = first_level
        if self._rng.randrange(4) > 0:
            between = self._draw(met)
            further = self._met(between)
            second_level = further[self._turns[further] < self._turns[between]]
            others = second_level if second_level.size else first_level
        others = others[others != one]
        return (one, self._draw(others)) if others.size else None

    def _draw(self, indices: npt.NDArray[np.int64]) -> int:
        return int(indices[self._rng.randrange(indices.size)])

    def _met(self, index: int) -> npt.NDArray[np.int64]:
        meets = (self._starts < self._ends[index]) & (self._starts[index] < self._ends)
        meets[index] = False
        return np.flatnonzero(meets)

    def _swap(self, one: int, other: int) -> None:
        a, b = int(self._turns[one]), int(self._turns[other])
        self._order[a], self._order[b] = other, one
        self._turns[one], self._turns[other] = b, a

    def _place(self) -> npt.NDArray[np.int64]:
        return np.array(place_in_order(self._problem, self._order, Fit.FIRST), np.int64)

    def _height(self, offsets: npt.NDArray[np.int64]) -> int:
        return int((offsets + self._sizes).max(initial=0))
