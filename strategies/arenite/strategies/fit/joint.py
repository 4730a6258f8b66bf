"""Swaps that hide behind the computation, and chains of steps for the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.fit.base import SchedulePolicy, schedule_of
from arenite.strategies.fit.chains import ChainLimits, lower_by_chains, prune
from arenite.strategies.fit.draft import Draft
from arenite.strategies.fit.greedy_chains import GreedyChains
from arenite.strategies.fit.spilling import (
    Gap,
    all_gaps,
    choose_gaps,
    farthest_next,
    hidden_gaps,
    slack_s,
    time_moves,
)
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class Joint(SchedulePolicy):
    """Try numbers of swaps, fill up with chains, time the moves, and keep what is quickest.

    Attributes:
        counts: Numbers of swaps to try.
        most_steps: Most steps of a chain.
    """

    name: ClassVar[str] = "joint"
    source: ClassVar[str] = "ours"
    decides: ClassVar[str] = "which tensors are swapped and which made again"
    quick: ClassVar[bool] = False

    counts: tuple[int, ...] = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
    most_steps: int = 12

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the quickest schedule within the limit, or the lowest if none is."""
        best: tuple[int, float, Schedule] | None = None
        for draft in self._drafts(work, limit or 0, should_stop):
            peak = max(draft.peak, limit or 0)
            transfers = time_moves(draft, peak)
            if best is None or (peak, transfers.seconds) < best[:2]:
                best = (peak, transfers.seconds, schedule_of(draft, transfers.moves))
            if should_stop():
                break
        assert best is not None
        return best[2]

    def _drafts(self, work: Work, limit: int, should_stop: ShouldStop) -> Iterator[Draft]:
        """Yield drafts to choose from, within the limit where swaps and chains reach it."""
        given = Draft(work)
        gaps = [gap for gap in all_gaps(given, limit) if slack_s(given, gap) >= 0]
        by_slack = sorted(gaps, key=lambda gap: -slack_s(given, gap))
        by_size = sorted(gaps, key=lambda gap: -work.sizes[gap.instance.storage])
        yield from GreedyChains(self.most_steps).drafts(work, limit, should_stop)
        choices = [by_slack[:count] for count in self.counts if count]
        choices += [list(hidden_gaps(given, limit, order)) for order in (by_slack, by_size)]
        seen: set[frozenset[tuple[int, int]]] = set()
        for choice in choices:
            draft = Draft(work)
            swapped = _swap(draft, limit, choice)
            if swapped not in seen:
                seen.add(swapped)
                lower_by_chains(draft, limit, should_stop, ChainLimits(self.most_steps))
                prune(draft, max(limit, draft.peak), should_stop)
                yield draft
        # Where chains do not get there, what is farthest leaves as well, or instead.
        for most_steps in (self.most_steps, 0):
            draft = Draft(work)
            lower_by_chains(draft, limit, should_stop, ChainLimits(most_steps))
            choose_gaps(draft, limit, farthest_next(draft), should_stop)
            yield draft


def _swap(draft: Draft, limit: int, gaps: Sequence[Gap]) -> frozenset[tuple[int, int]]:
    """Let instances leave until the limit is met; return what left and from where."""
    swapped: set[tuple[int, int]] = set()
    for gap in gaps:
        if draft.peak <= limit:
            break
        storage = gap.instance.storage
        draft.spare(draft.instances[storage][0], gap.left, gap.back)
        swapped.add((storage, gap.left))
    return frozenset(swapped)
