"""One-pass placement, shared by every greedy offsets strategy.

Records are taken in a given order; each goes into a gap between the records that are
already placed and live at the same time. The native core does the work; where it was
not built, the Python twin below gives the same offsets.
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from enum import Enum

from arenite.planner import Problem, UsageRecord
from arenite.planner.units import align_up
from arenite.strategies.base import native


class Fit(Enum):
    """Which gap a record takes; the value names its twin in the native core."""

    FIRST = "FIRST"
    """The lowest that is large enough."""
    BEST = "BEST"
    """The smallest that is large enough, the lowest of equals."""
    BEST_TFLITE_CPU = "BEST_TFLITE_CPU"
    """As BEST, with the bookkeeping of TFLite's SimpleMemoryArena."""
    TOP = "TOP"
    """No gap: above everything."""


def place_in_order(problem: Problem, order: Sequence[int], fit: Fit) -> tuple[int, ...]:
    """Return an offset for each record, placed one after the other in `order`.

    Records with a fixed offset are placed there before all others.

    Args:
        order: Every record's index, once.
        fit: Which gap to take.

    Cost: O(n (log n + k log k)), k the placed records that one record meets; the Python
        twin O(n^2).
    Source: Pisarchyk and Lee, arXiv 2001.03288, algorithm 3.
    """
    if not native.is_built() or not native.fits(problem):
        return _place_in_python(problem.records, order, fit)
    core_fit = getattr(native.core.Fit, fit.value)
    records = native.records_of(problem)
    return tuple(native.core.place_in_order(records, list(order), core_fit))


def _place_in_python(
    records: Sequence[UsageRecord], order: Sequence[int], fit: Fit
) -> tuple[int, ...]:
    offsets = [0] * len(records)
    placed: list[tuple[int, int, int]] = []  # offset, turn, record: turns break ties
    fixed = [index for index, record in enumerate(records) if record.offset is not None]
    movable = [index for index in order if records[index].offset is None]
    for turn, index in enumerate([*fixed, *movable]):
        record = records[index]
        if record.offset is not None:
            offsets[index] = record.offset
        else:
            blocks = (
                (offset, offset + records[other].size)
                for offset, _, other in placed
                if records[other].meets(record)
            )
            offsets[index] = _CHOOSE[fit](blocks, record.size, record.alignment)
        insort(placed, (offsets[index], turn, index))
    return tuple(offsets)


def lowest_gap(blocks: Iterable[tuple[int, int]], size: int, alignment: int) -> int:
    """Return the lowest offset at which so many bytes lie between blocks.

    Args:
        blocks: The first byte of each and the one after its last, in order of the first.
        alignment: Divisor of the offset, a power of two.
    """
    cursor = 0
    for offset, end in blocks:
        if offset - cursor >= size:
            return cursor
        cursor = max(cursor, align_up(end, alignment))
    return cursor


def _tightest_gap(blocks: Iterable[tuple[int, int]], size: int, alignment: int) -> int:
    cursor = 0
    best_gap, best = None, None
    for offset, end in blocks:
        gap = offset - cursor
        if gap >= size and (best_gap is None or gap < best_gap):
            best_gap, best = gap, cursor
        cursor = max(cursor, align_up(end, alignment))
    return cursor if best is None else best


def _tightest_gap_tflite_cpu(blocks: Iterable[tuple[int, int]], size: int, alignment: int) -> int:
    cursor = 0
    best_gap, best = None, None
    for offset, end in blocks:
        aligned = align_up(cursor, alignment)
        if aligned + size <= offset and (best_gap is None or offset - aligned < best_gap):
            # Measured from the unaligned cursor, a mistake that upstream makes.
            best_gap, best = offset - cursor, aligned
        cursor = max(cursor, end)
        if best_gap == 0:
            break
    return align_up(cursor, alignment) if best is None else best


def _top(blocks: Iterable[tuple[int, int]], _size: int, alignment: int) -> int:
    return max((align_up(end, alignment) for _, end in blocks), default=0)


_CHOOSE = {
    Fit.FIRST: lowest_gap,
    Fit.BEST: _tightest_gap,
    Fit.BEST_TFLITE_CPU: _tightest_gap_tflite_cpu,
    Fit.TOP: _top,
}
