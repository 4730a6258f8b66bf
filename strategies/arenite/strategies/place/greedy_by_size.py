"""Greedy by size: the largest record first, each into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class GreedyBySize(OnePass):
    """Place records by non-increasing size, equal sizes in the problem's order."""

    name: ClassVar[str] = "greedy-by-size"
    source: ClassVar[str] = (
        "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 3; TFLite's GPU delegate"
    )

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, largest size first."""
        records = problem.records
        return sorted(range(len(records)), key=lambda index: -records[index].size)
