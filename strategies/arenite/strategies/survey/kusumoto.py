"""Keep tensors at the boundaries of lower sets of the forward pass, and recompute the others."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, cheapest
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.passes import Passes, Replay, replayed


@dataclass(frozen=True, slots=True)
class Kusumoto(SchedulePolicy):
    """Choose a sequence of prefixes of the forward pass by dynamic programming.

    The paper's sets of ancestors are narrowed to prefixes of the order. Its bound on memory is an
    estimate, so several bounds are tried, and the loads decide.

    Attributes:
        most_prefixes: Most prefixes to choose from: of as many stretches of the forward pass,
            those with the smallest boundaries.
        num_bounds: Number of bounds that are tried.
        ratio: Of one bound to the next.
    """

    name: ClassVar[str] = "kusumoto"
    source: ClassVar[str] = "Kusumoto et al. 2019, arXiv 1905.11722, section 4.3"
    decides: ClassVar[str] = "at which lower sets of the forward pass tensors are kept"

    most_prefixes: int = 32
    num_bounds: int = 16
    ratio: float = 0.78

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        return cheapest(self._drafts(work), limit, should_stop).schedule()

    def _drafts(self, work: Work) -> Iterator[Draft]:
        passes = Passes.of(work)
        prefixes = _Prefixes(work, passes, self.most_prefixes)
        bound = 2.0 * prefixes.size
        chosen: dict[tuple[int, ...], None] = {}
        for _ in range(self.num_bounds):
            ends = prefixes.choose(bound)
            if ends is not None:
                chosen[ends] = None
            bound *= self.ratio
        for ends in chosen or {(): None}:
            yield prefixes.draft(ends)


@dataclass(frozen=True, slots=True)
class _PrefixState:
    """A way to a prefix: time that runs again, bytes kept, and the prefixes before."""

    seconds: float
    kept: frozenset[int]
    size: int
    ends: tuple[int, ...]


class _Prefixes:
    def __init__(self, work: Work, passes: Passes, most: int) -> None:
        self._work = work
        self._passes = passes
        last_forward: dict[int, int] = {}
        for step in range(passes.turn):
            for storage in work.reads[step]:
                last_forward[storage] = step
        self._boundaries: dict[int, frozenset[int]] = {}
        self._segments: dict[tuple[int, int], tuple[int, float]] = {}
        self.size = 0  # of all that the forward pass makes
        self._made: list[tuple[int, int, int]] = []  # maker, last forward reader, storage
        for storage in range(len(work.sizes)):
            maker = work.makers[storage]
            is_large = work.sizes[storage] >= passes.small and work.may_leave[storage]
            if 0 <= maker < passes.turn and is_large:
                self.size += work.sizes[storage]
                self._made.append((maker, last_forward.get(storage, maker), storage))
        sizes = [self._size(self._boundary(end)) for end in range(1, passes.turn)]
        stride = max(1, -(-len(sizes) // most))
        stretches = [range(at, len(sizes))[:stride] for at in range(0, len(sizes), stride)]
        self._ends = [min(each, key=lambda at: (sizes[at], at)) + 1 for each in stretches]
        self._ends.append(passes.turn)

    def choose(self, bound: float) -> tuple[int, ...] | None:
        """Return the ends of prefixes with the least time that runs again within a bound."""
        states: dict[int, list[_PrefixState]] = {0: [_PrefixState(0.0, frozenset(), 0, ())]}
        for place, end in enumerate(self._ends):
            found: list[_PrefixState] = []
            for begin in (0, *self._ends[:place]):
                inside, seconds = self._segment(begin, end)
                boundary = self._boundary(end) if end < self._passes.turn else frozenset()
                for state in states.get(begin, ()):
                    # The segment is there twice: forward, and as gradients.
                    if state.size + 2 * inside + self._size(boundary - state.kept) > bound:
                        continue
                    kept = state.kept | boundary
                    found.append(
                        _PrefixState(
                            state.seconds + seconds, kept, self._size(kept), (*state.ends, end)
                        )
                    )
            states[end] = _undominated(found)
        last = states[self._passes.turn] if self._ends else []
        return min(last, key=lambda state: state.seconds).ends[:-1] if last else None

    def draft(self, ends: Sequence[int]) -> Draft:
        """Return the draft that keeps the boundaries of these prefixes."""
        keep = frozenset(storage for end in ends for storage in self._boundary(end))
        bounds = sorted(ends)
        segment_of = {step: bisect_left(bounds, step + 1) for step in range(self._passes.turn)}
        return replayed(self._work, self._passes, keep, segment_of, Replay.SPEED)

    def _boundary(self, end: int) -> frozenset[int]:
        """Return the storages that a prefix makes and later forward steps read."""
        found = self._boundaries.get(end)
        if found is None:
            found = frozenset(
                storage for maker, last, storage in self._made if maker < end <= last
            )
            self._boundaries[end] = found
        return found

    def _segment(self, begin: int, end: int) -> tuple[int, float]:
        """Return the bytes that a stretch of steps makes, and the time of recomputing them."""
        if (begin, end) not in self._segments:
            self._segments[begin, end] = self._segment_made(begin, end)
        return self._segments[begin, end]

    def _segment_made(self, begin: int, end: int) -> tuple[int, float]:
        work = self._work
        boundary = self._boundary(end)
        made = [storage for maker, _, storage in self._made if begin <= maker < end]
        again = {work.makers[storage] for storage in made if storage not in boundary}
        return self._size(frozenset(made)), sum(work.seconds[step] for step in again)

    def _size(self, storages: frozenset[int]) -> int:
        return sum(self._work.sizes[storage] for storage in storages)


def _undominated(states: list[_PrefixState]) -> list[_PrefixState]:
    """Return those that no other beats in time and bytes, a few at most."""
    found: list[_PrefixState] = []
    for state in sorted(states, key=lambda each: (each.seconds, each.size, each.ends)):
        if not found or state.size < found[-1].size:
            found.append(state)
    stride = -(-len(found) // 12)
    return found[::stride] if found else []
