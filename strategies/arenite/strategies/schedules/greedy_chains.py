"""Chains of recomputed steps, by price, and then fewer of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, cheapest
from arenite.strategies.schedules.chains import (
    ChainLimits,
    Price,
    lower_by_chains,
    per_byte,
    prune,
)
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class GreedyChains(SchedulePolicy):
    """Lower the first peak by the chain of least price, until the budget is met.

    Attributes:
        prunes: Whether needless runs are removed at the end.
        powers: Exponents of the bytes that a chain gains, by which its seconds are divided.
        capped_powers: The same where only the bytes count that exceed the limit.
    """

    name: ClassVar[str] = "greedy-chains"
    source: ClassVar[str] = "ours"
    decides: ClassVar[str] = "which tensors are recomputed, and from which live tensors"

    most_steps: int = 12
    prunes: bool = True
    powers: tuple[float, ...] = (1.0, 0.8)
    capped_powers: tuple[float, ...] = (1.0, 0.9)

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        return cheapest(self.drafts(work, limit, should_stop), limit, should_stop).schedule()

    def drafts(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Iterator[Draft]:
        """Yield a draft for each power."""
        capped = self.capped_powers if limit else ()  # without a limit, all bytes have to go
        for power in self.powers:
            yield self._draft(work, limit, should_stop, partial(per_byte, power=power))
        for power in capped:
            price = partial(per_byte, power=power, capped=True)
            yield self._draft(work, limit, should_stop, price)

    def _draft(
        self, work: Work, limit: int | None, should_stop: ShouldStop, price: Price
    ) -> Draft:
        draft = Draft(work)
        lower_by_chains(draft, limit or 0, should_stop, ChainLimits(self.most_steps), price)
        if self.prunes:
            prune(draft, max(limit or 0, draft.peak), should_stop)
        return draft
