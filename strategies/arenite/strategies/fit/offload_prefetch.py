"""TODO."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.fit.base import SchedulePolicy, schedule_of
from arenite.strategies.fit.draft import Draft
from arenite.strategies.fit.spilling import Fetching, choose_gaps, farthest_next, time_moves
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class OffloadPrefetch(SchedulePolicy):
    """TODO."""

    name: ClassVar[str] = "offload-prefetch"
    source: ClassVar[str] = ""
    decides: ClassVar[str] = ""

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the schedule."""
        draft = Draft(work)
        choose_gaps(draft, limit or 0, farthest_next(draft), should_stop)
        reached = max(limit or 0, draft.peak)
        return schedule_of(draft, time_moves(draft, reached, Fetching.LATEST).moves)
