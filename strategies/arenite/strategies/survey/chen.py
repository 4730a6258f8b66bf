"""Checkpoints at cut points of the forward pass, segments run again between them."""

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, cheapest
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.passes import Passes, Replay, replayed


@dataclass(frozen=True, slots=True)
class SquareRoot(SchedulePolicy):
    """Keep every k-th cut point, k the square root of their number."""

    name: ClassVar[str] = "sqrt"
    source: ClassVar[str] = "Chen et al. 2016, arXiv 1604.06174, section 4"
    decides: ClassVar[str] = "which cut points of the forward pass are kept"

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        passes = Passes.of(work)
        stride = max(1, isqrt(len(passes.cuts)))
        return checkpointed(work, passes, passes.cuts[stride - 1 :: stride]).schedule()


def checkpointed(work: Work, passes: Passes, checkpoints: tuple[int, ...]) -> Draft:
    """Return the draft that keeps these cut points and recomputes each segment as a whole."""
    ends = sorted(work.makers[storage] for storage in checkpoints)
    segment_of: dict[int, int] = {}
    segment = 0
    for step in range(passes.turn):
        segment_of[step] = segment
        if segment < len(ends) and step == ends[segment]:
            segment += 1
    return replayed(work, passes, checkpoints, segment_of, Replay.SPEED)


@dataclass(frozen=True, slots=True)
class ChenGreedy(SchedulePolicy):
    """Keep a cut point when the tensors since the last one exceed a bound.

    Attributes:
        num_bounds: Number of bounds that are tried, from half of all saved bytes downwards.
        ratio: Of one bound to the next.
    """

    name: ClassVar[str] = "chen-greedy"
    source: ClassVar[str] = "Chen et al. 2016, arXiv 1604.06174, algorithm 3"
    decides: ClassVar[str] = "which cut points of the forward pass are kept"

    num_bounds: int = 16
    ratio: float = 0.7

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        passes = Passes.of(work)
        bound = sum(work.sizes[storage] for storage in passes.saved) / 2
        chosen: dict[tuple[int, ...], None] = {}
        for _ in range(self.num_bounds):
            chosen[_checkpoints(work, passes, bound)] = None
            bound *= self.ratio
        drafts = (checkpointed(work, passes, each) for each in chosen)
        return cheapest(drafts, limit, should_stop).schedule()


def _checkpoints(work: Work, passes: Passes, bound: float) -> tuple[int, ...]:
    cuts = {work.makers[storage]: storage for storage in passes.cuts}
    found: list[int] = []
    since = 0
    for step in range(passes.turn):
        since += sum(work.sizes[storage] for storage in work.writes[step])
        if step in cuts and since > bound:
            found.append(cuts[step])
            since = 0
    return tuple(found)
