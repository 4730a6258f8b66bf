"""Recompute tensors that are carried over the peak, by chains of cheap steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arenite.planner import ShouldStop
from arenite.strategies.schedules.draft import Draft, Instance


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps that recompute a tensor.

    Attributes:
        steps: The steps, in order; the last makes the tensor.
        gain: Bytes that the peak loses: the tensor's, less those kept longer for the chain.
    """

    steps: tuple[int, ...]
    seconds: float
    gain: int


@dataclass(frozen=True, slots=True)
class ChainLimits:
    """Limits of chains.

    Attributes:
        most_steps: Most steps of a chain; 1 for single copies, 0 for none.
        small: Part of the peak below which a tensor is kept longer, not recomputed.
    """

    most_steps: int = 12
    small: float = 1e-4


Price = Callable[[Chain, int], float]
"""Price of a chain, given the bytes by which the peak is too high; the lowest is chosen."""


def per_byte(chain: Chain, excess: int, power: float = 1.0, *, capped: bool = False) -> float:
    """Return the seconds of a chain for each byte that it gains.

    Args:
        excess: Bytes by which the peak is too high.
        power: Of the bytes: below 1 it prefers short chains to those that gain much.
        capped: Whether only bytes count that have to go.
    """
    gain = min(chain.gain, excess) if capped else chain.gain
    return chain.seconds / float(gain**power)


def find_chain(
    draft: Draft, instance: Instance, slot: int, peak_slot: int, limits: ChainLimits
) -> Chain | None:
    """Return the steps that recompute an instance before a slot; None if there are none.

    Operands of the chain are free where they are live at the slot, or over the peak in any case.
    Small tensors are kept longer, others recomputed by a longer chain.
    """
    work = draft.work
    small = limits.small * draft.peak
    steps: list[int] = []
    entered: set[int] = set()
    extra: dict[int, int] = {}

    def visit(step: int) -> bool:
        if step in steps:
            return True
        if step in entered or not work.may_repeat[step]:
            return False
        closed_by = work.closed_by[step]
        if closed_by < work.num_steps and draft.slot(closed_by) < slot:
            return False
        entered.add(step)
        for storage in work.reads[step]:
            found = draft.seen_from(storage, slot)
            if found is None or not draft.is_there(found, slot):
                return False
            end = draft.end(found)
            if end >= slot or not work.sizes[storage]:
                continue
            if end > peak_slot and draft.is_there(found, peak_slot):
                continue
            can_grow = len(entered) < limits.most_steps and work.may_leave[storage]
            if work.sizes[storage] > small and work.makers[storage] >= 0 and can_grow:
                if not visit(work.makers[storage]):
                    return False
            else:
                extra[storage] = work.sizes[storage]
        steps.append(step)
        return True

    maker = work.makers[instance.storage]
    if maker < 0 or not limits.most_steps or not visit(maker):
        return None
    gain = work.sizes[instance.storage] - sum(extra.values())
    if gain <= 0:
        return None
    return Chain(tuple(steps), sum(work.seconds[step] for step in steps), gain)


def lower_by_chains(
    draft: Draft,
    limit: int,
    should_stop: ShouldStop,
    limits: ChainLimits = ChainLimits(),
    price: Price = per_byte,
) -> None:
    """Insert chains until the peak is within the limit or no chain lowers it.

    At the first slot of the peak the chain of least price is inserted before the next reader of
    its tensor, unless the peak would move there and not fall.

    Cost: O(chains x (instances over the peak + slots)).
    """
    _ChainSearch(draft, limit, limits, price).run(should_stop)


class _ChainSearch:
    def __init__(self, draft: Draft, limit: int, limits: ChainLimits, price: Price) -> None:
        self._draft = draft
        self._limit = limit
        self._limits = limits
        self._price = price
        self._banned: set[tuple[int, int]] = set()
        self._prices: dict[tuple[int, int], float] = {}

    def run(self, should_stop: ShouldStop) -> None:
        draft = self._draft
        while draft.peak > self._limit and not should_stop():
            if not self._lower(int(np.argmax(draft.loads))):
                return

    def _lower(self, peak_slot: int) -> bool:
        """Insert one chain for a tensor that is carried over this slot."""
        draft = self._draft
        peak = draft.peak
        candidates = [
            (self._prices.get((instance.storage, run), 0.0), instance.storage, run, instance)
            for instance, run in draft.carried(peak_slot)
            if (instance.storage, run) not in self._banned
        ]
        candidates.sort(key=lambda each: each[:3], reverse=True)
        best: tuple[float, Chain, int, int] | None = None
        while candidates:
            estimate, storage, run, instance = candidates.pop()
            if best is not None and estimate > best[0]:
                break  # prices seldom fall, so the others are dearer
            slot = draft.slot(run)
            chain = find_chain(draft, instance, slot, peak_slot, self._limits)
            price = float("inf") if chain is None else self._price(chain, peak - self._limit)
            self._prices[storage, run] = price
            if chain is not None and (best is None or price < best[0]):
                best = (price, chain, storage, run)
        if best is None:
            return False
        _, chain, storage, run = best
        slot = draft.slot(run)
        loads = draft.with_chain(chain.steps, slot)
        if loads[peak_slot] >= peak or loads[slot : slot + len(chain.steps)].max() >= peak:
            self._banned.add((storage, run))
            return bool(candidates) or self._lower(peak_slot)
        draft.insert(chain.steps, slot)
        return True


def prune(draft: Draft, limit: int, should_stop: ShouldStop) -> None:
    """Remove repeated runs that the limit does not need, the dearest first.

    Cost: O(repetitions x slots).
    """
    repeated = [run for run in draft.order if run >= draft.work.num_steps]
    repeated.sort(key=lambda run: (-draft.work.seconds[draft.step_of[run]], run))
    for run in repeated:
        if should_stop():
            return
        loads = draft.without(run)
        if loads is not None and int(loads.max()) <= limit:
            draft.remove(run)
