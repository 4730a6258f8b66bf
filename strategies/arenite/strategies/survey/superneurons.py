"""Results of heavy steps are kept or spilled, those of cheap steps between them recomputed."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.draft import Draft, Instance
from arenite.strategies.schedules.spilling import Choice, Fetching, spilled_schedule
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.passes import Passes, Replay, replayed

_SOURCE = "Wang et al. 2018, SuperNeurons, PPoPP, sections 3.3 and 3.4"


@dataclass(frozen=True, slots=True)
class _SuperNeurons(SchedulePolicy):
    source: ClassVar[str] = _SOURCE
    replay: ClassVar[Replay]

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the schedule; heavy results are spilled only where the limit is not met."""
        passes = Passes.of(work)
        is_heavy = heavy_steps(work)
        keep = {
            storage
            for step in range(passes.turn)
            if is_heavy[step]
            for storage in work.writes[step]
        }
        segment_of: dict[int, int] = {}
        segment = 0
        for step in range(passes.turn):
            segment += is_heavy[step]
            segment_of[step] = segment
        draft = replayed(work, passes, keep, segment_of, self.replay)
        if limit is None or draft.peak <= limit:
            return draft.schedule()
        choice = _least_recent(draft)
        return spilled_schedule(self.name, draft, limit, choice, Fetching.WITH_ROOM, should_stop)


@dataclass(frozen=True, slots=True)
class SuperNeuronsSpeed(_SuperNeurons):
    """Run the cheap steps of a segment once more, and keep their results."""

    name: ClassVar[str] = "superneurons-speed"
    decides: ClassVar[str] = "cheap results are recomputed once, heavy ones spilled if need be"
    replay: ClassVar[Replay] = Replay.SPEED


@dataclass(frozen=True, slots=True)
class SuperNeuronsMemory(_SuperNeurons):
    """Run the cheap steps of a segment again for every backward step that reads their results."""

    name: ClassVar[str] = "superneurons-memory"
    decides: ClassVar[str] = "cheap results are recomputed each time, heavy ones spilled"
    replay: ClassVar[Replay] = Replay.MEMORY


def heavy_steps(work: Work) -> tuple[bool, ...]:
    """Tell of each step whether it multiplies: convolutions and products do."""
    program = work.program
    steps = [program.steps[number] for number in work.numbers]
    return tuple(step.operator.multiply_adds(program.operands(step)) > 0 for step in steps)


def _least_recent(draft: Draft) -> Choice:
    """Return the choice of the instance that was touched longest ago."""

    def choose(_slot: int, carried: list[tuple[Instance, int]]) -> tuple[Instance, int]:
        return min(carried, key=lambda each: (draft.slot(draft.before(*each)), each[0].storage))

    return choose
