"""Checkpoints at every square root of the cut points, segments made again between them."""

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.fit.base import SchedulePolicy, schedule_of
from arenite.strategies.fit.draft import Draft
from arenite.strategies.fit.passes import Passes, Replay, replayed
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class SquareRoot(SchedulePolicy):
    """Keep every k-th cut point, k the square root of their number."""

    name: ClassVar[str] = "sqrt"
    source: ClassVar[str] = "Chen et al. 2016, arXiv 1604.06174, section 4"
    decides: ClassVar[str] = "which cut points of the forward pass are kept"

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the one schedule there is, whatever the limit."""
        passes = Passes.of(work)
        stride = max(1, isqrt(len(passes.cuts)))
        return schedule_of(checkpointed(work, passes, passes.cuts[stride - 1 :: stride]))


def checkpointed(work: Work, passes: Passes, checkpoints: tuple[int, ...]) -> Draft:
    """Return the draft that keeps these cut points and makes each segment again as a whole."""
    ends = sorted(work.makers[storage] for storage in checkpoints)
    segment_of: dict[int, int] = {}
    segment = 0
    for step in range(passes.turn):
        segment_of[step] = segment
        if segment < len(ends) and step == ends[segment]:
            segment += 1
    return replayed(work, passes, checkpoints, segment_of, Replay.SPEED)
