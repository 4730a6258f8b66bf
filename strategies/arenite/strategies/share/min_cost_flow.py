"""Minimum-cost flow: each record follows another in its object, or opens a new one."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from math import gcd
from typing import ClassVar

import numpy as np

from arenite.planner import UsageRecord
from arenite.planner.errors import MissingDependencyError, UnsupportedProblemError
from arenite.strategies.share.objects import ObjectSharing, order_of_use


@dataclass(frozen=True, slots=True)
class ObjectsMinCostFlow(ObjectSharing):
    """Choose for each record which one it follows, so that objects grow by the fewest bytes.

    A record that follows none costs its size, one that follows a smaller record the
    difference, any other nothing. That only approximates the total: an object that holds
    a large, a small and again a large record is charged twice. Of several cheapest
    choices, the solver's first stands. The network has fewer arcs than the paper's O(n^2).
    """

    name: ClassVar[str] = "objects-min-cost-flow"
    complexity: ClassVar[str] = "a minimum-cost flow over O(n log n) arcs"
    source: ClassVar[str] = "Lee et al. 2019, arXiv 1907.01989; TFLite's GPU delegate, MINCOSTFLOW"
    quick: ClassVar[bool] = False

    def assign(self, records: Sequence[UsageRecord]) -> Sequence[int]:
        """Return the object of each record, objects numbered by their first tenants.

        Raises:
            MissingDependencyError: `ortools` is not installed.
            UnsupportedProblemError: Sizes are beyond the solver's range.
        """
        predecessors = _Network(records).predecessors()
        assignment = [0] * len(records)
        num_objects = 0
        for index in order_of_use(records):
            if index in predecessors:
                assignment[index] = assignment[predecessors[index]]
            else:
                assignment[index] = num_objects
                num_objects += 1
        return assignment


@dataclass(frozen=True, slots=True)
class _Handover:
    """Two sets of records: all of the first have ended when any of the second starts.

    Attributes:
        ended: Indices of the first.
        starting: Indices of the second.
    """

    ended: Sequence[int]
    starting: Sequence[int]


def _handovers(records: Sequence[UsageRecord]) -> Iterator[_Handover]:
    """Yield handovers such that each pair that may share an object is in exactly one.

    Ends and starts are put in one row by time, ends first, and the row is halved again
    and again: what ends in a left half has ended when anything in the right half starts.
    """
    row = sorted(
        [(record.end, False, index) for index, record in enumerate(records)]
        + [(record.start, True, index) for index, record in enumerate(records)]
    )
    stretches = [(0, len(row))]
    while stretches:
        first, last = stretches.pop()
        middle = (first + last) // 2
        ended = [index for _, is_start, index in row[first:middle] if not is_start]
        starting = [index for _, is_start, index in row[middle:last] if is_start]
        if ended and starting:
            yield _Handover(ended, starting)
        if last - first > 2:
            stretches += [(first, middle), (middle, last)]


class _Network:
    """A source, a left and a right node for each record, a ladder for each handover.

    Each right node draws one unit: from the source at the cost of its record's size, or
    through the left node of the record that its own one follows. On the way lies a ladder
    with a rung for each size: a unit enters at the size of the record that has ended,
    climbs at the cost of the bytes climbed, descends for nothing and leaves at the size
    of the record that starts.
    """

    def __init__(self, records: Sequence[UsageRecord]) -> None:
        self._records = records
        self._unit = gcd(*(record.size for record in records))  # keeps costs in range
        self._source = 2 * len(records)
        self._num_nodes = self._source + 1
        self._arcs: list[tuple[int, int, int, int]] = []  # tail, head, capacity, cost
        for index, record in enumerate(records):
            self._arcs.append((self._source, self._left(index), 1, 0))
            self._arcs.append((self._source, self._right(index), 1, record.size // self._unit))
        self._handovers: list[tuple[_Handover, int]] = []  # with its first arc
        for handover in _handovers(records):
            self._handovers.append((handover, len(self._arcs)))
            self._add_ladder(handover)

    def predecessors(self) -> dict[int, int]:
        """Return which record each one follows, except those that open an object.

        The flow says which records use a ladder, not which follows which; pairing the smallest
        with the smallest costs no more than any other way.
        """
        records = self._records
        flows = self._solve()
        predecessors: dict[int, int] = {}
        for handover, first in self._handovers:
            middle = first + len(handover.ended)
            last = middle + len(handover.starting)
            left = list(compress(handover.ended, flows[first:middle]))
            right = list(compress(handover.starting, flows[middle:last]))
            left.sort(key=lambda index: records[index].size)
            right.sort(key=lambda index: records[index].size)
            predecessors.update(zip(right, left, strict=True))
        return predecessors

    def _left(self, index: int) -> int:
        return index

    def _right(self, index: int) -> int:
        return len(self._records) + index

    def _add_ladder(self, handover: _Handover) -> None:
        """Add the arcs onto the ladder, then those off it, then its own."""
        records = self._records
        sizes = sorted({records[index].size for index in (*handover.ended, *handover.starting)})
        for index in handover.ended:
            rung = self._num_nodes + bisect_left(sizes, records[index].size)
            self._arcs.append((self._left(index), rung, 1, 0))
        for index in handover.starting:
            rung = self._num_nodes + bisect_left(sizes, records[index].size)
            self._arcs.append((rung, self._right(index), 1, 0))
        capacity = min(len(handover.ended), len(handover.starting))
        for rung, (lower, upper) in enumerate(pairwise(sizes), self._num_nodes):
            self._arcs.append((rung, rung + 1, capacity, (upper - lower) // self._unit))
            self._arcs.append((rung + 1, rung, capacity, 0))
        self._num_nodes += len(sizes)

    def _solve(self) -> list[int]:
        """Return the flow of each arc."""
        name = ObjectsMinCostFlow.name
        try:
            from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
        except ImportError as error:
            raise MissingDependencyError("ortools", "solvers", f"strategy {name!r}") from error
        solver = SimpleMinCostFlow()
        tails, heads, capacities, costs = np.array(self._arcs, np.int64).reshape(-1, 4).T
        arcs = solver.add_arcs_with_capacity_and_unit_cost(tails, heads, capacities, costs)
        solver.set_node_supply(self._source, len(self._records))
        for index in range(len(self._records)):
            solver.set_node_supply(self._right(index), -1)
        if solver.solve() != solver.OPTIMAL:
            raise UnsupportedProblemError(name, "cannot solve for sizes this large")
        flows: list[int] = solver.flows(arcs).tolist()
        return flows
