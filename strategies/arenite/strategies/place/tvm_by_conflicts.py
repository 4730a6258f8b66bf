"""TVM's greedy by conflicts: the record that meets most first, each above all it meets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.gap_search import Fit
from arenite.strategies.one_pass import OnePass
from arenite.strategies.orders import count_conflicts


@dataclass(frozen=True, slots=True)
class TvmByConflicts(OnePass):
    """Place records by conflicts, size and name, all descending; gaps are never used.

    Names compare as strings: "9" comes before "10".

    Cost: O(n (log n + k)), k the placed records that one record meets.
    Source: TVM 0.14, USMP `greedy_by_conflicts`.
    """

    name: ClassVar[str] = "tvm-by-conflicts"
    source: ClassVar[str] = "TVM USMP greedy_by_conflicts"
    fit: ClassVar[Fit] = Fit.TOP

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, most conflicts first, then by size and name."""
        records = problem.records
        conflicts = count_conflicts(records)
        return sorted(
            range(len(records)),
            key=lambda index: (conflicts[index], records[index].size, records[index].name),
            reverse=True,
        )
