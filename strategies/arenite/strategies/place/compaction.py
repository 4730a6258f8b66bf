"""Move the records of a plan down as far as permitted overlaps allow."""

from collections.abc import Iterable, Sequence

from arenite.planner import Problem, UsageRecord
from arenite.planner.units import align_up


def compacted(problem: Problem, offsets: Sequence[int]) -> tuple[int, ...]:
    """Return offsets of a plan that is no higher than the one given.

    The records are placed again in the order of their offsets, each as low as those before it
    allow: whatever lay below a record is no higher now, so its old place is still free. The
    same is tried from the top down, because an overlap requires one of two records to lie below
    the other.

    Cost: O(n^2).
    """
    records = problem.records
    indices = range(len(records))
    bottom_up = sorted(indices, key=lambda index: offsets[index])
    top_down = sorted(indices, key=lambda index: -offsets[index] - records[index].size)
    return min(
        (_placed_lowest(records, order) for order in (bottom_up, top_down)),
        key=lambda placed: max(map(_top, records, placed), default=0),
    )


def _top(record: UsageRecord, offset: int) -> int:
    return offset + record.size


def _placed_lowest(records: Sequence[UsageRecord], order: Iterable[int]) -> tuple[int, ...]:
    """Return the lowest offsets in this order, fixed records placed before all others."""
    offsets = [record.offset or 0 for record in records]
    placed = [index for index, record in enumerate(records) if record.offset is not None]
    for index in order:
        record = records[index]
        if record.offset is None:
            met = [other for other in placed if records[other].meets(record)]
            offsets[index] = _lowest(record, [(records[other], offsets[other]) for other in met])
            placed.append(index)
    return tuple(offsets)


def _lowest(record: UsageRecord, placed: Sequence[tuple[UsageRecord, int]]) -> int:
    forbidden = sorted(
        (
            offset - record.size + _permitted(record, other),
            offset + other.size - _permitted(other, record),
        )
        for other, offset in placed
    )
    lowest = 0
    for below, above in forbidden:  # offsets between the two, neither included
        if lowest <= below:
            break
        lowest = max(lowest, align_up(above, record.alignment))
    return lowest


def _permitted(below: UsageRecord, above: UsageRecord) -> int:
    """Return how many bytes of `above` the record `below` may overlap."""
    return sum(overlap.size for overlap in below.overlaps if overlap.record == above.name)
