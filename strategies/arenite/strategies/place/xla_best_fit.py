"""XLA's global decreasing size best fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class XlaBestFit(OnePass):
    """Place records by non-increasing size, equal sizes by non-increasing lifetime."""

    name: ClassVar[str] = "xla-best-fit"
    source: ClassVar[str] = "XLA, GlobalDecreasingSizeBestFitHeap in heap_simulator.cc"

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, largest size first, longer lived first among equals."""
        records = problem.records
        return sorted(
            range(len(records)),
            key=lambda index: (-records[index].size, -records[index].lifetime),
        )
