"""Spills that the computation hides, and chains of recomputed steps for the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.chains import ChainLimits, lower_by_chains, per_byte, prune
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.greedy_chains import GreedyChains
from arenite.strategies.schedules.spilling import (
    Gap,
    all_gaps,
    farthest_next,
    hidden_gaps,
    slack_s,
    spill_until,
    time_spills,
)
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class Joint(SchedulePolicy):
    """Try numbers of spills, fill up with chains, time the spills, and keep the quickest schedule.

    Attributes:
        counts: Numbers of spills to try.
        most_steps: Most steps of a chain.
        more_spills: Number of further spills that are tried one by one beside the best number.
        small: Part of the peak below which a tensor is not chosen by the time of its last use.
    """

    name: ClassVar[str] = "joint"
    source: ClassVar[str] = "ours"
    decides: ClassVar[str] = "which tensors are spilled and which recomputed"
    quick: ClassVar[bool] = False

    counts: tuple[int, ...] = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
    most_steps: int = 12
    more_spills: int = 16
    small: float = 0.01

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        return _JointSearch(self, work, limit or 0, should_stop).run()


class _JointSearch:
    def __init__(self, policy: Joint, work: Work, limit: int, should_stop: ShouldStop) -> None:
        self._policy = policy
        self._work = work
        self._limit = limit
        self._should_stop = should_stop
        self._given = Draft(work)
        self._gaps = [
            gap for gap in all_gaps(self._given, limit) if slack_s(self._given, gap) >= 0
        ]
        self._tried: set[tuple[bool, frozenset[tuple[int, int]]]] = set()
        self._best: tuple[int, float, Schedule] | None = None

    def run(self) -> Schedule:
        work, limit, should_stop = self._work, self._limit, self._should_stop
        limits = ChainLimits(self._policy.most_steps)
        for draft in GreedyChains(limits.most_steps).drafts(work, limit, should_stop):
            self._offer(draft)
            if should_stop():
                break
        quickest: tuple[list[Gap], bool] = ([], False)
        for choice, capped in product(self._choices(), (False, True) if limit else (False,)):
            if should_stop():
                break
            if self._spill(choice, capped=capped):
                quickest = choice, capped
        if limit:
            self._spill_more(*quickest)
        # If chains miss the limit, spill tensors that are read last, with or without chains.
        for most_steps in (limits.most_steps, 0):
            if should_stop():
                break
            draft = Draft(work)
            lower_by_chains(draft, limit, should_stop, ChainLimits(most_steps))
            spill_until(draft, limit, farthest_next(draft), should_stop)
            self._offer(draft)
        assert self._best is not None
        return self._best[2]

    def _offer(self, draft: Draft) -> bool:
        """Keep a draft if it is better than those before; tell whether it is."""
        peak = max(draft.peak, self._limit)
        transfers = time_spills(draft, peak)
        if self._best is not None and (peak, transfers.seconds) >= self._best[:2]:
            return False
        self._best = (peak, transfers.seconds, draft.schedule(transfers.spills))
        return True

    def _choices(self) -> list[list[Gap]]:
        """Return the gaps to be spilled, in several numbers and by several rules."""
        given, limit, sizes = self._given, self._limit, self._work.sizes
        by_slack = sorted(self._gaps, key=lambda gap: -slack_s(given, gap))
        by_size = sorted(self._gaps, key=lambda gap: -sizes[gap.instance.storage])
        by_leaving = sorted(self._large(), key=lambda gap: given.slot(gap.left))
        choices = [
            order[:count]
            for order in (by_slack, by_leaving)
            for count in self._policy.counts
            if count
        ]
        return choices + [list(hidden_gaps(given, limit, order)) for order in (by_slack, by_size)]

    def _large(self) -> list[Gap]:
        least = self._policy.small * self._given.peak
        return [gap for gap in self._gaps if self._work.sizes[gap.instance.storage] > least]

    def _spill_more(self, choice: list[Gap], capped: bool) -> None:
        """Add spills one by one, those with the largest tensors first, where that is quicker."""
        sizes = self._work.sizes
        rest = [gap for gap in self._large() if gap not in choice]
        rest.sort(key=lambda gap: -sizes[gap.instance.storage])
        for gap in rest[: self._policy.more_spills]:
            if self._should_stop():
                return
            if self._spill([*choice, gap], capped=capped):
                choice = [*choice, gap]

    def _spill(self, choice: Sequence[Gap], *, capped: bool) -> bool:
        """Spill instances until the limit is met, and add chains; tell whether it is best."""
        draft, limit, should_stop = Draft(self._work), self._limit, self._should_stop
        spilled: set[tuple[int, int]] = set()
        for gap in choice:
            if draft.peak <= limit:
                break
            storage = gap.instance.storage
            draft.spill(draft.instances[storage][0], gap.left, gap.back)
            spilled.add((storage, gap.left))
        if (capped, frozenset(spilled)) in self._tried:
            return False
        self._tried.add((capped, frozenset(spilled)))
        price = partial(per_byte, capped=capped)
        lower_by_chains(draft, limit, should_stop, ChainLimits(self._policy.most_steps), price)
        prune(draft, max(limit, draft.peak), should_stop)
        return self._offer(draft)
