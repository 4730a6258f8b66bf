"""The least time within a budget as an integer program; its relaxation, rounded, where larger."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from arenite.planner import ShouldStop
from arenite.planner.errors import needing
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, cheapest
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work

if TYPE_CHECKING:
    from arenite.strategies.survey.checkmate_model import Model


@dataclass(frozen=True, slots=True)
class Checkmate(SchedulePolicy):
    """Choose for each stage the steps that run and the tensors that are kept, all at once.

    Stage t computes step t for the first time, and before it whatever runs again for it. What the
    solver gives is a lower bound of memory only in part: the loads decide whether it fits.

    The variables grow with the square of the stages. So a large program is solved by segments of
    successive steps that make about as many bytes; within a segment all is computed at once.

    Attributes:
        most_exact: Most steps of a program that is solved exactly.
        most_stages: Most stages of a relaxation.
        most_nodes: Limit of the exact search.
        small: Part of the limit up to which a storage stays to its last use.
        shares: Percent of the limit that relaxations are given, in turn until a rounded one fits.
    """

    name: ClassVar[str] = "checkmate"
    source: ClassVar[str] = "Jain et al. 2020, Checkmate, arXiv 1910.02653, sections 4 and 5"
    decides: ClassVar[str] = "which tensors each stage keeps, by a relaxation that is rounded"
    quick: ClassVar[bool] = False

    most_exact: int = 18
    most_stages: int = 48
    most_nodes: int = 2000
    small: float = 1e-3
    shares: tuple[int, ...] = (150, 125, 100, 95, 90, 80, 70, 60, 50, 40, 30)

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        with needing("ortools", "solvers", "the policy checkmate"):
            from arenite.strategies.survey.checkmate_model import Model
        return cheapest(self._drafts(work, limit, Model), limit, should_stop).schedule()

    def _drafts(self, work: Work, wanted: int | None, model_of: type["Model"]) -> Iterator[Draft]:
        """Yield drafts that may meet a limit; for None, of ever lower shares of the peak."""
        given = Draft(work)
        yield given
        limit = given.peak if wanted is None else wanted
        segment_of = segments(work, self.most_stages)
        stages = by_segments(work, segment_of)
        chosen = frozenset(
            storage
            for storage, size in enumerate(work.sizes)
            if work.may_leave[storage]
            and not work.is_kept[storage]
            and work.makers[storage] >= 0
            and size > self.small * limit
        )
        for percent in self.shares:
            kept = model_of(stages, limit * percent // 100, chosen).relaxed()
            if kept is None:
                break
            drafts = [
                Draft(work, closure(work, kept, threshold / 100, chosen, segment_of))
                for threshold in range(10, 100, 10)
            ]
            yield from drafts
            if wanted is not None and min(draft.peak for draft in drafts) <= limit:
                break
        if work.num_steps <= self.most_exact:
            kept = model_of(work, limit, chosen).exact(self.most_nodes)
            if kept is not None:
                yield Draft(work, closure(work, kept, 0.5, chosen, segment_of))


def segments(work: Work, most: int) -> list[int]:
    """Return the segment of each step: its own, or one of `most` that make about as many bytes."""
    if work.num_steps <= most:
        return list(range(work.num_steps))
    made = [1 + sum(work.sizes[storage] for storage in written) for written in work.writes]
    per_step = 1 + sum(made) // (4 * work.num_steps)  # segments of many small tensors end, too
    ends = list(accumulate(each + per_step for each in made))
    numbers = [(end - 1) * most // ends[-1] for end in ends]
    used = {number: index for index, number in enumerate(dict.fromkeys(numbers))}
    return [used[number] for number in numbers]


def by_segments(work: Work, segment_of: Sequence[int]) -> Work:
    """Return a program of which each step is a segment; the program where each is a step."""
    count = segment_of[-1] + 1 if segment_of else 0
    if count == work.num_steps:
        return work
    steps: list[list[int]] = [[] for _ in range(count)]
    for step, segment in enumerate(segment_of):
        steps[segment].append(step)
    makers = tuple(-1 if maker < 0 else segment_of[maker] for maker in work.makers)
    read_in = [{segment_of[step] for step in its} for its in _readers(work)]
    passed = [
        work.is_kept[storage] or bool(its - {makers[storage]})
        for storage, its in enumerate(read_in)
    ]
    reads, writes, scratch = [], [], []
    for segment, its in enumerate(steps):
        written = {storage for step in its for storage in work.writes[step]}
        read = {storage for step in its for storage in work.reads[step]}
        writes.append(tuple(sorted(each for each in written if passed[each])))
        reads.append(tuple(sorted(each for each in read if makers[each] != segment)))
        scratch.append(_most_inside(work, its, passed))
    return replace(
        work,
        numbers=tuple(range(count)),
        reads=tuple(reads),
        writes=tuple(writes),
        seconds=tuple(sum(work.seconds[step] for step in its) for its in steps),
        scratch=tuple(scratch),
        may_repeat=tuple(all(work.may_repeat[step] for step in its) for its in steps),
        closed_by=tuple(
            min(segment_of[end] if end < work.num_steps else count for end in ends)
            for ends in ([work.closed_by[step] for step in its] for its in steps)
        ),
        makers=makers,
    )


def _readers(work: Work) -> list[list[int]]:
    readers: list[list[int]] = [[] for _ in work.sizes]
    for step, read in enumerate(work.reads):
        for storage in read:
            readers[storage].append(step)
    return readers


def _most_inside(work: Work, steps: Sequence[int], passed: Sequence[bool]) -> int:
    """Return the most bytes at once that a segment needs and does not pass on."""
    last = {storage: step for step in steps for storage in work.reads[step]}
    ends: dict[int, int] = {}
    live = most = 0
    for step in steps:
        for storage in work.writes[step]:
            if not passed[storage]:
                live += work.sizes[storage]
                end = last.get(storage, step)
                ends[end] = ends.get(end, 0) + work.sizes[storage]
        most = max(most, live + work.scratch[step])
        live -= ends.get(step, 0)
    return most


Kept = dict[tuple[int, int], float]
"""Part of what a segment makes that is kept into a stage, by stage and segment; 0 if absent."""


def closure(
    work: Work,
    kept: Kept,
    threshold: float,
    chosen: Collection[int],
    segment_of: Sequence[int] | None = None,
) -> list[int]:
    """Return the steps that run, in order, so that what is above a threshold can be kept.

    Args:
        threshold: Least value that counts as kept.
        chosen: Storages that are kept or not; the others stay.
        segment_of: Segment of each step, whose number is that of its stage; None for its own.

    Source: Jain et al. 2020, section 5.2 (two-phase rounding).
    """
    stays = {
        step for step, its in enumerate(work.writes) if not any(each in chosen for each in its)
    }
    return _Closure(work, stays, segment_of or range(work.num_steps)).slots(kept, threshold)


class _Closure:
    def __init__(self, work: Work, stays: set[int], segment_of: Sequence[int]) -> None:
        self._work = work
        self._stays = stays
        self._segment_of = segment_of
        self._slots: list[int] = []
        self._present: set[int] = set()  # steps whose results are there

    def slots(self, kept: Kept, threshold: float) -> list[int]:
        work, segment_of = self._work, self._segment_of
        members: list[list[int]] = [[] for _ in range(1 + max(segment_of, default=-1))]
        for step, segment in enumerate(segment_of):
            members[segment].append(step)
        passed_on = {
            work.makers[storage]
            for step, read in enumerate(work.reads)
            for storage in read
            if work.makers[storage] >= 0 and segment_of[work.makers[storage]] != segment_of[step]
        }
        for stage, own in enumerate(members):
            following = {
                step
                for segment in range(stage + 1)
                if kept.get((stage + 1, segment), 0.0) > threshold
                for step in members[segment]
            }
            for step in sorted((following & passed_on) - self._stays - set(own)):
                self._require(step, own[0])
            for step in own:
                self._require(step, step)
            self._present &= following | self._stays
        return self._slots

    def _require(self, wanted: int, stage: int) -> None:
        """Run a step, and before it whatever makes what it reads and is not there."""
        work = self._work
        pending = [(wanted, False)]
        while pending:
            step, is_ready = pending.pop()
            if step in self._present:
                continue
            if is_ready:
                self._present.add(step)
                self._slots.append(step)
                continue
            if step != stage and (not work.may_repeat[step] or work.closed_by[step] <= stage):
                continue  # what it made once stays
            pending.append((step, True))
            makers = [work.makers[storage] for storage in reversed(work.reads[step])]
            # A later step changes a state after this one has read it.
            pending += [(maker, False) for maker in makers if 0 <= maker < step]
