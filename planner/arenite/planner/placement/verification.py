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

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.tensors import Memory

_Placed: TypeAlias = tuple[UsageRecord, int]


class _Piece(NamedTuple):
    """Bytes that a record takes for some steps: all of them, or a stair of its outline."""

    record: UsageRecord
    offset: int
    size: int
    start: int
    end: int


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

    Overlaps are found by a sweep over the steps that keeps what is live sorted by
    offset: if any two share bytes, then so do two neighbours. With permitted overlaps that
    no longer holds, and each record is compared with all that are live. Of a record with an
    outline only its stairs are live; stairs of one record are not compared.

    Raises:
        InvalidPlanError: By the subclass of the first rule broken.

    Cost: time O(n (log n + live records)), memory O(n), n counting the stairs.
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


def _pieces(placed: list[_Placed]) -> Iterator[_Piece]:
    for record, offset in placed:
        if not record.outline:
            yield _Piece(record, offset, record.size, record.start, record.end)
        for stair in record.outline:
            first = offset + stair.offset
            yield _Piece(record, first, stair.size, stair.start, stair.end)


def _check_overlap(placed: list[_Placed]) -> None:
    may_overlap = any(record.overlaps for record, _ in placed)
    pieces = sorted(_pieces(placed), key=attrgetter("start"))
    by_end = sorted(range(len(pieces)), key=lambda index: pieces[index].end)
    num_dead = 0
    live: list[tuple[int, int]] = []  # offset, index
    for index, piece in enumerate(pieces):
        while pieces[by_end[num_dead]].end <= piece.start:
            dead = by_end[num_dead]
            del live[bisect_left(live, (pieces[dead].offset, dead))]
            num_dead += 1
        key = (piece.offset, index)
        position = bisect_left(live, key)
        neighbours = live if may_overlap else live[max(0, position - 1) : position + 1]
        for _, neighbour in neighbours:
            _check_pair(piece, pieces[neighbour])
        live.insert(position, key)


def _check_pair(a: _Piece, b: _Piece) -> None:
    if a.offset >= b.offset + b.size or b.offset >= a.offset + a.size:
        return
    if not (_is_permitted(a, b) or _is_permitted(b, a)):
        low, high = max(a.offset, b.offset), min(a.offset + a.size, b.offset + b.size)
        step = max(a.start, b.start)
        raise OverlapError(
            f"{a.record.name!r} and {b.record.name!r} are both live at step {step} and share "
            f"bytes {low} to {high}",
            sorted([a.record.name, b.record.name]),
        )


def _is_permitted(below: _Piece, above: _Piece) -> bool:
    """Tell whether the last bytes of one may reach this far into the other."""
    reach = below.offset + below.size - above.offset
    return any(
        overlap.record == above.record.name and reach <= overlap.size
        for overlap in below.record.overlaps
    )
