"""How many bytes of weights may be resident while a program runs."""

from dataclasses import dataclass
from typing import Self

from arenite.planner.errors import AreniteError
from arenite.planner.program import Program
from arenite.planner.units import parse_size

IN_TURN = "in-turn"
"""What follows a budget whose weights are loaded by the thread that computes."""


class WeightBudgetError(AreniteError):
    """The weights do not fit the budget even with everything streamed that can be.

    Attributes:
        budget: The budget, in bytes.
        least: The smallest budget that suffices, in bytes.
    """

    def __init__(self, budget: int, least: int) -> None:
        super().__init__(
            f"the weights need at least {least} B, the budget is {budget} B; raise --weight-budget"
        )
        self.budget = budget
        self.least = least


@dataclass(frozen=True, slots=True)
class WeightBudget:
    """Weights that may be resident: a number of bytes, or a percentage of all weights.

    Attributes:
        amount: Bytes, or a percentage if `is_percent`.
        is_percent: Whether the amount is a percentage.
        in_turn: Whether the others are loaded by the thread that computes, one window at a time;
            otherwise they are beside the computation, into a second window.
    """

    amount: float
    is_percent: bool = False
    in_turn: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a budget such as `4MiB`, `25%` or `25%,in-turn`.

        Raises:
            ValueError: It is neither a size above 0 nor above 0 % and at most 100 %, or something
                else than how to load follows.
        """
        amount, comma, how = text.partition(",")
        if comma and how != IN_TURN:
            raise ValueError(f"{text!r}: {how!r} follows, where {IN_TURN!r} may")
        if not amount.endswith("%"):
            size = parse_size(amount)
            if size < 1:
                raise ValueError(f"{text!r} is not above 0")
            return cls(size, in_turn=bool(comma))
        percent = float(amount[:-1])
        if not 0 < percent <= 100:
            raise ValueError(f"{text!r} is not above 0% and at most 100%")
        return cls(percent, is_percent=True, in_turn=bool(comma))

    def __str__(self) -> str:
        """Return a text that `parse` reads."""
        amount = f"{self.amount:.9g}%" if self.is_percent else str(int(self.amount))
        return f"{amount},{IN_TURN}" if self.in_turn else amount

    def bytes_of(self, program: Program) -> int:
        """Return the budget in bytes for a program."""
        if not self.is_percent:
            return int(self.amount)
        return int(self.amount / 100 * weight_bytes(program))


def weight_bytes(program: Program) -> int:
    """Return the bytes of all weights, decoded."""
    return sum(array.nbytes for array in program.constants.values())
