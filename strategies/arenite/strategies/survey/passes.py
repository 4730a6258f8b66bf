"""The forward and the backward pass of a training step, and the tensors between them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Self

from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work


@dataclass(frozen=True, slots=True)
class Passes:
    """The steps before and from the turn of a training step.

    The turn is the first step that the largest number of large tensors is carried over. Of a
    network without a backward pass, it is one amid its skip connections, or 0.

    Attributes:
        turn: The first step of the backward pass.
        small: Bytes below which a tensor is always kept: statistics of a batch are.
        saved: Large storages that the forward pass makes, and the backward pass reads.
        cuts: Large storages made by forward steps after which no other is live for the rest of
            the forward pass; in their order.
    """

    turn: int
    small: int
    saved: frozenset[int]
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, work: Work, small: float = 1e-4) -> Self:
        """Return the passes of a program.

        Args:
            small: Part of the peak below which a tensor is small.

        Cost: O(operands of the steps).
        """
        least = int(small * Draft(work).peak) + 1
        large = [
            storage
            for storage, size in enumerate(work.sizes)
            if size >= least and work.may_leave[storage]
        ]
        touches: list[list[int]] = [[] for _ in work.sizes]
        for step in range(work.num_steps):
            for storage in {*work.reads[step], *work.writes[step]}:
                touches[storage].append(step)
        turn = _turn(work.num_steps, [touches[storage] for storage in large])
        made = [storage for storage in large if 0 <= work.makers[storage] < turn]
        saved = frozenset(storage for storage in made if touches[storage][-1] >= turn)
        last_forward = {
            storage: max(step for step in touches[storage] if step < turn) for storage in made
        }
        return cls(turn, least, saved, _cuts(work, made, last_forward, turn))


def _turn(num_steps: int, touches: list[list[int]]) -> int:
    change = [0] * (num_steps + 2)
    for its in touches:
        for left, right in pairwise(its):
            change[left + 1] += 1
            change[right] -= 1
    most = turn = count = 0
    for step in range(num_steps):
        count += change[step]
        if count > most:
            most, turn = count, step
    return turn


def _cuts(
    work: Work, made: Collection[int], last_forward: Mapping[int, int], turn: int
) -> tuple[int, ...]:
    makes: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for storage in made:
        makes.setdefault(work.makers[storage], []).append(storage)
        ends.setdefault(last_forward[storage], []).append(storage)
    live: set[int] = set()
    cuts: list[int] = []
    for step in range(turn):
        live.update(makes.get(step, ()))
        live.difference_update(ends.get(step, ()))
        if len(live) == 1 and makes.get(step):
            cuts.extend(live & set(makes[step]))
    return tuple(cuts)


class Replay(Enum):
    """How much of a segment runs again when the backward pass needs some of it."""

    SPEED = "all tensors of the segment that the backward pass reads, once"
    MEMORY = "only the tensors of the next backward step, every time"


def replayed(
    work: Work,
    passes: Passes,
    keep: Collection[int],
    segment_of: Mapping[int, int],
    replay: Replay,
) -> Draft:
    """Return the draft in which the backward pass recomputes tensors that are not kept.

    Args:
        keep: Storages that stay; small ones and those that cannot be recomputed stay as well.
        segment_of: Segment of each forward step.
        replay: How much of a segment runs again.

    Cost: O(operands of all slots).
    """
    dropped = {
        storage
        for storage, size in enumerate(work.sizes)
        if size >= passes.small
        and 0 <= work.makers[storage] < passes.turn
        and work.may_leave[storage]
        and storage not in keep
        and work.may_repeat[work.makers[storage]]
    }
    needed: dict[int, list[int]] = {}
    for storage in sorted(passes.saved & dropped):
        needed.setdefault(segment_of[work.makers[storage]], []).append(storage)
    slots = list(range(passes.turn))
    there: set[int] = set()

    def make(storages: Collection[int], present: set[int], before: int) -> None:
        for storage in storages:
            if storage not in dropped or storage in present:
                continue
            step = work.makers[storage]
            if work.closed_by[step] < before:
                continue  # it cannot run again, so its result is kept
            make(work.reads[step], present, before)
            slots.append(step)
            present.update(work.writes[step])

    for step in range(passes.turn, work.num_steps):
        missing = [each for each in work.reads[step] if each in dropped and each not in there]
        if replay is Replay.MEMORY:
            make(missing, set(), step)
        else:
            for storage in missing:
                make(needed.get(segment_of[work.makers[storage]], ()), there, step)
                make((storage,), there, step)
        slots.append(step)
    return Draft(work, slots)
