"""What a strategy for tests says of itself, so that each need only say what it does."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.placement.problem import Problem
from arenite.planner.placement.strategy import StrategyKind


@dataclass(frozen=True)
class StubStrategy:
    """Places any problem at offsets; of a name and a call of its own."""

    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "unknown"
    source: ClassVar[str] = "test"
    quick: ClassVar[bool] = True

    def why_unsupported(self, _problem: Problem) -> str | None:
        return None
