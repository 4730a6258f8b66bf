"""Check a plan, sharing no code with the strategies that make plans.

::

    InvalidPlanError
    ├── WrongCountError         not one offset for each record, one height for each memory
    ├── NegativeOffsetError     a record below the start of its memory
    ├── MisalignedError         an offset that is not a multiple of the alignment
    ├── MovedError              a record away from its fixed offset
    ├── OverlapError            two records live at once share bytes
    ├── WrongHeightError        the stated height is not the highest byte used
    ├── WrongBoundError         the stated bound is above the height
    └── OverCapacityError       a memory takes more than its capacity
"""

import heapq
from typing import TypeAlias

from arenite.planner.errors import InvalidPlanError
from arenite.planner.memory import Memory
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem, UsageRecord

_Placed: TypeAlias = tuple[UsageRecord, int]


class WrongCountError(InvalidPlanError):
    """Not one offset for each record, or one height and bound for each memory."""


class NegativeOffsetError(InvalidPlanError):
    """A record lies below the start of its memory."""


class MisalignedError(InvalidPlanError):
    """An offset is not a multiple of the record's alignment."""


class MovedError(InvalidPlanError):
    """A record with a fixed offset lies elsewhere."""


class OverlapError(InvalidPlanError):
    """Two records that are live at once share bytes."""


class WrongHeightError(InvalidPlanError):
    """The stated height is not the highest byte used."""


class WrongBoundError(InvalidPlanError):
    """The stated lower bound is above the height, so it bounds nothing."""


class OverCapacityError(InvalidPlanError):
    """A memory takes more than its capacity."""


def verify(problem: Problem, plan: Plan) -> None:
    """Check that a plan is valid, one memory at a time.

    Overlaps are found by a sweep over the steps that keeps the live records sorted by
    offset: if any two share bytes, then so do two neighbours. With permitted overlaps that
    no longer holds, and each record is compared with all that are live.

    Raises:
        InvalidPlanError: By the subclass of the first rule broken.

    Cost: time O(n (log n + live records)), memory O(n).
    """
    if len(plan.offsets) != len(problem.records):
        raise WrongCountError(
            f"{len(plan.offsets)} offsets for {len(problem.records)} records; "
            "a plan has one for each"
        )
    num_memories = len(problem.memories)
    if not len(plan.heights) == len(plan.lower_bounds) == num_memories:
        raise WrongCountError(
            f"{len(plan.heights)} heights and {len(plan.lower_bounds)} lower bounds for "
            f"{num_memories} memories; a plan has one for each"
        )
    placed: dict[str, list[_Placed]] = {memory.name: [] for memory in problem.memories}
    for record, offset in zip(problem.records, plan.offsets, strict=True):
        _check_position(record, offset)
        placed[record.memory].append((record, offset))
    for memory, height, bound in zip(
        problem.memories, plan.heights, plan.lower_bounds, strict=True
    ):
        _check_overlap(placed[memory.name])
        where = f"memory {memory.name!r}: " if num_memories > 1 else ""
        _check_height(memory, where, placed[memory.name], height, bound)


def _check_height(
    memory: Memory, where: str, placed: list[_Placed], height: int, lower_bound: int
) -> None:
    top = max((offset + record.size for record, offset in placed), default=0)
    if height != top:
        raise WrongHeightError(f"{where}height {height} B stated, {top} B used")
    if lower_bound > height:
        raise WrongBoundError(f"{where}lower bound {lower_bound} B is above the height {height} B")
    if memory.capacity is not None and top > memory.capacity:
        raise OverCapacityError(f"{where}{top} B used, {memory.capacity} B allowed")


def _check_position(record: UsageRecord, offset: int) -> None:
    if offset < 0:
        raise NegativeOffsetError(f"{record.name!r} lies at {offset}", [record.name])
    if offset % record.alignment:
        raise MisalignedError(
            f"{record.name!r} lies at {offset}, not a multiple of {record.alignment}",
            [record.name],
        )
    if record.offset is not None and offset != record.offset:
        raise MovedError(
            f"{record.name!r} lies at {offset}, it is fixed at {record.offset}", [record.name]
        )


def _check_overlap(placed: list[_Placed]) -> None:
    may_overlap = any(record.overlaps for record, _ in placed)
    live: list[tuple[int, int, UsageRecord]] = []
    dying: list[tuple[int, int, int]] = []
    for index, (record, offset) in sorted(enumerate(placed), key=lambda item: item[1][0].start):
        while dying and dying[0][0] <= record.start:
            _, dead_offset, dead_index = heapq.heappop(dying)
            position = _first_at_or_above(live, dead_offset, dead_index)
            del live[position]
        position = _first_at_or_above(live, offset, index)
        for neighbour in live if may_overlap else live[max(0, position - 1) : position + 1]:
            _check_pair(record, offset, neighbour[2], neighbour[0])
        live.insert(position, (offset, index, record))
        heapq.heappush(dying, (record.end, offset, index))


def _first_at_or_above(live: list[tuple[int, int, UsageRecord]], offset: int, index: int) -> int:
    low, high = 0, len(live)
    while low < high:
        middle = (low + high) // 2
        if live[middle][:2] < (offset, index):
            low = middle + 1
        else:
            high = middle
    return low


def _check_pair(a: UsageRecord, a_offset: int, b: UsageRecord, b_offset: int) -> None:
    low, high = max(a_offset, b_offset), min(a_offset + a.size, b_offset + b.size)
    if low < high and not (
        _is_permitted(a, a_offset, b, b_offset) or _is_permitted(b, b_offset, a, a_offset)
    ):
        step = max(a.start, b.start)
        raise OverlapError(
            f"{a.name!r} and {b.name!r} are both live at step {step} and share bytes "
            f"{low} to {high}",
            sorted([a.name, b.name]),
        )


def _is_permitted(below: UsageRecord, offset: int, above: UsageRecord, above_offset: int) -> bool:
    """Tell whether the last bytes of one may reach this far into the other."""
    reach = offset + below.size - above_offset
    return any(
        overlap.record == above.name and reach <= overlap.size for overlap in below.overlaps
    )
