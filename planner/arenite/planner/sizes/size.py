"""Sizes: integers that carry expressions, their arithmetic, and their value at given sizes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from numbers import Integral
from typing import Any, Self

from arenite.planner.sizes.expressions import Expressed, Expression, Sizes


class Size(Expressed):
    """An integer that is an expression of dimensions, each of which has its highest value in it.

    It is equal to that integer, and hashed like it.

    Attributes:
        expression: How it depends on the dimensions; at least one is in it.
    """

    @classmethod
    def of(cls, expression: Expression, value: int) -> "int | Size":
        """Return an expression and its value at the highest sizes; a plain integer if constant."""
        constant = expression.as_constant
        if constant is not None:
            return constant
        made = cls(value)
        made.expression = expression
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self.expression, int(self))

    def __repr__(self) -> str:
        return f"{int(self)} ({self.expression})"

    __str__ = int.__repr__

    def __add__(self, other: int) -> int:
        return self._made(other, int.__add__, Expression.__add__)

    def __sub__(self, other: int) -> int:
        return self._made(other, int.__sub__, Expression.__sub__)

    def __mul__(self, other: int) -> int:
        return self._made(other, int.__mul__, Expression.__mul__)

    def __floordiv__(self, other: int) -> int:
        return self._made(other, int.__floordiv__, Expression.__floordiv__)

    def __mod__(self, other: int) -> int:
        return self._made(other, int.__mod__, Expression.__mod__)

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __rfloordiv__(self, other: int) -> int:
        return self._of_constant(other) // self

    def __rmod__(self, other: int) -> int:
        return self._of_constant(other) % self

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> int:
        return self * -1

    def __pos__(self) -> Self:
        return self

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __pow__(self, exponent: Any, modulo: int | None = None) -> Any:
        if modulo is None and isinstance(exponent, int) and 0 <= exponent <= 8:
            return math.prod([self] * exponent)
        return int.__pow__(self, exponent, modulo)

    def _made(
        self,
        other: int,
        of_values: Callable[[int, int], int],
        of_expressions: Callable[[Expression, Expression], Expression],
    ) -> int:
        if not isinstance(other, int) and isinstance(other, Integral):
            other = int(other)
        value = of_values(self, other)
        if not isinstance(value, int):  # NotImplemented, of a float or an array
            return value
        return type(self).of(of_expressions(self.expression, Expression.of(other)), value)

    @classmethod
    def _of_constant(cls, value: int) -> Self:
        made = cls(value)
        made.expression = Expression.constant(value)
        return made


def largest(one: int, other: int) -> int:
    """Return the larger of two sizes, whichever that is at each value of the dimensions."""
    return extreme(one, other, is_largest=True)


def smallest(one: int, other: int) -> int:
    """Return the smaller of two sizes, whichever that is at each value of the dimensions."""
    return extreme(one, other, is_largest=False)


def extreme(one: int, other: int, *, is_largest: bool) -> int:
    """Return the larger or the smaller of two sizes at each value of the dimensions."""
    value = max(one, other) if is_largest else min(one, other)
    if not isinstance(one, Size) and not isinstance(other, Size):
        return value
    value = int(value)
    kind = type(one) if isinstance(one, Size) else type(other)
    assert issubclass(kind, Size)
    first, second = sorted((Expression.of(one), Expression.of(other)), key=str)
    difference = (first - second).as_constant
    if difference is not None:
        chosen = first if (difference > 0) == is_largest else second
        return kind.of(chosen, value)
    return kind.of(Expression.extreme(first, second, is_largest=is_largest), value)


def at(value: int, sizes: Sizes) -> int:
    """Return what a size is where the dimensions have these values.

    Raises:
        KeyError: One of its dimensions has none.
    """
    return int(value.expression.evaluate(sizes)) if isinstance(value, Size) else int(value)


def with_sizes(value: Any, change: Callable[[Size], int]) -> Any:
    """Return tuples and dataclasses with each size in them changed."""
    if isinstance(value, Size):
        return change(value)
    if isinstance(value, tuple):
        return tuple(with_sizes(each, change) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        found = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        changed = {name: with_sizes(each, change) for name, each in found.items()}
        if all(changed[name] is each for name, each in found.items()):
            return value
        return replace(value, **changed)
    return value


def depends(value: int) -> bool:
    """Tell whether a size depends on a dimension."""
    return isinstance(value, Size)


def same(one: int, other: int) -> bool:
    """Tell whether two sizes are equal for all values of the dimensions, not the highest alone."""
    if one != other:
        return False
    if not isinstance(one, Size) and not isinstance(other, Size):
        return True
    return Expression.of(one) == Expression.of(other)


def same_lengths(one: Sequence[int], other: Sequence[int]) -> bool:
    """Tell whether two shapes are equal for all values of the dimensions."""
    return len(one) == len(other) and all(map(same, one, other))
