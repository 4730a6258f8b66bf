"""Spill the tensors of one layer while the next computes."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.offloading import gaps_over_turn, pipelined
from arenite.strategies.survey.passes import Passes


@dataclass(frozen=True, slots=True)
class Layrub(SchedulePolicy):
    """Copy the tensors of a layer out while the next computes, and back before they are read.

    That a gradient takes the place of its data is left to the sharing of storage.

    Attributes:
        lag: How many tensors later a copy out is waited for.
    """

    name: ClassVar[str] = "layrub"
    source: ClassVar[str] = "Jin et al. 2018, Layrub, ACM TACO 15(3), section 4"
    decides: ClassVar[str] = "tensors of the forward pass are spilled, a layer later"

    lag: int = 1

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        draft = Draft(work)
        gaps = gaps_over_turn(draft, Passes.of(work))
        return draft.schedule(pipelined(draft, gaps, lag=self.lag))
