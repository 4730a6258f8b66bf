"""Greedy in order: each record takes the free object closest in size."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import UsageRecord
from arenite.strategies.share.free_objects import share_over_time
from arenite.strategies.share.objects import ObjectSharing, order_of_use


@dataclass(frozen=True, slots=True)
class ObjectsInOrder(ObjectSharing):
    """Walk records in order of use; a new object is made only when none is free."""

    name: ClassVar[str] = "objects-in-order"
    complexity: ClassVar[str] = "O(n log n)"
    source: ClassVar[str] = (
        "Lee et al. 2019, arXiv 1907.01989; TFLite's GPU delegate, GREEDY_IN_ORDER"
    )

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        """Return the object of each record."""
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
