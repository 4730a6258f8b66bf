"""What a strategy is. The strategies themselves live in `arenite.strategies`.

A strategy is a frozen dataclass whose fields are its parameters and seed. It is pure:
the same problem gives the same plan, byte for byte.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem


class StrategyKind(StrEnum):
    """What a strategy decides."""

    OFFSETS = "offsets"
    """An offset for each record."""
    OBJECTS = "objects"
    """A whole buffer for each record, the buffers then laid end to end."""


@runtime_checkable
class Strategy(Protocol):
    """From a problem to a plan.

    Attributes:
        name: As on the command line.
        kind: What it decides.
        complexity: Time in the number of records n.
        source: The paper or system it comes from.
        quick: Whether `best` runs it: no search, and milliseconds on a network.
    """

    name: ClassVar[str]
    kind: ClassVar[StrategyKind]
    complexity: ClassVar[str]
    source: ClassVar[str]
    quick: ClassVar[bool]

    def supports(self, problem: Problem) -> str | None:
        """Return None, or what in the problem the strategy cannot handle."""
        ...

    def __call__(self, problem: Problem) -> Plan:
        """Return a plan.

        Raises:
            UnsupportedProblemError: `supports` gives a reason.
        """
        ...


Watch: TypeAlias = Callable[[Plan | None, int], bool]
"""Told the best plan and the best lower bound so far; returns True to stop the search."""


@runtime_checkable
class Anytime(Strategy, Protocol):
    """A strategy that has a plan early and a better one later."""

    def search(self, problem: Problem, watch: Watch) -> Plan:
        """Return the best plan found when the search ends or `watch` stops it."""
        ...


def silent(_best: Plan | None, _lower_bound: int) -> bool:
    """Watch nothing and never stop."""
    return False


def run(strategy: Strategy, problem: Problem, watch: Watch = silent) -> Plan:
    """Return the strategy's plan, letting `watch` see and stop it where it can be.

    Raises:
        UnsupportedProblemError: The strategy does not handle this problem.
    """
    reason = strategy.supports(problem)
    if reason is not None:
        raise UnsupportedProblemError(strategy.name, reason)
    if isinstance(strategy, Anytime):
        return strategy.search(problem, watch)
    return strategy(problem)
