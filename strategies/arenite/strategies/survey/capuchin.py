"""Spill tensors with time to spare, then spill or recompute, whichever costs less."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.chains import Chain, ChainLimits, find_chain
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.spilling import Fetching, Gap, all_gaps, slack_s, time_spills
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class Capuchin(SchedulePolicy):
    """Choose spills by free time, and recomputation by the bytes that it saves a second.

    Tensors that are live over the peak are chosen until their bytes are those by which the peak is
    too high; if other peaks remain, more bytes are required and the choice starts over.

    Attributes:
        most_rounds: Most choices.
        most_steps: Most steps of a chain.
    """

    name: ClassVar[str] = "capuchin"
    source: ClassVar[str] = "Peng et al. 2020, Capuchin, ASPLOS, sections 4.3 and 4.4"
    decides: ClassVar[str] = "which tensors are spilled and which recomputed, by free time"

    most_rounds: int = 40
    most_steps: int = 12

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        lowest = Draft(work)
        given = lowest.peak
        required = given - (limit or 0)
        for _ in range(self.most_rounds):
            draft = Draft(work)
            freed = self._choose(draft, limit or 0, required)
            if draft.peak < lowest.peak:
                lowest = draft
            if draft.peak <= (limit or 0) or freed < required or should_stop():
                break
            required += max(draft.peak - (limit or 0), given // 1000)
        reached = max(limit or 0, lowest.peak)
        return lowest.schedule(time_spills(lowest, reached, Fetching.LATEST).spills)

    def _choose(self, draft: Draft, limit: int, required: int) -> int:
        """Spill or recompute instances, and return their bytes."""
        work, peak_slot = draft.work, int(np.argmax(draft.loads))
        gaps = [gap for gap in all_gaps(draft, limit) if _spans(draft, gap, peak_slot)]
        slacks = {gap: slack_s(draft, gap) for gap in gaps}
        gaps.sort(key=lambda gap: -slacks[gap])
        freed = 0
        occupied = 0.0  # by the spills chosen: time that later ones cannot use
        rest: list[tuple[Gap, float]] = []
        for gap in gaps:
            size = work.sizes[gap.instance.storage]
            slack = slacks[gap] - occupied
            if freed < required and slack >= 0:
                draft.spill(gap.instance, gap.left, gap.back)
                occupied += max(work.costs.link.out_s(size), work.costs.link.back_s(size))
                freed += size
            else:
                rest.append((gap, -slack))
        return freed + self._at_a_price(draft, rest, required - freed, peak_slot)

    def _at_a_price(
        self, draft: Draft, rest: Sequence[tuple[Gap, float]], required: int, peak_slot: int
    ) -> int:
        """Spill or recompute further instances as required, and return their bytes."""
        limits = ChainLimits(self.most_steps)
        priced: list[tuple[float, int, Gap, float]] = []
        for gap, overhead in rest:
            chain = _chain(draft, gap, peak_slot, limits)
            price = min(overhead, chain.seconds) if chain else overhead
            size = draft.work.sizes[gap.instance.storage]
            priced.append((price / size, gap.instance.storage, gap, overhead))
        freed = 0
        for _, storage, gap, overhead in sorted(priced, key=lambda each: each[:2]):
            if freed >= required:
                break
            # An instance chosen since may have been a source of this one.
            chain = _chain(draft, gap, peak_slot, limits)
            if chain is not None and chain.seconds <= overhead:
                draft.insert(chain.steps, draft.slot(gap.back))
                freed += chain.gain
            elif gap.back in gap.instance.readers and draft.is_there(
                gap.instance, draft.slot(gap.back)
            ):
                draft.spill(gap.instance, draft.before(gap.instance, gap.back), gap.back)
                freed += draft.work.sizes[storage]
        return freed


def _spans(draft: Draft, gap: Gap, slot: int) -> bool:
    return draft.slot(gap.left) < slot < draft.slot(gap.back)


def _chain(draft: Draft, gap: Gap, peak_slot: int, limits: ChainLimits) -> Chain | None:
    if gap.back not in gap.instance.readers:
        return None
    slot = draft.slot(gap.back)
    if draft.before(gap.instance, gap.back) != gap.left or not draft.is_there(gap.instance, slot):
        return None
    return find_chain(draft, gap.instance, slot, peak_slot, limits)
