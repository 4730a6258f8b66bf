"""Swap the farthest, and fetch in the order of need as late as the link allows."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, schedule_of
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.spilling import Fetching, choose_gaps, farthest_next, time_moves
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class OffloadPrefetch(SchedulePolicy):
    """Evict what is needed last; start each way back at its latest start on the link.

    Deadlines are prefix sums of the steps' times; latest starts are found backwards along the one
    link. A step whose operands are not there by then stalls until they are.
    """

    name: ClassVar[str] = "offload-prefetch"
    source: ClassVar[str] = "a dynamic memory manager for very deep networks, as surveyed"
    decides: ClassVar[str] = "which tensors are swapped, by next use, and their latest starts"

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the schedule."""
        draft = Draft(work)
        choose_gaps(draft, limit or 0, farthest_next(draft), should_stop)
        reached = max(limit or 0, draft.peak)
        return schedule_of(draft, time_moves(draft, reached, Fetching.LATEST).moves)
