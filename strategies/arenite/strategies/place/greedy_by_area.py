"""Greedy by area: size times lifetime, largest first, each into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class GreedyByArea(OnePass):
    """Place records by non-increasing size times lifetime in steps."""

    name: ClassVar[str] = "greedy-by-area"
    source: ClassVar[str] = (
        "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 3; the order is our own"
    )

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, largest area first."""
        records = problem.records
        return sorted(
            range(len(records)),
            key=lambda index: -records[index].size * records[index].lifetime,
        )
