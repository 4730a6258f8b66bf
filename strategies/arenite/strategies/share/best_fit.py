"""Each record in turn into the vacant object that fits best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from arenite.planner import UsageRecord
from arenite.strategies.base.records import breadth_order
from arenite.strategies.share.objects import ObjectSharing


class Tenancy:
    """Objects and the records in them so far."""

    def __init__(self, records: Sequence[UsageRecord]) -> None:
        self._starts = np.array([record.start for record in records], np.int64)
        self._ends = np.array([record.end for record in records], np.int64)
        self._objects = np.full(len(records), -1)
        self._num_objects = 0

    @property
    def assignment(self) -> Sequence[int]:
        """The object of each record."""
        objects: list[int] = self._objects.tolist()
        return objects

    def assign(self, record: int, chosen: int | None) -> int:
        """Put a record into an object, or a new one, and return which."""
        if chosen is None:
            chosen = self._num_objects
            self._num_objects += 1
        self._objects[record] = chosen
        return chosen

    def met(self, record: int) -> npt.NDArray[np.int64]:
        """Return the assigned records that are live at some step of a record's lifetime."""
        return np.flatnonzero(
            (self._starts < self._ends[record])
            & (self._starts[record] < self._ends)
            & (self._objects >= 0)
        )

    def highest(self, record: int, tops: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return for each object the highest top of a tenant the record meets, else 0."""
        met = self.met(record)
        highest = np.zeros(self._num_objects, np.int64)
        np.maximum.at(highest, self._objects[met], tops[met])
        return highest

    def vacant(self, record: int) -> npt.NDArray[np.int64]:
        """Return the objects without a tenant that the record meets."""
        vacant = np.ones(self._num_objects, bool)
        vacant[self._objects[self.met(record)]] = False
        return np.flatnonzero(vacant)


def assign_best_fit(records: Sequence[UsageRecord], order: Sequence[int]) -> Sequence[int]:
    """Return the object of each record, objects numbered as they are made.

    A record takes the smallest vacant object that is large enough, else the largest
    vacant one, which grows, else a new one; the lowest index of equals.

    Args:
        order: Every record's index, once.

    Cost: time O(n^2), vectorised; memory O(n).
    Source: Pisarchyk and Lee, arXiv 2001.03288, algorithms 1 and 2.
    """
    tenancy = Tenancy(records)
    sizes = np.zeros(len(records), np.int64)
    for index in order:
        size = records[index].size
        vacant = tenancy.vacant(index)
        chosen = None
        if vacant.size:
            large_enough = vacant[sizes[vacant] >= size]
            if large_enough.size:
                chosen = int(large_enough[sizes[large_enough].argmin()])
            else:
                chosen = int(vacant[sizes[vacant].argmax()])
        chosen = tenancy.assign(index, chosen)
        sizes[chosen] = max(int(sizes[chosen]), size)
    return tenancy.assignment


@dataclass(frozen=True, slots=True)
class ObjectsBySize(ObjectSharing):
    """Take records by non-increasing size, equal sizes in the problem's order.

    An object is as large as its first tenant, so none ever grows.
    """

    name: ClassVar[str] = "objects-by-size"
    complexity: ClassVar[str] = "O(n^2) array operations; memory O(n)"
    source: ClassVar[str] = "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 2"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        order = sorted(range(len(records)), key=lambda index: -records[index].size)
        return assign_best_fit(records, order)


@dataclass(frozen=True, slots=True)
class ObjectsByBreadth(ObjectSharing):
    """Take records by the heaviest step they live at, the largest of a step first."""

    name: ClassVar[str] = "objects-by-breadth"
    complexity: ClassVar[str] = "O(n^2) array operations; memory O(n log n)"
    source: ClassVar[str] = "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 1"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        return assign_best_fit(records, breadth_order(records))
