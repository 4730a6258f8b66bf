"""Greedy by breadth: the heaviest step first, each record into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass
from arenite.strategies.orders import breadth_order


@dataclass(frozen=True, slots=True)
class GreedyByBreadth(OnePass):
    """Place records by the largest load of their steps, then by non-increasing size."""

    name: ClassVar[str] = "greedy-by-breadth"
    source: ClassVar[str] = (
        "Pisarchyk & Lee 2020, arXiv 2001.03288: order of algorithm 1, placement of 3"
    )

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, those of the heaviest step first."""
        return breadth_order(problem.records)
