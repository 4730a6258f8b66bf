"""What holds for sizes at every value of their dimensions: bounds, signs, the larger of two."""

from collections.abc import Sequence

from arenite.planner.errors import SizeError
from arenite.planner.sizes.dimension import Dimension, every_value, highest_sizes, lowest_sizes
from arenite.planner.sizes.expressions import Expression, Sizes
from arenite.planner.sizes.size import Size, at, extreme


def bounds(value: int, dimensions: Sequence[Dimension]) -> tuple[int, int]:
    """Return the lowest and the highest that a size is for any values of the dimensions: a proof.

    Terms that share no dimension are proved apart. Where they grow with each dimension, or shrink
    with each, the ends of their ranges prove it, and otherwise all their values, one by one.

    Cost: O(terms), or O(terms x values of the dimensions of those that share some).

    Raises:
        SizeError: It neither grows nor shrinks with each dimension, and they have too many values
            to try.
    """
    if not isinstance(value, Size):
        return value, value
    ends = [_ends(each, dimensions) for each in value.expression.apart()]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _ends(expression: Expression, dimensions: Sequence[Dimension]) -> tuple[int, int]:
    used = [each for each in dimensions if each.name in expression.names]
    lowest, highest = lowest_sizes(used), highest_sizes(used)
    if expression.is_monotone(lowest):
        return expression.evaluate(lowest), expression.evaluate(highest)
    if (expression * -1).is_monotone(lowest):
        return expression.evaluate(highest), expression.evaluate(lowest)
    found = expression.evaluate(every_value(used))
    return int(found.min()), int(found.max())


class Ranges:
    """What holds for sizes at every value of some dimensions.

    Attributes:
        points: Values to test at: the lowest, and some between.

    Args:
        dimensions: Those that the sizes depend on.
    """

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self.dimensions = tuple(dimensions)
        # Between, each at another part of its range, an odd number of steps from its start: equal
        # ranges have different values, and a quotient of the lengths is no integer by chance.
        parts, count = enumerate(self.dimensions, 1), len(self.dimensions) + 1
        between = {
            each.name: each.values[min(len(each) - 1, len(each) * part // count - 1 | 1)]
            for part, each in parts
        }
        self.points: tuple[Sizes, ...] = (lowest_sizes(dimensions), between)
        if len(self.dimensions) > 1:  # in turn the highest and the lowest
            turns = {
                each.name: each.low if place % 2 else each.high
                for place, each in enumerate(self.dimensions)
            }
            self.points = (*self.points, turns)

    def bounds(self, value: int) -> tuple[int, int]:
        """Return the lowest and the highest that a size is."""
        return bounds(value, self.dimensions)

    def plain(self, value: int) -> int:
        """Return a size that is the same at all values as a plain integer."""
        if not isinstance(value, Size) or any(at(value, each) != value for each in self.points):
            return value
        low, high = self.bounds(value)
        return low if low == high else value

    def sign(self, value: int) -> int | None:
        """Return the sign that a size has at all values, None if it differs among them."""
        if not isinstance(value, Size):
            return _sign(value)
        here = _sign(int(value))
        if any(_sign(at(value, point)) != here for point in self.points):
            return None
        low, high = self.bounds(value)
        return _sign(low) if _sign(low) == _sign(high) else None

    def same(self, one: int, other: int) -> bool:
        """Tell whether two sizes are equal at all values."""
        return int(one) == int(other) and self.sign(one - other) == 0

    def never_exceeds(self, one: int, other: int) -> bool:
        """Tell whether a size is proved to be at most another at all values."""
        rest = other - one
        if not isinstance(rest, Size):
            return rest >= 0
        if int(rest) < 0 or any(at(rest, point) < 0 for point in self.points):
            return False
        try:
            return self.bounds(rest)[0] >= 0
        except SizeError:
            return False

    def largest(self, one: int, other: int) -> int:
        """Return the larger of two sizes, an expression of both only where it must be."""
        return self._chosen(one, other, is_largest=True)

    def smallest(self, one: int, other: int) -> int:
        """Return the smaller of two sizes, an expression of both only where it must be."""
        return self._chosen(one, other, is_largest=False)

    def _chosen(self, one: int, other: int, *, is_largest: bool) -> int:
        for larger, smaller in ((one, other), (other, one)):
            try:
                # First by ranges: a number that stands for no limit overflows in an expression.
                if (
                    self.bounds(larger)[0] >= self.bounds(smaller)[1]
                    or self.bounds(larger - smaller)[0] >= 0
                ):
                    return larger if is_largest else smaller
            except SizeError:  # too many values to compare
                continue
        return extreme(one, other, is_largest=is_largest)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
