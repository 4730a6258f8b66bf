"""Walk the schedule; where it is beyond the limit, make again what saves the most bytes."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.ordering import ShouldStop
from arenite.planner.rewrites.rescheduling import Schedule
from arenite.strategies.fit.base import SchedulePolicy, schedule_of
from arenite.strategies.fit.chains import Chain, ChainLimits, find_chain
from arenite.strategies.fit.draft import Draft
from arenite.strategies.fit.work import Work


@dataclass(frozen=True, slots=True)
class XLARematerialisation(SchedulePolicy):
    """Take at each slot beyond the limit the block of steps that saves most, whatever its time.

    A block only reads what is live where it runs again, so nothing is kept longer for it.

    Attributes:
        block: Most steps of a block.
    """

    name: ClassVar[str] = "xla-remat"
    source: ClassVar[str] = "OpenXLA, hlo_rematerialization.cc"
    decides: ClassVar[str] = "which tensors are made again, by bytes alone"

    block: int = 8

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        """Return the schedule."""
        draft = Draft(work)
        bound = limit or 0
        slot = 0
        most = 2 * work.num_steps  # more runs than that would pay for no memory
        while slot < len(draft.order) < most and not should_stop():
            while draft.loads[slot] > bound and len(draft.order) < most:
                if not self._lower(draft, slot):
                    break
            slot += 1
        return schedule_of(draft)

    def _lower(self, draft: Draft, slot: int) -> bool:
        """Make one tensor again that is carried over a slot; tell whether there was one."""
        before = int(draft.loads[slot])
        found: list[tuple[int, int, int, Chain]] = []
        for instance, reader in draft.carried(slot):
            if instance.maker >= draft.work.num_steps:
                continue  # made again already: once more would go on without end
            at = draft.slot(reader)
            chain = find_chain(draft, instance, at, at, ChainLimits(self.block, 0.0))
            if chain is not None and chain.gain == draft.work.sizes[instance.storage]:
                found.append((-chain.gain, len(chain.steps), instance.storage, chain))
        for _, _, storage, chain in sorted(found, key=lambda each: each[:3]):
            seen = draft.seen_from(storage, slot)
            assert seen is not None
            at = next(draft.slot(run) for run in seen.readers if draft.slot(run) > slot)
            loads = draft.with_chain(chain.steps, at)
            over = loads[at : at + len(chain.steps)].max()
            if loads[slot] < before and over < max(before, draft.peak):
                draft.insert(chain.steps, at)
                return True
        return False
