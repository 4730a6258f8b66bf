"""Facts about records: orders, conflicts, and fixed offsets that collide."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from arenite.planner import Stair, UsageRecord
from arenite.planner.placement import load_spans


def breadth_order(records: Sequence[UsageRecord]) -> list[int]:
    """Return the indices by the heaviest step a record lives at, then by size.

    Of records with an outline, the load is that of their stairs.

    This is the walk over the steps by non-increasing load, lower step first among equals,
    that takes the records not seen before by non-increasing size, equal sizes by index.

    Cost: time and memory O(n log n), unless alignment makes `load_spans` slower.
    Source: Pisarchyk and Lee, arXiv 2001.03288, algorithm 1.
    """
    if not records:
        return []
    spans = list(load_spans(records))
    ranks = np.empty(len(spans), np.int64)
    by_load = sorted(range(len(spans)), key=lambda index: -spans[index].load)
    ranks[by_load] = np.arange(len(spans))

    # lowest[level][i] is the least rank among the 2**level spans from i on.
    lowest = [ranks]
    while 2 ** len(lowest) <= len(spans):
        half = 2 ** (len(lowest) - 1)
        lowest.append(np.minimum(lowest[-1][:-half], lowest[-1][half:]))

    starts = [span.start for span in spans]
    turns = []
    for record in records:
        # The steps between the stairs may have no span, those where one begins do.
        begin = min(stair.start for stair in record.outline) if record.outline else record.start
        end = max(stair.end for stair in record.outline) if record.outline else record.end
        first, last = bisect_left(starts, begin), bisect_left(starts, end)
        level = (last - first).bit_length() - 1
        turns.append(min(int(lowest[level][first]), int(lowest[level][last - 2**level])))
    return sorted(range(len(records)), key=lambda index: (turns[index], -records[index].size))


def count_conflicts(records: Sequence[UsageRecord] | Sequence[Stair]) -> list[int]:
    """Return for each record how many others it meets.

    Cost: time O(n log n), memory O(n).
    """
    starts = sorted(record.start for record in records)
    ends = sorted(record.end for record in records)
    return [
        bisect_left(starts, record.end) - bisect_right(ends, record.start) - 1
        for record in records
    ]


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
