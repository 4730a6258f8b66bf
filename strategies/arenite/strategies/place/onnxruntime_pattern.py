"""ONNX Runtime's memory pattern: execution order, each record into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class OnnxruntimePattern(OnePass):
    """Place records when they are born, against those that live at that step.

    In order of the start, the records placed so far that meet a new one are exactly those
    live now, so one pass gives the layout of an allocator that knows no future. The reuse of
    buffers of equal shape, which runs before it upstream, is the strategy `onnxruntime-reuse`.
    """

    name: ClassVar[str] = "onnxruntime-pattern"
    source: ClassVar[str] = "ONNX Runtime, mem_pattern_planner.h"

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices by start."""
        records = problem.records
        return sorted(range(len(records)), key=lambda index: records[index].start)
