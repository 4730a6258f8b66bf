"""TVM's greedy by size: the largest record first, each above all it meets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.gap_search import Fit
from arenite.strategies.one_pass import OnePass
from arenite.strategies.orders import count_conflicts


@dataclass(frozen=True, slots=True)
class TvmBySize(OnePass):
    """Place records by size, conflicts and name, all descending; gaps are never used.

    Names compare as strings: "9" comes before "10".

    Cost: O(n (log n + k)), k the placed records that one record meets.
    Source: TVM 0.14, USMP `greedy_by_size`.
    """

    name: ClassVar[str] = "tvm-by-size"
    source: ClassVar[str] = "TVM USMP greedy_by_size"
    fit: ClassVar[Fit] = Fit.TOP

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, largest size first, then by conflicts and name."""
        records = problem.records
        conflicts = count_conflicts(records)
        return sorted(
            range(len(records)),
            key=lambda index: (records[index].size, conflicts[index], records[index].name),
            reverse=True,
        )
