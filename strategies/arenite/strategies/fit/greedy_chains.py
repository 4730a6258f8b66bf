"""Chains of steps that run again, by price, and then fewer of them."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.fit.base import SchedulePolicy, schedule_of
from arenite.strategies.fit.chains import ChainLimits, lower_by_chains, prune
from arenite.strategies.fit.draft import Draft
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class GreedyChains(SchedulePolicy):
    """Lower the first peak by the chain that costs least a byte, until the budget is met.

    Attributes:
        most_steps: Most steps of a chain.
        prunes: Whether what turns out to be needless is left out at the end.
    """

    name: ClassVar[str] = "greedy-chains"
    source: ClassVar[str] = "ours"
    decides: ClassVar[str] = "which tensors are made again, from what is live there"

    most_steps: int = 12
    prunes: bool = True

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the schedule."""
        draft = Draft(work)
        lower_by_chains(draft, limit or 0, should_stop, ChainLimits(self.most_steps))
        if self.prunes:
            prune(draft, draft.peak if limit is None else max(limit, draft.peak), should_stop)
        return schedule_of(draft)
