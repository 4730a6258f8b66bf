"""What an operator order is. The ways to find one live in `arenite.strategies.order`."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from arenite.planner.graph import Graph
from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary
from arenite.planner.rewrites.aliasing import AliasKind


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """What counts while an order is sought: the same that liveness will count.

    Attributes:
        aliases: What may share storage.
        boundary: Whether graph inputs and outputs count.
        alignment: Bytes that sizes are rounded up to.
    """

    aliases: tuple[AliasKind, ...] = ()
    boundary: Boundary = Boundary.INCLUDE
    alignment: int = DEFAULT_ALIGNMENT


@dataclass(frozen=True, slots=True)
class Order:
    """A topological order of a graph's operators.

    Attributes:
        operators: Their names.
        peak: Largest load over the steps, in bytes, as the memory model counts.
        lower_bound: Bytes that no order goes below, as far as is known.
    """

    operators: tuple[str, ...]
    peak: int
    lower_bound: int

    @property
    def optimal(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak == self.lower_bound


@runtime_checkable
class OrderStrategy(Protocol):
    """From a graph to an order: pure and deterministic.

    Attributes:
        name: As on the command line.
        complexity: Time in the number of operators n.
        source: The paper or system it comes from.
    """

    name: ClassVar[str]
    complexity: ClassVar[str]
    source: ClassVar[str]

    def __call__(self, graph: Graph, model: MemoryModel) -> Order:
        """Return an order of the graph's operators."""
        ...
