"""How many bytes of weights may be resident while a program runs."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from arenite.planner.errors import AreniteError
from arenite.planner.program import Program
from arenite.planner.units import parse_size


class Loading(StrEnum):
    """Who loads the weights that are not resident."""

    BESIDE = "beside"
    """A thread of its own, into a second window, beside the computation."""
    IN_TURN = "in-turn"
    """The thread that computes, one window at a time."""


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
        loading: Who loads the others; None for what is quicker for windows of their size.
    """

    amount: float
    is_percent: bool = False
    loading: Loading | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a budget such as `4MiB`, `25%`, `25%,in-turn` or `4MiB,beside`.

        Raises:
            ValueError: It is neither a size above 0 nor above 0 % and at most 100 %, or something
                else than how to load follows.
        """
        amount, comma, how = text.partition(",")
        if comma and how not in {*Loading}:
            ways = " or ".join(repr(str(each)) for each in Loading)
            raise ValueError(f"{text!r}: {how!r} follows, where {ways} may")
        loading = Loading(how) if comma else None
        if not amount.endswith("%"):
            size = parse_size(amount)
            if size < 1:
                raise ValueError(f"{text!r} is not above 0")
            return cls(size, loading=loading)
        percent = float(amount[:-1])
        if not 0 < percent <= 100:
            raise ValueError(f"{text!r} is not above 0% and at most 100%")
        return cls(percent, is_percent=True, loading=loading)

    def __str__(self) -> str:
        """Return a text that `parse` reads."""
        amount = f"{self.amount:.9g}%" if self.is_percent else str(int(self.amount))
        return amount if self.loading is None else f"{amount},{self.loading}"

    def bytes_of(self, program: Program) -> int:
        """Return the budget in bytes for a program."""
        if not self.is_percent:
            return int(self.amount)
        return int(self.amount / 100 * weight_bytes(program))


def weight_bytes(program: Program) -> int:
    """Return the bytes of all weights, decoded."""
    return sum(array.nbytes for array in program.constants.values())
