"""Greedy by size: the largest record first, each into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class GreedyBySize(OnePass):
    """Place records by non-increasing size, equal sizes in the problem's order.

    Cost: O(n (log n + k log k)), k the placed records that one record meets.
    Source: Pisarchyk and Lee, arXiv 2001.03288, algorithm 3; TFLite's GPU delegate
        (`GREEDY_BY_SIZE` for offsets).
    """

    name: ClassVar[str] = "greedy-by-size"
    source: ClassVar[str] = "Pisarchyk & Lee 2020, algorithm 3"

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, largest size first."""
        records = problem.records
        return sorted(range(len(records)), key=lambda index: -records[index].size)
