"""Spill the tensor that is read last, and fetch in order of use as soon as there is room."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.spilling import Fetching, farthest_next, spilled_schedule
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class MoDNN(SchedulePolicy):
    """Spill the tensor that is read last; fetch the earliest deadline first when there is room.

    The choice of convolution algorithms and of smaller batches has no counterpart here.
    """

    name: ClassVar[str] = "modnn"
    source: ClassVar[str] = "Chen et al. 2018, moDNN, DATE; 2019, IEEE TPDS 30(3)"
    decides: ClassVar[str] = "which tensors are spilled, by next use, back as soon as they fit"

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        draft = Draft(work)
        choice = farthest_next(draft)
        return spilled_schedule(self.name, draft, limit, choice, Fetching.WITH_ROOM, should_stop)
