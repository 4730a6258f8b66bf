"""What the strategies that place records in one pass have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from arenite.planner.plan import ParameterValue, Plan
from arenite.planner.problem import Problem
from arenite.planner.strategy import StrategyKind
from arenite.strategies.gap_search import Fit, place_in_order


class OnePass(ABC):
    """Place every record once, in an order fixed beforehand; a subclass defines the order.

    Records with a fixed offset are respected, so every problem is supported.
    """

    name: ClassVar[str]
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "O(n (log n + k log k)), k records met by one"
    source: ClassVar[str]
    quick: ClassVar[bool] = True
    fit: ClassVar[Fit] = Fit.BEST

    @abstractmethod
    def order(self, problem: Problem) -> Sequence[int]:
        """Return the records' indices in the order they are placed."""

    def why_unsupported(self, _problem: Problem) -> str | None:
        """Return None: any problem."""
        return None

    def __call__(self, problem: Problem) -> Plan:
        """Return the plan of the one pass."""
        offsets = place_in_order(problem, self.order(problem), self.fit)
        return Plan.of(problem, offsets, self.name, self.parameters())

    def parameters(self) -> Mapping[str, ParameterValue]:
        """Return the parameters that the plan states."""
        return {}
