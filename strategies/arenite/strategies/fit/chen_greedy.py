"""Checkpoints where the tensors since the last add up to a bound, which is searched."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.fit.base import SchedulePolicy, schedule_of
from arenite.strategies.fit.choosing import cheapest
from arenite.strategies.fit.passes import Passes
from arenite.strategies.fit.square_root import checkpointed
from arenite.strategies.fit.work import Work


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
        """Return the cheapest schedule within the limit, the lowest if none is."""
        passes = Passes.of(work)
        bound = sum(work.sizes[storage] for storage in passes.saved) / 2
        chosen: dict[tuple[int, ...], None] = {}
        for _ in range(self.num_bounds):
            chosen[_checkpoints(work, passes, bound)] = None
            bound *= self.ratio
        drafts = (checkpointed(work, passes, each) for each in chosen)
        return schedule_of(cheapest(drafts, limit, should_stop))


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
