"""The CPU arena of TFLite: whole-run records, then the largest, into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.gap_search import Fit
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class TfliteCpu(OnePass):
    """Place records as TFLite's interpreter does on a CPU.

    Records live for the whole run come first, in the problem's order; the others by
    non-increasing size, then by start. Upstream leaves equal keys to `std::sort`; here
    the lower index wins.
    """

    name: ClassVar[str] = "tflite-cpu"
    source: ClassVar[str] = "LiteRT, arena_planner.cc and simple_memory_arena.cc"
    fit: ClassVar[Fit] = Fit.BEST_TFLITE_CPU

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices, whole-run records first, then by size and start."""
        records, num_steps = problem.records, problem.num_steps

        def key(index: int) -> tuple[bool, int, int]:
            record = records[index]
            if record.lifetime == num_steps:
                return (False, 0, 0)
            return (True, -record.size, record.start)

        return sorted(range(len(records)), key=key)
