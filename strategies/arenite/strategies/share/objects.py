"""Base class of the strategies that give each record a whole buffer."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from arenite.planner import ParameterValue, Plan, Problem, SharedObjects, StrategyKind, UsageRecord
from arenite.planner.units import align_up


class ObjectSharing(ABC):
    """Give each record an object that it owns while it lives; a subclass says which.

    An object is as large as its largest tenant. The plan lays the objects end to end.
    """

    name: ClassVar[str]
    kind: ClassVar[StrategyKind] = StrategyKind.OBJECTS
    complexity: ClassVar[str]
    source: ClassVar[str]
    quick: ClassVar[bool] = True

    @abstractmethod
    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        """Return for each record the index of its object; no index is left out."""

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return a reason when offsets are fixed: an object lies where its turn comes."""
        return refuse_fixed_offsets(problem)

    def __call__(self, problem: Problem) -> Plan:
        records = problem.records
        assignment = self.assign(records)
        sizes = object_sizes(records, assignment)
        starts = lay_end_to_end(records, assignment, sizes)
        objects = SharedObjects(tuple(assignment), tuple(sizes), sum(positional_maxima(records)))
        offsets = tuple(starts[index] for index in assignment)
        return Plan.of(problem, offsets, self.name, self.parameters(), objects=objects)

    def parameters(self) -> Mapping[str, ParameterValue]:
        return {}


def refuse_fixed_offsets(problem: Problem) -> str | None:
    """Return a reason when a record has a fixed offset, else None."""
    if any(record.offset is not None for record in problem.records):
        return "does not place records at fixed offsets"
    return None


def order_of_use(records: Sequence[UsageRecord]) -> Sequence[int]:
    """Return the indices by first step, records of one step in the problem's order."""
    return sorted(range(len(records)), key=lambda index: records[index].start)


def object_sizes(records: Sequence[UsageRecord], assignment: Sequence[int]) -> list[int]:
    """Return the size of each object: that of its largest tenant."""
    sizes = [0] * (max(assignment, default=-1) + 1)
    for record, index in zip(records, assignment, strict=True):
        sizes[index] = max(sizes[index], record.size)
    return sizes


def lay_end_to_end(
    records: Sequence[UsageRecord], assignment: Sequence[int], sizes: Sequence[int]
) -> Sequence[int]:
    """Return where each object starts: after the one before, as its tenants are aligned."""
    alignments = [1] * len(sizes)
    for record, index in zip(records, assignment, strict=True):
        alignments[index] = max(alignments[index], record.alignment)
    starts = []
    cursor = 0
    for size, alignment in zip(sizes, alignments, strict=True):
        starts.append(align_up(cursor, alignment))
        cursor = starts[-1] + size
    return starts


def positional_maxima(records: Sequence[UsageRecord]) -> list[int]:
    """Return, for each rank, the largest size that is so ranked at some step.

    Rank 0 is the largest record live at a step, rank 1 the next and so on. Every
    assignment needs an object at least as large for each rank, so the sum bounds all
    totals from below.

    Adding the records by non-increasing size to a count of the live ones, the maximum of
    that count first exceeds a rank with the record that is the maximum of the rank.

    Cost: time O(n (log n + steps at which something starts during a lifetime)).
    Source: Pisarchyk and Lee, arXiv 2001.03288.
    """
    starts = sorted({record.start for record in records})
    num_live = np.zeros(len(starts), np.int64)
    maxima: list[int] = []
    for record in sorted(records, key=lambda record: -record.size):
        during = num_live[bisect_left(starts, record.start) : bisect_left(starts, record.end)]
        during += 1
        if during.max() > len(maxima):
            maxima.append(record.size)
    return maxima
