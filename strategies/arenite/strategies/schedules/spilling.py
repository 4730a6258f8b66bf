"""Spill tensors to another memory while nothing reads them: which, and when.

Two passes. The first chooses the tensors, as if transfers took no time. The second times the
transfers over a link with a speed, and so decides from when to when each tensor is spilled.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from operator import itemgetter

import numpy as np

from arenite.planner import Link, ShouldStop
from arenite.planner.errors import UnmetBudgetError
from arenite.planner.rewrites import Schedule, SpillSpan
from arenite.strategies.schedules.draft import Draft, Instance


class Fetching(Enum):
    """When copies back begin; always in the order in which they are needed."""

    WITH_ROOM = "as soon as there is room"
    LATEST = "as late as the link allows"
    AT_USE = "when they are needed"


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """Two successive uses of an instance, between which it can be spilled.

    Attributes:
        left: Run that touches it last before.
        back: Run that reads it next.
    """

    instance: Instance
    left: int
    back: int


@dataclass(frozen=True, slots=True)
class TimedSpills:
    """The spills of a draft, timed by the second pass.

    Attributes:
        spills: The spills, by the slot that reads their tensors next.
    """

    spills: tuple[SpillSpan, ...]
    seconds: float


Choice = Callable[[int, list[tuple[Instance, int]]], tuple[Instance, int]]
"""Chooses at a slot which instance is spilled, of instances and their next readers."""


def farthest_next(draft: Draft) -> Choice:
    """Return the choice of the instance that is read last, the larger of equals: Belady's rule."""

    def choose(_slot: int, carried: list[tuple[Instance, int]]) -> tuple[Instance, int]:
        return max(
            carried,
            key=lambda each: (
                draft.slot(each[1]),
                draft.work.sizes[each[0].storage],
                -each[0].storage,
            ),
        )

    return choose


def spill_until(
    draft: Draft, limit: int, choice: Choice, should_stop: ShouldStop
) -> tuple[Gap, ...]:
    """Spill instances until every slot is within the limit, or nothing is left to spill.

    Cost: O(gaps x instances that are live at once).
    """
    gaps: list[Gap] = []
    present = _Present(draft)
    for slot in range(len(draft.order)):
        while draft.loads[slot] > limit and not should_stop():
            carried = draft.carried(slot, present.at(slot))
            if not carried:
                break
            instance, back = choice(slot, carried)
            left = draft.before(instance, back)
            draft.spill(instance, left, back)
            gaps.append(Gap(instance, left, back))
    return tuple(gaps)


