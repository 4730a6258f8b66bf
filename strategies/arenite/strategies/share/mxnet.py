"""MXNet's memory plan: free blocks near a record's size, in execution order."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ParameterValue, UsageRecord
from arenite.strategies.share.objects import ObjectSharing, object_sizes
from arenite.strategies.share.over_time import share_over_time


@dataclass(frozen=True, slots=True)
class Mxnet(ObjectSharing):
    """Take blocks step by step, largest record first, for each match range; keep the least.

    With a match range R, a record takes the smallest free block of its size to R times
    that; else the largest that is smaller, down to its size over R, which then grows; else
    a new one. Outputs that take over an input's block are not decided here: a graph says
    so by an alias.

    Attributes:
        match_ranges: Each at least 0, which shares nothing; the first of equals wins. Upstream,
            `NNVM_EXEC_MATCH_RANGE` is the one range, and `NNVM_AUTO_SEARCH_MATCH_RANGE` tries
            the five of the default.
    """

    match_ranges: tuple[int, ...] = (1, 2, 4, 8, 16)

    name: ClassVar[str] = "mxnet"
    complexity: ClassVar[str] = "match_ranges x O(n log n)"
    source: ClassVar[str] = "MXNet, src/nnvm/plan_memory.cc"

    def __post_init__(self) -> None:
        if not self.match_ranges or min(self.match_ranges) < 0:
            raise ValueError("match_ranges must hold at least one number, none below 0")

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        order = sorted(
            range(len(records)), key=lambda index: (records[index].start, -records[index].size)
        )
        return min(
            (
                share_over_time(records, order, _BlocksInRange(match_range))
                for match_range in self.match_ranges
            ),
            key=lambda assignment: sum(object_sizes(records, assignment)),
        )

    def parameters(self) -> Mapping[str, ParameterValue]:
        return {"match_ranges": ",".join(map(str, self.match_ranges))}


class _BlocksInRange:
    """Free blocks by size, equal sizes as they were freed."""

    def __init__(self, match_range: int) -> None:
        self._match_range = match_range
        self._free: list[tuple[int, int, int]] = []  # size, turn, block
        self._turn = 0

    def take(self, record: UsageRecord) -> int | None:
        """Return the smallest block not below the record in range, else the largest below."""
        if self._match_range == 0:
            return None
        position = bisect_left(self._free, (record.size, 0, 0))
        if (
            position < len(self._free)
            and self._free[position][0] <= record.size * self._match_range
        ):
            return self._free.pop(position)[2]
        if position > 0 and self._free[position - 1][0] >= record.size // self._match_range:
            return self._free.pop(position - 1)[2]
        return None

    def give_back(self, index: int, size: int, _tenant: UsageRecord) -> None:
        insort(self._free, (size, self._turn, index))
        self._turn += 1
