"""Objects handed out and given back as time passes, for strategies without foresight."""

import heapq
from collections.abc import Sequence
from typing import Protocol

from arenite.planner.problem import UsageRecord


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
        records: In any order.
        order: Their indices by start.
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
