"""Greedy by lifetime: the longest lived first, each into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class GreedyByLifetime(OnePass):
    """Place records by non-increasing lifetime, equal lifetimes by non-increasing size."""

    name: ClassVar[str] = "greedy-by-lifetime"
    source: ClassVar[str] = "XLA, order of the memory-space-assignment repacker"

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, longest lifetime first."""
        records = problem.records
        return sorted(
            range(len(records)),
            key=lambda index: (-records[index].lifetime, -records[index].size),
        )
