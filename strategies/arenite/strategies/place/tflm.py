"""TFLite Micro's planner: the largest record first, each into the lowest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.gap_search import Fit
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class Tflm(OnePass):
    """Place records as TFLite Micro does on the device.

    By non-increasing size, of equal sizes the later record first. Upstream rounds sizes up
    to 16 B before they are placed; here the records say what they need.
    """

    name: ClassVar[str] = "tflm"
    source: ClassVar[str] = "TFLite Micro, greedy_memory_planner.cc"
    fit: ClassVar[Fit] = Fit.FIRST

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, largest size first, higher index first among equals."""
        records = problem.records
        return sorted(range(len(records)), key=lambda index: (-records[index].size, -index))
