"""The interface of policies, which trade time for memory; `arenite.strategies` has them.

A policy is a frozen dataclass whose fields are its parameters. It is pure: the same program,
budget and costs give the same program.
"""

from typing import ClassVar, Protocol, runtime_checkable

from arenite.planner.programs.costs import Budget, Costs
from arenite.planner.programs.ordering import ShouldStop
from arenite.planner.programs.program import Program


@runtime_checkable
class Policy(Protocol):
    """Makes a program need fewer bytes at once, at a price in time.

    Attributes:
        name: Name on the command line.
        source: The paper or system it comes from.
        decides: Its decision, in a few words.
        quick: Whether it takes at most seconds for thousands of steps.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    decides: ClassVar[str]
    quick: ClassVar[bool]

    def why_unsupported(self, program: Program) -> str | None:
        """Return None, or the property of the program that the policy does not support."""
        ...

    def __call__(self, program: Program, budget: Budget, costs: Costs) -> Program:
        """Return a program with the same outputs that fits the budget.

        The bytes are those that `arenite.planner.rewrites.rescheduling_of` counts. A
        program that fits already is returned as it is, unless the budget is the least.

        Raises:
            UnsupportedProgramError: `why_unsupported` gives a reason.
            UnmetBudgetError: The policy does not get as low as that.
        """
        ...


def is_exact(policy: Policy) -> bool:
    """Tell whether the programs of a policy have the same outputs to the bit.

    A policy that rounds has an attribute `rounds`, and is used only if the user names it.
    """
    return not getattr(policy, "rounds", False)


def assumption_of(policy: Policy) -> str:
    """Return what predicted bytes and times assume that no program keeps; mostly empty.

    A policy with such an assumption states it in an attribute `assumes`.
    """
    return str(getattr(policy, "assumes", ""))


@runtime_checkable
class AnytimePolicy(Policy, Protocol):
    """A policy that searches, and keeps the best it has when it is stopped."""

    def search(
        self, program: Program, budget: Budget, costs: Costs, should_stop: ShouldStop
    ) -> Program:
        """Return the best program found when the search ends or `should_stop` stops it."""
        ...
