"""Strip packing, best fit: fill the lowest part of the skyline with the longest lived."""

import heapq
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from arenite.planner import ParameterValue, Plan, Problem, StrategyKind
from arenite.planner.units import align_up


@dataclass(frozen=True, slots=True)
class StripPacking:
    """Rest records on a skyline, time its width and the address its height.

    The lowest segment of the skyline, the leftmost of equals, takes the longest-lived record
    whose lifetime is within it; larger size, then lower index break ties. If there is none,
    the segment is raised to its lower neighbour, and the hole stays empty.

    Attributes:
        raw_time: Measure lifetimes in steps, not in ranks of the distinct starts and ends.
    """

    raw_time: bool = False

    name: ClassVar[str] = "strip-packing"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "O(n^2) array operations; memory O(n)"
    source: ClassVar[str] = (
        "Sekiyama et al. 2018, arXiv 1804.10001; Burke, Kendall and Whitwell 2004"
    )
    quick: ClassVar[bool] = True

    def why_unsupported(self, problem: Problem) -> str | None:
        if any(record.offset is not None for record in problem.records):
            return "cannot keep records at fixed offsets"
        return None

    def __call__(self, problem: Problem) -> Plan:
        return Plan.of(problem, self._offsets(problem), self.name, self.parameters())

    def parameters(self) -> Mapping[str, ParameterValue]:
        return {"raw_time": self.raw_time}

    def _offsets(self, problem: Problem) -> tuple[int, ...]:
        records = problem.records
        lifetimes = [(record.start, record.end) for record in records]
        if not self.raw_time:
            times = sorted({time for lifetime in lifetimes for time in lifetime})
            lifetimes = [(bisect_left(times, a), bisect_left(times, b)) for a, b in lifetimes]

        preferred = sorted(
            range(len(records)),
            key=lambda i: (lifetimes[i][0] - lifetimes[i][1], -records[i].size),
        )
        starts = np.array([lifetimes[index][0] for index in preferred], np.int64)
        ends = np.array([lifetimes[index][1] for index in preferred], np.int64)
        skyline = _Skyline(max((end for _, end in lifetimes), default=0))
        offsets = [0] * len(records)
        num_left = len(records)
        while num_left:
            start, end, height = skyline.lowest()
            inside = (starts >= start) & (ends <= end)
            rank = int(inside.argmax())
            if not inside[rank]:
                skyline.raise_to_neighbour(start)
                continue
            index = preferred[rank]
            offsets[index] = align_up(height, records[index].alignment)
            skyline.put(*lifetimes[index], offsets[index] + records[index].size)
            starts[rank] = -1  # before every segment: never chosen again
            num_left -= 1
        return tuple(offsets)


class _Skyline:
    """Heights over time as segments, no two neighbours equally high.

    Segments are identified by their start; the heap may hold segments that are gone.
    """

    def __init__(self, width: int) -> None:
        self._ends: dict[int, int] = {}
        self._heights: dict[int, int] = {}
        self._starts: dict[int, int] = {}  # by end
        self._lowest: list[tuple[int, int, int]] = []  # height, start, end
        self._add(0, width, 0)

    def lowest(self) -> tuple[int, int, int]:
        """Return start, end and height of the lowest segment, the leftmost of equals."""
        while True:
            height, start, end = self._lowest[0]
            if self._ends.get(start) == end and self._heights[start] == height:
                return start, end, height
            heapq.heappop(self._lowest)

    def put(self, start: int, end: int, height: int) -> None:
        """Raise the part [start, end) of the lowest segment to `height`."""
        left, right, ground = self.lowest()
        self._remove(left)
        if left < start:
            self._add(left, start, ground)
        if end < right:
            self._add(end, right, ground)
        self._add(start, end, height)

    def raise_to_neighbour(self, start: int) -> None:
        """Raise the segment that begins at `start` to the lower of its neighbours."""
        end = self._ends[start]
        neighbours = (self._starts.get(start), end if end in self._ends else None)
        height = min(self._heights[other] for other in neighbours if other is not None)
        self._remove(start)
        self._add(start, end, height)

    def _add(self, start: int, end: int, height: int) -> None:
        before = self._starts.get(start)
        if before is not None and self._heights[before] == height:
            self._remove(before)
            start = before
        if self._heights.get(end) == height:
            after = end
            end = self._ends[after]
            self._remove(after)
        self._ends[start], self._heights[start], self._starts[end] = end, height, start
        heapq.heappush(self._lowest, (height, start, end))

    def _remove(self, start: int) -> None:
        del self._starts[self._ends.pop(start)]
        del self._heights[start]
