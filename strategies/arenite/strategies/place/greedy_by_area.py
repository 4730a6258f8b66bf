"""Greedy by area: size times lifetime, largest first, each into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class GreedyByArea(OnePass):
    """Place records by non-increasing size times lifetime in steps.

    Cost: O(n (log n + k log k)), k the placed records that one record meets.
    Source: the placement of Pisarchyk and Lee, arXiv 2001.03288, algorithm 3; the order
        is our own choice among the usual ones of two-dimensional packing.
    """

    name: ClassVar[str] = "greedy-by-area"
    source: ClassVar[str] = "Pisarchyk & Lee 2020, algorithm 3, ordered by size x lifetime"

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, largest area first."""
        records = problem.records
        return sorted(
            range(len(records)),
            key=lambda index: -records[index].size * records[index].lifetime,
        )
