"""Strategies that place every record once, in an order that is fixed beforehand."""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from arenite.planner import ParameterValue, Plan, Problem, StrategyKind, UsageRecord
from arenite.strategies.base.gap_search import Fit, place_in_order
from arenite.strategies.base.records import breadth_order

_Key: TypeAlias = int | tuple[int, ...]


class OnePass(ABC):
    """Place every record once; a subclass defines the order, by a key or as a whole.

    Records with a fixed offset are respected, so every problem is supported.
    """

    name: ClassVar[str]
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "O(n (log n + k log k)), k records met by one"
    source: ClassVar[str]
    quick: ClassVar[bool] = True
    fit: ClassVar[Fit] = Fit.BEST

    def order(self, problem: Problem) -> Sequence[int]:
        """Return the records' indices in the order they are placed, equal keys by index."""
        records = problem.records
        return sorted(range(len(records)), key=lambda index: self.key(records[index]))

    def key(self, _record: UsageRecord) -> _Key:
        """Return the key of the sort, lowest first; by default the problem's order stays."""
        return 0

    def why_unsupported(self, _problem: Problem) -> str | None:
        return None

    def __call__(self, problem: Problem) -> Plan:
        offsets = place_in_order(problem, self.order(problem), self.fit)
        return Plan.of(problem, offsets, self.name, self.parameters())

    def parameters(self) -> Mapping[str, ParameterValue]:
        return {}


@dataclass(frozen=True, slots=True)
class GreedyBySize(OnePass):
    """Place records by non-increasing size, equal sizes in the problem's order."""

    name: ClassVar[str] = "greedy-by-size"
    source: ClassVar[str] = (
        "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 3; TFLite's GPU delegate"
    )

    def key(self, record: UsageRecord) -> _Key:
        return -record.size


@dataclass(frozen=True, slots=True)
class GreedyByBreadth(OnePass):
    """Place records by the largest load of their steps, then by non-increasing size."""

    name: ClassVar[str] = "greedy-by-breadth"
    source: ClassVar[str] = (
        "Pisarchyk & Lee 2020, arXiv 2001.03288: order of algorithm 1, placement of 3"
    )

    def order(self, problem: Problem) -> Sequence[int]:
        return breadth_order(problem.records)


@dataclass(frozen=True, slots=True)
class GreedyByArea(OnePass):
    """Place records by non-increasing size times lifetime in steps."""

    name: ClassVar[str] = "greedy-by-area"
    source: ClassVar[str] = (
        "Pisarchyk & Lee 2020, arXiv 2001.03288, algorithm 3; the order is our own"
    )

    def key(self, record: UsageRecord) -> _Key:
        return -record.size * record.lifetime


@dataclass(frozen=True, slots=True)
class GreedyByLifetime(OnePass):
    """Place records by non-increasing lifetime, equal lifetimes by non-increasing size."""

    name: ClassVar[str] = "greedy-by-lifetime"
    source: ClassVar[str] = "XLA, order of the memory-space-assignment repacker"

    def key(self, record: UsageRecord) -> _Key:
        return -record.lifetime, -record.size


@dataclass(frozen=True, slots=True)
class TflmGreedy(OnePass):
    """Place records as TFLite Micro does on the device.

    By non-increasing size, of equal sizes the later record first. Upstream rounds sizes up
    to 16 B before they are placed; here the records state their sizes.
    """

    name: ClassVar[str] = "tflm"
    source: ClassVar[str] = "TFLite Micro, greedy_memory_planner.cc"
    fit: ClassVar[Fit] = Fit.FIRST

    def order(self, problem: Problem) -> Sequence[int]:
        records = problem.records
        return sorted(range(len(records)), key=lambda index: (-records[index].size, -index))


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
        records, num_steps = problem.records, problem.num_steps

        def key(index: int) -> tuple[bool, int, int]:
            record = records[index]
            if record.lifetime == num_steps:
                return (False, 0, 0)
            return (True, -record.size, record.start)

        return sorted(range(len(records)), key=key)


@dataclass(frozen=True, slots=True)
class OnnxruntimePattern(OnePass):
    """Place records at their first step, against those live at that step.

    In order of start, the placed records that meet a new one are exactly those live at that
    step, so one pass gives the layout of an allocator that cannot look ahead. The reuse of
    buffers of equal shape, which runs before it upstream, is the strategy `onnxruntime-reuse`.
    """

    name: ClassVar[str] = "onnxruntime-pattern"
    source: ClassVar[str] = "ONNX Runtime, mem_pattern_planner.h"

    def key(self, record: UsageRecord) -> _Key:
        return record.start


@dataclass(frozen=True, slots=True)
class XlaBestFit(OnePass):
    """Place records by non-increasing size, equal sizes by non-increasing lifetime."""

    name: ClassVar[str] = "xla-best-fit"
    source: ClassVar[str] = "XLA, GlobalDecreasingSizeBestFitHeap in heap_simulator.cc"

    def key(self, record: UsageRecord) -> _Key:
        return -record.size, -record.lifetime
