"""Spill the feature maps that wait longest for the backward pass, as many as a budget needs."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.draft import Draft, Instance
from arenite.strategies.schedules.spilling import Fetching, spilled_schedule
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class MengSun(SchedulePolicy):
    """Spill the feature map with the longest life; fetch it as late as the link hides.

    The paper, "Training deeper models by GPU memory optimization on TensorFlow", walks from the
    loss towards the input and keeps feature maps until the budget is used up; the others, whose
    lives are longest, are spilled. Estimated times of the steps place the copies back. Its
    attention layer for sequences has no counterpart here.
    """

    name: ClassVar[str] = "meng-sun"
    source: ClassVar[str] = "Meng, Sun et al. 2017, NIPS ML Systems Workshop, section 3.1"
    decides: ClassVar[str] = "which tensors are spilled, by the length of their lives"

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        draft = Draft(work)

        def choose(_slot: int, carried: list[tuple[Instance, int]]) -> tuple[Instance, int]:
            return max(
                carried,
                key=lambda each: (
                    draft.end(each[0]) - draft.start(each[0]),
                    work.sizes[each[0].storage],
                    -each[0].storage,
                ),
            )

        return spilled_schedule(self.name, draft, limit, choose, Fetching.LATEST, should_stop)
