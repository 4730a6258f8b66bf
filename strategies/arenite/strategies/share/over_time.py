"""Objects handed out and given back as time passes, without foresight."""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from arenite.planner import UsageRecord
from arenite.strategies.share.objects import ObjectSharing, order_of_use


class FreeObjects(Protocol):
    """The objects that are free at present."""

    def take(self, record: UsageRecord) -> int | None:
        """Return the object the record gets, no longer free; None for a new one."""
        ...

    def give_back(self, index: int, size: int, tenant: UsageRecord) -> None:
        """Free an object that has grown to `size` and that `tenant` leaves."""
        ...


def share_over_time(
    records: Sequence[UsageRecord], order: Sequence[int], free: FreeObjects
) -> Sequence[int]:
    """Return the object of each record, objects numbered as they are made.

    Objects of records that have ended are freed before a record is served: by end, then in the
    problem's order.

    Args:
        order: Indices of the records by start.
        free: Chooses among the free objects; empty at first.
    """
    assignment = [0] * len(records)
    sizes: list[int] = []
    in_use: list[tuple[int, int]] = []
    for index in order:
        record = records[index]
        while in_use and in_use[0][0] <= record.start:
            _, last = heapq.heappop(in_use)
            free.give_back(assignment[last], sizes[assignment[last]], records[last])
        taken = free.take(record)
        if taken is None:
            taken = len(sizes)
            sizes.append(record.size)
        else:
            sizes[taken] = max(sizes[taken], record.size)
        assignment[index] = taken
        heapq.heappush(in_use, (record.end, index))
    return assignment


class _EqualObjects:
    """A stack of free objects for each kind of record: last freed, first reused.

    Args:
        likeness: The property that two records must share; None for a record that shares
            with no other.
    """

    def __init__(self, likeness: Callable[[UsageRecord], Hashable | None]) -> None:
        self._likeness = likeness
        self._stacks: dict[Hashable, list[int]] = {}

    def take(self, record: UsageRecord) -> int | None:
        """Return the object freed last of those that fit exactly."""
        stack = self._stacks.get(self._likeness(record))
        return stack.pop() if stack else None

    def give_back(self, index: int, _size: int, tenant: UsageRecord) -> None:
        """Free the object for records like `tenant`."""
        likeness = self._likeness(tenant)
        if likeness is not None:
            self._stacks.setdefault(likeness, []).append(index)


@dataclass(frozen=True, slots=True)
class ObjectsEqualSize(ObjectSharing):
    """Walk records in order of use; reuse a free object of the same size, last freed first."""

    name: ClassVar[str] = "objects-equal-size"
    complexity: ClassVar[str] = "O(n log n)"
    source: ClassVar[str] = "TFLite's GPU delegate, EQUALITY"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        free = _EqualObjects(lambda record: record.size)
        return share_over_time(records, order_of_use(records), free)


@dataclass(frozen=True, slots=True)
class OnnxruntimeReuse(ObjectSharing):
    """Walk records in execution order; reuse the last freed of equal shape and element size.

    A larger buffer is never considered, and scalars share with nothing. Where the shape is
    unknown the size stands for it. Outputs that take over an input's buffer are not
    decided here: a graph says so by an alias. Upstream's memory pattern is the strategy
    `onnxruntime-pattern`.
    """

    name: ClassVar[str] = "onnxruntime-reuse"
    complexity: ClassVar[str] = "O(n log n)"
    source: ClassVar[str] = "ONNX Runtime, static plan in allocation_planner.cc"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        return share_over_time(records, order_of_use(records), _EqualObjects(_likeness))


def _likeness(record: UsageRecord) -> Hashable | None:
    is_scalar = len(record.layout) == 1
    return None if is_scalar else (record.layout, record.size)


@dataclass(frozen=True, slots=True)
class ObjectsInOrder(ObjectSharing):
    """Walk records in order of use; a new object is made only when none is free."""

    name: ClassVar[str] = "objects-in-order"
    complexity: ClassVar[str] = "O(n log n)"
    source: ClassVar[str] = (
        "Lee et al. 2019, arXiv 1907.01989; TFLite's GPU delegate, GREEDY_IN_ORDER"
    )

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        return share_over_time(records, order_of_use(records), _ClosestInSize())


class _ClosestInSize:
    """Free objects by size and index; a record may take a smaller one, which grows."""

    def __init__(self) -> None:
        self._free: list[tuple[int, int]] = []

    def take(self, record: UsageRecord) -> int | None:
        """Return the closest in size, the larger of two equally close."""
        if not self._free:
            return None
        position = bisect_left(self._free, (record.size, 0))
        if position == len(self._free) or (
            position > 0
            and record.size - self._free[position - 1][0] < self._free[position][0] - record.size
        ):
            position -= 1
        return self._free.pop(position)[1]

    def give_back(self, index: int, size: int, _tenant: UsageRecord) -> None:
        """Free the object."""
        insort(self._free, (size, index))
