"""Which tensor lies in which of several memories, and where.

The memories stand in the order in which they are preferred, the fastest first. Each gets as many
bytes of tensors as we find room for; what is left goes to the next. Several choices are tried for
each memory, so that one that leaves too much for the last is taken back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import InfeasibleError, SearchLimitError
from arenite.planner.memory import Memory
from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.strategy import Strategy, run
from arenite.planner.units import align_up

Offsets: TypeAlias = dict[str, int]
"""By the name of a record, where it lies in its memory."""

_ORDERS: Sequence[Callable[[UsageRecord], tuple[int, ...]]] = (
    lambda record: (-record.size, record.start),
    lambda record: (record.lifetime, -record.size, record.start),
    lambda record: (record.size * record.lifetime, record.start),
    lambda record: (record.end, -record.size),
)
"""In which order records ask for a memory: those that come first are the likelier to get it."""


_MOST_STATES: Final = 300
"""Sets of live records that the search for the most bytes goes on from at each record."""


def place_in_banks(
    records: Sequence[UsageRecord],
    pinned: Mapping[str, str],
    banks: Sequence[Memory],
    strategy: Strategy,
) -> list[Offsets]:
    """Return for each memory what lies in it, and where.

    Args:
        records: What to place.
        pinned: By the name of a record the memory that it must lie in.
        banks: The memories, the most wanted first.
        strategy: What places the records of one memory.

    Raises:
        InfeasibleError: Proved: the memories are too small.
        SearchLimitError: No assignment was found; one may exist.

    Cost: a handful of runs of the strategy for each memory that has a capacity; as many again for
        each choice that is taken back.
    """
    _check_room(records, banks)
    fixed = {
        bank.name: [each for each in records if pinned.get(each.name) == bank.name]
        for bank in banks
    }
    free = [each for each in records if each.name not in pinned]
    found = _filled(free, fixed, banks, strategy)
    if found is None:
        raise SearchLimitError(
            f"no assignment of {len(records)} tensors to {', '.join(map(_named, banks))} was "
            "found, though one may exist; raise a capacity, or pin fewer tensors"
        )
    return found


def _named(bank: Memory) -> str:
    return repr(bank.name) if bank.capacity is None else f"{bank.name!r} of {bank.capacity} B"


def _check_room(records: Sequence[UsageRecord], banks: Sequence[Memory]) -> None:
    """Return unless no assignment can exist.

    Raises:
        InfeasibleError: A record is larger than every memory, or all live at once are larger
            than all memories.
    """
    capacities = [bank.capacity for bank in banks if bank.capacity is not None]
    if len(capacities) < len(banks):
        return
    largest = max(banks, key=lambda bank: bank.capacity or 0)
    for record in records:
        if record.size > max(capacities):
            raise InfeasibleError(max(capacities), record.size, largest.name)
    load = max(_load(records), default=0)
    if load > sum(capacities):
        raise InfeasibleError(sum(capacities), int(load), " + ".join(bank.name for bank in banks))


def _load(records: Sequence[UsageRecord]) -> NDArray[np.int64]:
    load = np.zeros(max((record.end for record in records), default=0), np.int64)
    for record in records:
        load[record.start : record.end] += record.size
    return load


def _filled(
    free: Sequence[UsageRecord],
    pinned: Mapping[str, Sequence[UsageRecord]],
    banks: Sequence[Memory],
    strategy: Strategy,
) -> list[Offsets] | None:
    """Return the offsets in each memory, or None if something has no place."""
    if not banks:
        return None if free else []
    bank, *others = banks
    for offsets in _choices(free, pinned[bank.name], bank, strategy):
        rest = [record for record in free if record.name not in offsets]
        below = _filled(rest, pinned, others, strategy)
        if below is not None:
            return [offsets, *below]
    return None


def _choices(
    free: Sequence[UsageRecord], pinned: Sequence[UsageRecord], bank: Memory, strategy: Strategy
) -> list[Offsets]:
    """Return what may lie in a memory, those with the most bytes first."""
    sizes = {record.name: record.size for record in (*pinned, *free)}
    found: dict[frozenset[str], Offsets] = {}
    for chosen in _wished(free, pinned, bank.capacity):
        offsets = _placed(chosen, pinned, bank.capacity, strategy)
        if offsets is not None:
            _fill_gaps(offsets, free, chosen, bank.capacity)
            found.setdefault(frozenset(offsets), offsets)
    return sorted(found.values(), key=lambda each: -sum(sizes[name] for name in each))


def _wished(
    free: Sequence[UsageRecord], pinned: Sequence[UsageRecord], capacity: int | None
) -> Iterator[Sequence[UsageRecord]]:
    """Yield sets of records whose load a memory holds, and lastly the pinned alone."""
    if capacity is None or max(_load((*pinned, *free)), default=0) <= capacity:
        yield (*pinned, *free)
        if capacity is not None:
            yield pinned
        return
    num_steps = max((record.end for record in (*pinned, *free)), default=0)
    for order in _ORDERS:
        load = np.zeros(num_steps, np.int64)
        for record in pinned:
            load[record.start : record.end] += record.size
        chosen = list(pinned)
        for record in sorted(free, key=order):
            live = load[record.start : record.end]
            if live.max() + record.size <= capacity:
                live += record.size
                chosen.append(record)
        yield chosen
    yield (*pinned, *_most_bytes(free, pinned, capacity))
    yield pinned


@dataclass(frozen=True, slots=True)
class _Kept:
    """Records that were chosen so far, the last of them first."""

    num_bytes: int = 0
    record: UsageRecord | None = None
    before: "_Kept | None" = None

    def __iter__(self) -> Iterator[UsageRecord]:
        kept: _Kept | None = self
        while kept is not None:
            if kept.record is not None:
                yield kept.record
            kept = kept.before


def _most_bytes(
    free: Sequence[UsageRecord], pinned: Sequence[UsageRecord], capacity: int
) -> Iterable[UsageRecord]:
    """Return the records with the most bytes whose load a memory holds, as far as is found.

    Records are taken or left in the order in which they come to life. What matters for the next is
    only which of those taken are still live; of equal ones the best is kept, and of all the best
    `_MOST_STATES`.
    """
    fixed = np.zeros(max((record.end for record in (*pinned, *free)), default=0), np.int64)
    for record in pinned:
        fixed[record.start : record.end] += record.size
    ordered = sorted(free, key=lambda each: (each.start, each.end, each.name))
    states: dict[tuple[int, ...], _Kept] = {(): _Kept()}
    for index, record in enumerate(ordered):
        room = capacity - int(fixed[record.start : record.end].max())
        found: dict[tuple[int, ...], _Kept] = {}
        for live, kept in states.items():
            still = tuple(each for each in live if ordered[each].end > record.start)
            choices = [(still, kept)]
            if sum(ordered[each].size for each in still) + record.size <= room:
                more = _Kept(kept.num_bytes + record.size, record, kept)
                choices.append(((*still, index), more))
            for key, choice in choices:
                if key not in found or found[key].num_bytes < choice.num_bytes:
                    found[key] = choice
        best = sorted(found.items(), key=lambda item: -item[1].num_bytes)
        states = dict(best[:_MOST_STATES])
    return max(states.values(), key=lambda kept: kept.num_bytes)


def _placed(
    chosen: Sequence[UsageRecord],
    pinned: Sequence[UsageRecord],
    capacity: int | None,
    strategy: Strategy,
) -> Offsets | None:
    """Return where the records lie that end within the capacity; None if a pinned one does not."""
    problem = Problem.of(chosen)
    plan = run(strategy, problem)
    offsets = {
        record.name: offset
        for record, offset in zip(problem.records, plan.offsets, strict=True)
        if capacity is None or offset + record.size <= capacity
    }
    return offsets if all(record.name in offsets for record in pinned) else None


def _fill_gaps(
    offsets: Offsets,
    free: Sequence[UsageRecord],
    chosen: Sequence[UsageRecord],
    capacity: int | None,
) -> None:
    """Add to a memory every record that still fits between those that are there."""
    if capacity is None:
        return
    there = [record for record in chosen if record.name in offsets]
    for record in sorted(free, key=_ORDERS[0]):
        if record.name in offsets:
            continue
        offset = _lowest_gap(record, there, offsets)
        if offset + record.size <= capacity:
            offsets[record.name] = offset
            there.append(record)


def _lowest_gap(
    record: UsageRecord, there: Sequence[UsageRecord], offsets: Mapping[str, int]
) -> int:
    taken = sorted(
        (offsets[other.name], offsets[other.name] + other.size)
        for other in there
        if record.meets(other)
    )
    offset = 0
    for first, end in taken:
        if offset + record.size <= first:
            break
        offset = max(offset, align_up(end, record.alignment))
    return offset
