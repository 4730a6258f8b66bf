"""Orders that follow only the structure of the program."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import Order, Program, Rules
from arenite.strategies.order.memory_graph import MemoryGraph


class _GraphOrder(ABC):
    """An order that is found in the memory graph of a program."""

    __slots__ = ()

    def __call__(self, program: Program, rules: Rules) -> Order:
        return self.of(MemoryGraph.of(program, rules))

    @abstractmethod
    def of(self, memory: MemoryGraph) -> Order:
        """Return the order of the steps of a memory graph."""


@dataclass(frozen=True, slots=True)
class Given(_GraphOrder):
    """Keep the order of the model."""

    name: ClassVar[str] = "given"
    complexity: ClassVar[str] = "O(n)"
    source: ClassVar[str] = "the model"

    def of(self, memory: MemoryGraph) -> Order:
        return memory.order(range(len(memory.names)))


@dataclass(frozen=True, slots=True)
class DepthFirst(_GraphOrder):
    """Finish a branch before the next begins: the newest tensor is used first."""

    name: ClassVar[str] = "depth-first"
    complexity: ClassVar[str] = "O(n + edges)"
    source: ClassVar[str] = "reverse postorder; ONNX Runtime's default order is of this kind"

    def of(self, memory: MemoryGraph) -> Order:
        return memory.order(_ready_first(memory, newest_first=True))


@dataclass(frozen=True, slots=True)
class BreadthFirst(_GraphOrder):
    """Advance all branches together: steps run in the order in which they become ready."""

    name: ClassVar[str] = "breadth-first"
    complexity: ClassVar[str] = "O(n + edges)"
    source: ClassVar[str] = "Kahn 1962, Topological sorting of large networks"

    def of(self, memory: MemoryGraph) -> Order:
        return memory.order(_ready_first(memory, newest_first=False))


def _ready_first(memory: MemoryGraph, *, newest_first: bool) -> list[int]:
    """Return an order that runs ready steps, the newest or the oldest first."""
    missing = [len(before) for before in memory.predecessors]
    successors: list[list[int]] = [[] for _ in missing]
    for step, before in enumerate(memory.predecessors):
        for predecessor in before:
            successors[predecessor].append(step)
    ready = [step for step, count in enumerate(missing) if count == 0]
    if newest_first:
        ready.reverse()
    order: list[int] = []
    position = 0
    while len(order) < len(missing):
        if newest_first:
            step = ready.pop()
        else:
            step, position = ready[position], position + 1
        order.append(step)
        freed = []
        for successor in successors[step]:
            missing[successor] -= 1
            if missing[successor] == 0:
                freed.append(successor)
        ready.extend(reversed(freed) if newest_first else freed)
    return order
