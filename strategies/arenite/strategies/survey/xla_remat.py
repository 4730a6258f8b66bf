"""Walk the schedule; beyond the limit, recompute the tensors that save the most bytes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import ClassVar

import numpy as np

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy
from arenite.strategies.schedules.chains import Chain, ChainLimits, find_chain
from arenite.strategies.schedules.draft import Draft, Instance, Loads
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class XLARematerialisation(SchedulePolicy):
    """Take at each slot beyond the limit the block of steps that saves most, whatever its time.

    A block reads only tensors that are live where it runs again, so none is kept longer for it.

    Attributes:
        block: Most steps of a block.
    """

    name: ClassVar[str] = "xla-remat"
    source: ClassVar[str] = "OpenXLA, hlo_rematerialization.cc"
    decides: ClassVar[str] = "which tensors are recomputed, by bytes alone"

    block: int = 8

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        walk = _RematerialisedDraft(Draft(work), self.block)
        draft, bound = walk.draft, limit or 0
        slot = 0
        most = 2 * work.num_steps  # more runs than that would pay for no memory
        while slot < len(draft.order) < most and not should_stop():
            while draft.loads[slot] > bound and len(draft.order) < most:
                if not walk.lower(slot):
                    break
            slot += 1
        return draft.schedule()


class _RematerialisedDraft:
    """A draft, and facts of it since its last change."""

    def __init__(self, draft: Draft, block: int) -> None:
        self.draft = draft
        work = draft.work
        self._limits = ChainLimits(block, 0.0)
        self._num_own = work.num_steps
        storages = [
            storage for storage, size in enumerate(work.sizes) if size and work.may_leave[storage]
        ]
        self._gaps_of: dict[int, list[tuple[Instance, int, int]]] = {each: [] for each in storages}
        self._blocks: dict[tuple[int, int], Chain | None] = {}
        self._loads: dict[tuple[int, int], Loads | None] = {}
        self._find_gaps(storages)

    def _find_gaps(self, storages: Iterable[int]) -> None:
        """Note when instances that the program itself makes are live and untouched."""
        for storage in storages:
            self._gaps_of[storage] = [
                (instance, left, back)
                for instance in self.draft.instances[storage]
                if instance.maker < self._num_own  # others would be recomputed without end
                for left, back in pairwise((instance.maker, *instance.readers))
            ]
        self._gaps = list(chain.from_iterable(self._gaps_of.values()))
        self._lefts = self.draft.slots([left for _, left, _ in self._gaps])
        self._backs = self.draft.slots([back for _, _, back in self._gaps])

    def _carried(self, slot: int) -> list[tuple[Instance, int]]:
        over = np.flatnonzero((self._lefts < slot) & (slot < self._backs))
        return [(self._gaps[index][0], self._gaps[index][2]) for index in over.tolist()]

    def lower(self, slot: int) -> bool:
        """Recompute one tensor that is carried over a slot; tell whether there was one."""
        draft = self.draft
        before = int(draft.loads[slot])
        found: list[tuple[int, int, int, int, Chain]] = []
        for instance, reader in self._carried(slot):
            block = self._block(instance, reader)
            if block is not None:
                found.append((-block.gain, len(block.steps), instance.storage, reader, block))
        for _, _, storage, reader, block in sorted(found, key=lambda each: each[:3]):
            loads = self._loads_with(storage, reader, block)
            if loads is not None and loads[slot] < before:
                draft.insert(block.steps, draft.slot(reader))
                self._blocks.clear()
                self._loads.clear()
                work = draft.work
                touched = {
                    each
                    for step in block.steps
                    for each in (*work.reads[step], *work.writes[step])
                }
                self._find_gaps(touched & self._gaps_of.keys())
                return True
        return False

    def _block(self, instance: Instance, reader: int) -> Chain | None:
        """Return the block that recomputes an instance and keeps nothing longer for it."""
        key = instance.storage, reader
        if key not in self._blocks:
            at = self.draft.slot(reader)
            block = find_chain(self.draft, instance, at, at, self._limits)
            whole = block is not None and block.gain == self.draft.work.sizes[instance.storage]
            self._blocks[key] = block if whole else None
        return self._blocks[key]

    def _loads_with(self, storage: int, reader: int, block: Chain) -> Loads | None:
        """Return the loads with a block in place; None if the peak would move to it."""
        key = storage, reader
        if key not in self._loads:
            at = self.draft.slot(reader)
            loads = self.draft.with_chain(block.steps, at)
            over = loads[at : at + len(block.steps)].max()
            self._loads[key] = loads if over < self.draft.peak else None
        return self._loads[key]
