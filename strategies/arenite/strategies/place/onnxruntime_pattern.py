"""ONNX Runtime's memory pattern: execution order, each record into the tightest gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.problem import Problem
from arenite.strategies.one_pass import OnePass


@dataclass(frozen=True, slots=True)
class OnnxruntimePattern(OnePass):
    """Place records at their first step, against those live at that step.

    In order of start, the placed records that meet a new one are exactly those live at that
    step, so one pass gives the layout of an allocator that cannot look ahead. The reuse of
    buffers of equal shape, which runs before it upstream, is the strategy `onnxruntime-reuse`.
    """

    name: ClassVar[str] = "onnxruntime-pattern"
    source: ClassVar[str] = "ONNX Runtime, mem_pattern_planner.h"

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the indices by start."""
        records = problem.records
        return sorted(range(len(records)), key=lambda index: records[index].start)
