"""Spill the tensor that is read last, and fetch in order of use as late as the link allows."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.spilling import Fetching, farthest_next, spilled_schedule
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class OffloadPrefetch(SchedulePolicy):
    """Spill the tensor that is read last; start each copy back at its latest start on the link.

    Deadlines are prefix sums of the steps' times; latest starts are found backwards along the one
    link. A step stalls until its operands have arrived.
    """

    name: ClassVar[str] = "offload-prefetch"
    source: ClassVar[str] = "a dynamic memory manager for very deep networks, as surveyed"
    decides: ClassVar[str] = "which tensors are spilled, by next use, and their latest starts"
    fetching: ClassVar[Fetching] = Fetching.LATEST

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        draft = Draft(work)
        choice = farthest_next(draft)
        return spilled_schedule(self.name, draft, limit, choice, self.fetching, should_stop)
