"""Which objects are taken during a lifetime, whatever the order records come in."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from arenite.planner.problem import UsageRecord


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
