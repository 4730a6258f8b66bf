"""Medians with their range, and ratios of paired runs."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Repeated measurements of one quantity.

    Attributes:
        median: Of all.
        least: The smallest.
        most: The largest.
        count: How many there are.
    """

    median: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Return the spread of at least one value.

        Raises:
            ValueError: There is none.
        """
        found = sorted(values)
        if not found:
            raise ValueError("a spread needs at least one measurement")
        return cls(statistics.median(found), found[0], found[-1], len(found))

    def text(self, form: str = ".3f") -> str:
        """Return the median, and the range in brackets where there is more than one value."""
        if self.count == 1:
            return f"{self.median:{form}}"
        return f"{self.median:{form}} ({self.least:{form}}-{self.most:{form}})"


def paired_ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return the spread over the rounds of ours to theirs; below 1 ours is smaller.

    A ratio within a round is blind to what slows a whole round down, a busy machine say.

    Raises:
        ValueError: There are not as many of each, or none.
    """
    return Spread.of(own / other for own, other in zip(ours, theirs, strict=True))
