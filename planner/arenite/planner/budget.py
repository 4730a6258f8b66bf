"""How many bytes of the memory that steps compute in a program may have live at once."""

from dataclasses import dataclass
from typing import Self

from arenite.planner.units import parse_size


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes, a percentage of what the program has live without a policy, or as few as can be.

    Attributes:
        amount: Bytes, or a percentage if `is_percent`; None for as few as the policy reaches.
        is_percent: Whether the amount is a percentage.
    """

    amount: float | None = None
    is_percent: bool = False

    def __post_init__(self) -> None:
        if self.amount is not None and not 0 < self.amount < 2**63:
            raise ValueError(f"a budget of {self.amount} is not above 0")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a budget such as `4MiB` or `75%`.

        Raises:
            ValueError: It is neither a size nor a percentage above 0.
        """
        if not text.endswith("%"):
            return cls(parse_size(text))
        try:
            return cls(float(text[:-1]), is_percent=True)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a budget; write 4MiB or 75%") from error

    def __str__(self) -> str:
        """Return a text that `parse` reads, or `least`."""
        if self.amount is None:
            return "least"
        return f"{self.amount:.9g}%" if self.is_percent else str(int(self.amount))

    def bytes_of(self, peak: int) -> int | None:
        """Return the budget in bytes for a program with this peak; None for the least."""
        if self.amount is None:
            return None
        return int(self.amount / 100 * peak) if self.is_percent else int(self.amount)


LEAST = Budget()
"""As few bytes as the policy reaches."""
