"""Records whose offsets are fixed in advance, and whether all of them can be kept."""

from collections.abc import Sequence

from arenite.planner.problem import UsageRecord


def colliding(records: Sequence[UsageRecord]) -> tuple[UsageRecord, UsageRecord] | None:
    """Return two records that share bytes at some step where they are fixed, if any do."""
    fixed = [
        (stair.start, stair.end, record.offset + stair.offset, stair.size, record)
        for record in records
        if record.offset is not None
        for stair in record.stairs
    ]
    live: list[tuple[int, int, int, UsageRecord]] = []
    for start, end, offset, size, record in sorted(fixed, key=lambda item: item[0]):
        live = [item for item in live if item[0] > start]
        for _, other_offset, other_size, other in live:
            is_apart = other_offset >= offset + size or offset >= other_offset + other_size
            if other is not record and not is_apart:
                return other, record
        live.append((end, offset, size, record))
    return None
