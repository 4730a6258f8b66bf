"""Greedy by size for objects, in stages, each record beside its nearest neighbour in time."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from arenite.planner import UsageRecord
from arenite.strategies.share.objects import ObjectSharing, positional_maxima

_NEVER = np.iinfo(np.int64).max
"""Distance in time to an object that the record cannot share."""


@dataclass(frozen=True, slots=True)
class ObjectsBySizeImproved(ObjectSharing):
    """Take records in stages; of a stage, whichever idles an object least comes first.

    A stage holds the records between two positional maxima, so records that would set the
    size of the same object compete on time alone: the one closest to a tenant of an object
    it can share takes that object; equally close ones by size, then in the problem's order.
    Of equally close objects the first to come so close is taken, as in TFLite. Only a record
    that can share none makes a new one.
    """

    name: ClassVar[str] = "objects-by-size-improved"
    complexity: ClassVar[str] = "O(n^2 + n x objects^2) array operations; memory O(n x objects)"
    source: ClassVar[str] = "Pisarchyk & Lee 2020, arXiv 2001.03288, as in TFLite's GPU delegate"

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        order = sorted(range(len(records)), key=lambda index: -records[index].size)
        negated = [-maximum for maximum in positional_maxima(records)]
        stages = [bisect_right(negated, -record.size) for record in records]
        distances = _Distances([records[index] for index in order])
        assignment = [0] * len(records)
        first = 0
        for _, stage in groupby(order, key=stages.__getitem__):
            last = first + len(list(stage))
            for _ in range(first, last):
                position, chosen = distances.assign_nearest(first, last)
                assignment[order[position]] = chosen
            first = last
        return assignment


class _Distances:
    """How far in time each record is from the nearest tenant of each object."""

    def __init__(self, records: Sequence[UsageRecord]) -> None:
        self._starts = np.array([record.start for record in records], np.int64)
        self._ends = np.array([record.end for record in records], np.int64)
        self._unassigned = np.ones(len(records), bool)
        self._to_object = np.full((1, len(records)), _NEVER)  # rows are doubled as needed
        self._num_objects = 0
        self._nearest = np.full(len(records), _NEVER)
        self._nearest_object = np.zeros(len(records), np.int64)

    def assign_nearest(self, first: int, last: int) -> tuple[int, int]:
        """Assign the record of a stage that is nearest an object; return both."""
        candidates = np.flatnonzero(self._unassigned[first:last]) + first
        record = int(candidates[self._nearest[candidates].argmin()])
        self._unassigned[record] = False
        distances = self._from_record(record)
        if self._nearest[record] == _NEVER:
            chosen = self._num_objects
            self._add_object(distances)
        else:
            chosen = int(self._nearest_object[record])
            self._add_tenant(chosen, distances)
        closer = self._unassigned & (self._to_object[chosen] < self._nearest)
        self._nearest[closer] = self._to_object[chosen, closer]
        self._nearest_object[closer] = chosen
        return record, chosen

    def _from_record(self, record: int) -> npt.NDArray[np.int64]:
        distances = np.full(len(self._starts), _NEVER)
        later = self._starts >= self._ends[record]
        earlier = self._ends <= self._starts[record]
        distances[later] = self._starts[later] - self._ends[record] + 1
        distances[earlier] = self._starts[record] - self._ends[earlier] + 1
        return distances

    def _add_object(self, distances: npt.NDArray[np.int64]) -> None:
        if self._num_objects == len(self._to_object):
            self._to_object = np.concatenate([self._to_object, self._to_object])
        self._to_object[self._num_objects] = distances
        self._num_objects += 1

    def _add_tenant(self, chosen: int, distances: npt.NDArray[np.int64]) -> None:
        row = self._to_object[chosen]
        meets = distances == _NEVER
        loses = self._unassigned & meets & (row != _NEVER) & (self._nearest_object == chosen)
        open_to = (row != _NEVER) & ~meets
        row[meets] = _NEVER
        row[open_to] = np.minimum(row[open_to], distances[open_to])
        if loses.any():
            left = self._to_object[: self._num_objects, loses]
            self._nearest[loses] = left.min(axis=0)
            self._nearest_object[loses] = left.argmin(axis=0)
