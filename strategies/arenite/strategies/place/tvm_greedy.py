"""What TVM's two greedy strategies have in common."""

from collections.abc import Sequence
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.gap_search import Fit
from arenite.strategies.one_pass import OnePass
from arenite.strategies.orders import count_conflicts


class TvmGreedy(OnePass):
    """Place records above all they meet, gaps never used, by two keys and then by name.

    Names compare as strings: "9" comes before "10".
    """

    fit: ClassVar[Fit] = Fit.TOP
    size_first: ClassVar[bool]

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices by size and conflicts, or the other way round, descending."""
        records = problem.records
        conflicts = count_conflicts(records)

        def key(index: int) -> tuple[int, int, str]:
            size, name = records[index].size, records[index].name
            if self.size_first:
                return size, conflicts[index], name
            return conflicts[index], size, name

        return sorted(range(len(records)), key=key, reverse=True)
