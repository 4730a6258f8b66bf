"""Swap the farthest, and fetch in the order of need as soon as there is room."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, schedule_of
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.spilling import Fetching, choose_gaps, farthest_next, time_moves
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class MoDNN(SchedulePolicy):
    """Evict what is needed last; fetch the earliest deadline first when it has room to its use.

    The choice of convolution algorithms and of smaller batches has no counterpart here.
    """

    name: ClassVar[str] = "modnn"
    source: ClassVar[str] = "Chen et al. 2018, moDNN, DATE; 2020, IEEE TPDS"
    decides: ClassVar[str] = "which tensors are swapped, by next use, back as soon as they fit"

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the schedule."""
        draft = Draft(work)
        choose_gaps(draft, limit or 0, farthest_next(draft), should_stop)
        reached = max(limit or 0, draft.peak)
        return schedule_of(draft, time_moves(draft, reached, Fetching.WITH_ROOM).moves)