class _Present:
    """The removable instances that are live at one slot after the other, the runs staying."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        removable = [each for each in enumerate(draft.removable()) if each[1].readers]
        self._waiting = deque(sorted(removable, key=lambda each: draft.slot(each[1].maker)))
        self._live: list[tuple[int, Instance]] = []

    def at(self, slot: int) -> list[Instance]:
        """Return those of a slot, by storage; slots are asked for in ascending order."""
        draft = self._draft
        while self._waiting and draft.slot(self._waiting[0][1].maker) < slot:
            insort(self._live, self._waiting.popleft(), key=itemgetter(0))
        self._live = [each for each in self._live if draft.slot(each[1].readers[-1]) > slot]
        return [instance for _, instance in self._live]


def all_gaps(draft: Draft, limit: int) -> tuple[Gap, ...]:
    """Return the gaps over some slot that is beyond the limit, in the order of storages.

    Cost: O(instances + slots).
    """
    beyond = np.concatenate([[0], np.cumsum(draft.loads > limit)])
    found: list[Gap] = []
    for storage, instances in enumerate(draft.instances):
        if not draft.work.may_leave[storage] or not draft.work.sizes[storage]:
            continue
        for instance in instances:
            for left, back in pairwise((instance.maker, *instance.readers)):
                first, last = draft.slot(left) + 1, draft.slot(back)
                if first < last and beyond[last] > beyond[first]:
                    found.append(Gap(instance, left, back))
    return tuple(found)


def slack_s(draft: Draft, gap: Gap) -> float:
    """Return the time of a gap that its transfers leave.

    Source: Peng et al. 2020, "Capuchin", section 4.3 (free time).
    """
    link = draft.work.costs.link
    size = draft.work.sizes[gap.instance.storage]
    steps = draft.order[draft.slot(gap.left) + 1 : draft.slot(gap.back)]
    gap_s = sum(draft.work.seconds[draft.step_of[run]] for run in steps)
    return gap_s - link.out_s(size) - link.back_s(size)


def hidden_gaps(draft: Draft, limit: int, gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """Return the gaps, in their order, whose transfers the computation hides.

    A gap counts if its instance is gone at the first slot beyond the limit and comes back after
    the last. Each is taken if those taken before it can still be served: copies out one after
    another from the last touch, copies back one after another up to the next reader.

    Cost: O(gaps^2 log gaps).
    """
    work, link = draft.work, draft.work.costs.link
    ends = np.cumsum([work.seconds[draft.step_of[run]] for run in draft.order])
    times = np.concatenate([[0.0], ends])
    beyond = np.nonzero(draft.loads > limit)[0]
    taken: list[Gap] = []
    windows: list[_Window] = []
    for gap in gaps:
        first, last = draft.slot(gap.left) + 1, draft.slot(gap.back)
        inside = beyond[np.searchsorted(beyond, first) : np.searchsorted(beyond, last)]
        window = _Window(
            float(times[first]),
            float(times[inside[0]]),
            float(times[inside[-1] + 1]),
            float(times[last]),
            work.sizes[gap.instance.storage],
        )
        if _is_served([*windows, window], link):
            windows.append(window)
            taken.append(gap)
    return tuple(taken)


@dataclass(frozen=True, slots=True)
class _Window:
    """The times between which an instance is copied out, and those between which it is back."""

    leaves: float
    gone: float
    returns: float
    back: float
    size: int


def _is_served(windows: Sequence[_Window], link: Link) -> bool:
    done = 0.0
    for window in sorted(windows, key=lambda each: each.leaves):
        done = max(done, window.leaves) + link.out_s(window.size)
        if done > window.gone:
            return False
    start = float("inf")
    for window in sorted(windows, key=lambda each: -each.back):
        start = min(start, window.back) - link.back_s(window.size)
        if start < window.returns:
            return False
    return True


def spilled_gaps(draft: Draft) -> tuple[Gap, ...]:
    """Return the gaps in which instances are spilled, by slot."""
    found = [
        Gap(instance, left, back)
        for instances in draft.instances
        for instance in instances
        for left, back in instance.spilled
    ]
    return tuple(sorted(found, key=lambda gap: (draft.slot(gap.back), gap.instance.storage)))


def time_spills(draft: Draft, limit: int, fetching: Fetching = Fetching.WITH_ROOM) -> TimedSpills:
    """Time the spills of a draft over the link, so that no slot goes beyond the limit.

    A copy out begins right after the last touch. It is waited for only where a slot has no room
    otherwise. A tensor that is read before its copy is done is not spilled.

    Args:
        draft: The runs; its loads leave out spilled instances, and are within the limit.
        limit: Most bytes at a slot.
        fetching: When copies back begin.

    Cost: O(slots + gaps x slots).
    """
    return _Timing(draft, limit, fetching).run()


def spilled_schedule(
    policy: str,
    draft: Draft,
    limit: int | None,
    choice: Choice,
    fetching: Fetching,
    should_stop: ShouldStop,
) -> Schedule:
    """Return the schedule of a draft whose instances are spilled until the limit is met.

    Args:
        limit: Most bytes at a slot; None for as few as can be.

    Raises:
        UnmetBudgetError: It was stopped above the limit; nothing is timed then.
    """
    spill_until(draft, limit or 0, choice, should_stop)
    if limit is not None and draft.peak > limit and should_stop():
        raise UnmetBudgetError(policy, limit, draft.peak)
    return draft.schedule(time_spills(draft, max(limit or 0, draft.peak), fetching).spills)


class _Timing:
    def __init__(self, draft: Draft, limit: int, fetching: Fetching) -> None:
        work = draft.work
        self._draft = draft
        self._link = work.costs.link
        self._fetching = fetching
        self._room = np.maximum(limit - draft.loads, 0)
        self._seconds = [work.seconds[draft.step_of[run]] for run in draft.order]
        self._now = 0.0
        self._free = {"out": 0.0, "back": 0.0}
        gaps = spilled_gaps(draft)
        self._queue = deque(gaps)  # gaps whose instances are still to be fetched
        self._leaving: dict[int, list[Gap]] = {}
        for gap in gaps:
            self._leaving.setdefault(draft.slot(gap.left) + 1, []).append(gap)
        self._pending: deque[tuple[Gap, int, float]] = deque()
        self._gone: dict[Gap, tuple[int | None, int]] = {}
        self._arrivals: dict[Gap, tuple[int, float]] = {}
        self._has_copy: set[int] = set()
        self._ideal = np.concatenate([[0.0], np.cumsum(self._seconds)])
        self._latest = self._latest_starts(gaps) if fetching is Fetching.LATEST else {}

    def run(self) -> TimedSpills:
        spills: list[SpillSpan] = []
        for slot, seconds in enumerate(self._seconds):
            for gap in self._leaving.get(slot, ()):
                self._leave(gap, slot)
            self._wait_for_room(slot)
            while self._queue and self._draft.slot(self._queue[0].back) == slot:
                gap = self._queue.popleft()
                if gap not in self._gone:  # it never left
                    self._pending = deque(each for each in self._pending if each[0] is not gap)
                    self._has_copy.discard(gap.instance.storage)
                    continue
                self._fetch(gap, slot)
            self._fetch_early(slot)
            spills += self._arrive(slot)
            self._now += seconds
        return TimedSpills(tuple(spills), self._now)

    def _size(self, gap: Gap) -> int:
        return self._draft.work.sizes[gap.instance.storage]

    def _begin(self, way: str, seconds: float, earliest: float) -> float:
        """Occupy the link and return when it is done."""
        done = max(self._now, self._free[way], earliest) + seconds
        for each in (way,) if self._link.duplex else ("out", "back"):
            self._free[each] = done
        return done

    def _leave(self, gap: Gap, slot: int) -> None:
        storage = gap.instance.storage
        if storage in self._has_copy:
            self._gone[gap] = (None, slot)
            return
        self._has_copy.add(storage)
        done = self._begin("out", self._link.out_s(self._size(gap)), 0.0)
        self._pending.append((gap, slot, done))

    def _wait_for_room(self, slot: int) -> None:
        waiting = sum(self._size(gap) for gap, _, _ in self._pending)
        while self._pending:
            gap, leaves, done = self._pending[0]
            if done > self._now and waiting <= self._room[slot]:
                break
            self._now = max(self._now, done)
            self._pending.popleft()
            waiting -= self._size(gap)
            self._gone[gap] = (leaves, slot)

    def _fetch(self, gap: Gap, slot: int) -> None:
        back = self._draft.slot(gap.back)
        self._room[slot:back] -= self._size(gap)
        done = self._begin("back", self._link.back_s(self._size(gap)), 0.0)
        self._arrivals[gap] = (slot, done)

    def _fetch_early(self, slot: int) -> None:
        while self._queue and self._fetching is not Fetching.AT_USE:
            gap = self._queue[0]
            if gap not in self._gone:
                return
            if self._fetching is Fetching.LATEST and self._ideal[slot + 1] <= self._latest[gap]:
                return
            waiting = sum(self._size(each) for each, _, _ in self._pending)
            room = self._room[slot : self._draft.slot(gap.back)]
            if room[0] - waiting < self._size(gap) or int(room.min()) < self._size(gap):
                return
            self._fetch(self._queue.popleft(), slot)

    def _arrive(self, slot: int) -> list[SpillSpan]:
        """Wait for the fetches of the tensors that this slot reads."""
        spills: list[SpillSpan] = []
        for gap in [each for each in self._arrivals if self._draft.slot(each.back) == slot]:
            returns, done = self._arrivals.pop(gap)
            self._now = max(self._now, done)
            leaves, gone = self._gone[gap]
            name = self._draft.work.names[gap.instance.storage]
            spills.append(SpillSpan(name, leaves, gone, returns, slot))
        return spills

    def _latest_starts(self, gaps: Sequence[Gap]) -> dict[Gap, float]:
        """Return when each copy back has to begin on a link that does one after another."""
        starts: dict[Gap, float] = {}
        following = float("inf")
        for gap in reversed(gaps):
            use = float(self._ideal[self._draft.slot(gap.back)])
            following = min(use, following) - self._link.back_s(self._size(gap))
            starts[gap] = following
        return starts
