"""What an order of steps is. The ways to find one live in `arenite.strategies.order`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from arenite.planner.program import Program
from arenite.planner.rules import Rules


@dataclass(frozen=True, slots=True)
class Order:
    """A topological order of a program's steps.

    Attributes:
        steps: Their names.
        peak: Largest load over the steps, in bytes, as the rules count.
        lower_bound: Bytes that no order goes below, as far as is known.
    """

    steps: tuple[str, ...]
    peak: int
    lower_bound: int

    @property
    def optimal(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak == self.lower_bound


@runtime_checkable
class OrderStrategy(Protocol):
    """From a program to an order of its steps: pure and deterministic.

    Searches leave slices and concat out: those are decided for the order found, and only lower
    its peak.

    Attributes:
        name: As on the command line.
        complexity: Time in the number of steps n.
        source: The paper or system it comes from.
    """

    name: ClassVar[str]
    complexity: ClassVar[str]
    source: ClassVar[str]

    def __call__(self, program: Program, rules: Rules) -> Order:
        """Return an order of the program's steps."""
        ...


ShouldStop: TypeAlias = Callable[[], bool]
"""Asked again and again while an order is sought; returns True to stop the search."""


@runtime_checkable
class AnytimeOrder(OrderStrategy, Protocol):
    """An order strategy that has an order early and a better one later."""

    def search(self, program: Program, rules: Rules, should_stop: ShouldStop) -> Order:
        """Return the best order found when the search ends or `should_stop` says so.

        Its lower bound tells whether it is proved the best.
        """
        ...


def never() -> bool:
    """Let a search run to its end."""
    return False


FindOrder: TypeAlias = Callable[[Program, Rules], Order]
"""An order strategy, or anything that does the same."""
