"""The interface of orders of steps; the searches are in `arenite.strategies.order`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import Rules


@dataclass(frozen=True, slots=True)
class Order:
    """A topological order of a program's steps.

    Attributes:
        peak: Largest load over the steps, in bytes, as the rules count it.
        lower_bound: Best known lower bound of the peak over all orders.
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
    """Finds an order of a program's steps; pure and deterministic.

    Searches ignore the sharing of slices and concat: that is decided for the order found, and
    can only lower its peak.

    Attributes:
        name: Name on the command line.
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
"""Called repeatedly during a search; returns True to stop it."""


@runtime_checkable
class AnytimeOrder(OrderStrategy, Protocol):
    """An order strategy that finds an order early and improves it over time."""

    def search(self, program: Program, rules: Rules, should_stop: ShouldStop) -> Order:
        """Return the best order found when the search ends or `should_stop` stops it.

        Its lower bound tells whether it is proved optimal.
        """
        ...


def never() -> bool:
    """Let a search run to its end."""
    return False


FindOrder: TypeAlias = Callable[[Program, Rules], Order]
"""An order strategy, or any function of the same type."""
