"""Sizes that are expressions of named dimensions.

A model for a range of sizes is imported once. Each of its lengths is then a `Size`: an integer,
the length where all dimensions have their highest value, that carries an expression. Arithmetic
with integers keeps it, so code that computes with lengths need not know of it; a plain integer is
the ordinary case. `int(size)`, numpy and floating point drop the expression.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from arenite.planner.errors import SizeError

if TYPE_CHECKING:  # imported where it is used: the command line starts without it
    import numpy as np
    from numpy.typing import NDArray

MOST_POINTS = 1 << 20
"""Combinations of values that are tried one by one, where monotonicity proves nothing."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A named size with a range.

    Attributes:
        name: Its name in the model.
        low: Its lowest value, at least 0.
        high: Its highest value, `low` and a multiple of `step`.
        step: The difference of two neighbouring values.
        counted_by: The tensor whose step counts it in each run; empty if the caller sets it.

    Raises:
        SizeError: The range has no values, or a step that does not lead from one end to the other.
    """

    name: str
    low: int
    high: int
    step: int = 1
    counted_by: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.low < 0 or self.high < self.low:
            raise SizeError(f"{self}: a range needs 0 <= low <= high")
        if self.step < 1 or (self.high - self.low) % self.step:
            raise SizeError(f"{self}: the steps from {self.low} do not lead to {self.high}")

    @classmethod
    def parse(cls, name: str, text: str) -> "int | Dimension":
        """Return the dimension of a text such as `1..512` or `64..512:64`, the integer of `17`.

        A range of one value is that integer.

        Raises:
            SizeError: The text is neither, or the range is not valid.
        """
        found = _RANGE.fullmatch(text)
        if found is None:
            raise SizeError(
                f"{name}={text}: expected a length such as 17, or a range such as 1..512 or "
                "64..512:64"
            )
        low, high, step = (None if each is None else int(each) for each in found.groups())
        assert low is not None
        if high is None:
            return low
        made = cls(name, low, high, 1 if step is None else step)
        return low if low == high else made

    @property
    def text(self) -> str:
        """Its range as `parse` reads it."""
        return f"{self.low}..{self.high}" + (f":{self.step}" if self.step != 1 else "")

    def __str__(self) -> str:
        return f"{self.name}={self.text}"

    @property
    def size(self) -> "int | Size":
        """The dimension as a size, whose value is `high`."""
        if self.low == self.high:
            return self.high
        # Counted in steps, so that halves of an even length are lengths and no quotients.
        base = 0 if self.low % self.step == 0 else self.low
        steps = Expression.of_atom(_Steps(self.name, base, self.step))
        return Size.of(steps * self.step + base, self.high)

    @property
    def values(self) -> range:
        return range(self.low, self.high + 1, self.step)

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high and (value - self.low) % self.step == 0

    def __len__(self) -> int:
        return (self.high - self.low) // self.step + 1


_RANGE = re.compile(r"(\d{1,18})(?:\.\.(\d{1,18})(?::(\d{1,18}))?)?", re.ASCII)

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)

Length: TypeAlias = int | Dimension
"""A length of an input: one value, or a range."""


def read_lengths(stated: Mapping[str, "int | str | Dimension"]) -> dict[str, Length]:
    """Return lengths by name, given as numbers, as ranges, or as texts of them.

    A text may also be a sum of other dimensions that are given, and of numbers: `past + seq`.

    Raises:
        SizeError: A text is none of these.
    """
    sums = {name: text for name, text in stated.items() if isinstance(text, str) and "+" in text}
    found: dict[str, Length] = {
        name: Dimension.parse(name, length) if isinstance(length, str) else length
        for name, length in stated.items()
        if name not in sums
    }
    sizes = {
        name: each.size if isinstance(each, Dimension) else each for name, each in found.items()
    }
    for name, text in sums.items():
        parts = [part.strip() for part in text.split("+")]
        for part in parts:
            if part not in sizes and not _NUMBER.fullmatch(part):
                known = ", ".join(map(repr, sizes)) or "none"
                raise SizeError(
                    f"{name}={text}: {part!r} is neither a number nor a dimension that is given "
                    f"beside it; given: {known}"
                )
        found[name] = sum(sizes[part] if part in sizes else int(part) for part in parts)
    return found


def length_text(length: Length) -> int | str:
    """Return a length as `read_lengths` reads it.

    Raises:
        SizeError: It is an expression, and no sum of dimensions and a number.
    """
    if isinstance(length, Dimension):
        return length.text
    if not isinstance(length, Size):
        return length
    names: list[str] = []
    constant = 0
    for each in _summands(length.expression.tree):
        if isinstance(each, tuple):
            raise SizeError(f"{length.expression}: expected a sum of dimensions and a number")
        if isinstance(each, str):
            names.append(each)
        else:
            constant += each
    if constant < 0 or len(names) + bool(constant) < 2:
        raise SizeError(f"{length.expression}: expected a sum of dimensions and a number")
    return "+".join([*names, *([str(constant)] if constant else [])])


def _summands(tree: "Tree") -> "Iterator[Tree]":
    if isinstance(tree, tuple) and tree[0] == "+":
        for each in tree[1:]:
            yield from _summands(each)
    else:
        yield tree


Sizes: TypeAlias = Mapping[str, int]
"""Values of dimensions, by name."""

Tree: TypeAlias = int | str | tuple["Tree", ...]
"""An expression by its operations: an integer, the name of a dimension, or a sign and operands.

The signs are `+`, `*`, `max` and `min`, with two operands or more, and `/`, a quotient rounded
down, with two: `("*", 256, ("/", ("+", "seq", 15), 16))`.
"""

_Values: TypeAlias = "Mapping[str, int | NDArray[np.int64]]"


class _Labelled:
    """A factor of terms, ordered and hashed by its text, which is made once."""

    __slots__ = ()
    label: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.described())

    def described(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True)
class _Steps(_Labelled):
    """How many steps a dimension is above its base."""

    name: str
    base: int
    step: int
    label: str = field(init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.label)

    def described(self) -> str:
        above = f"({self.name} - {self.base})" if self.base else self.name
        return f"{above}/{self.step}" if self.step != 1 else above

    def evaluate(self, values: _Values) -> Any:
        return (values[self.name] - self.base) // self.step

    @property
    def times_step(self) -> Tree:
        """What the dimension is above its base."""
        return ("+", self.name, -self.base) if self.base else self.name

    @property
    def tree(self) -> Tree:
        return ("/", self.times_step, self.step) if self.step != 1 else self.times_step


@dataclass(frozen=True, slots=True)
class _Quotient(_Labelled):
    """A quotient, rounded down."""

    numerator: "Expression"
    denominator: "Expression"
    label: str = field(init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.label)

    def described(self) -> str:
        return f"floor(({self.numerator})/({self.denominator}))"

    def evaluate(self, values: _Values) -> Any:
        return self.numerator.evaluate(values) // self.denominator.evaluate(values)

    @property
    def tree(self) -> Tree:
        return "/", self.numerator.tree, self.denominator.tree


@dataclass(frozen=True, slots=True)
class _Extreme(_Labelled):
    """The larger or the smaller of two."""

    is_largest: bool
    one: "Expression"
    other: "Expression"
    label: str = field(init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.label)

    def described(self) -> str:
        return f"{'max' if self.is_largest else 'min'}({self.one}, {self.other})"

    def evaluate(self, values: _Values) -> Any:
        one, other = self.one.evaluate(values), self.other.evaluate(values)
        if isinstance(one, int) and isinstance(other, int):
            return max(one, other) if self.is_largest else min(one, other)
        import numpy as np

        return np.maximum(one, other) if self.is_largest else np.minimum(one, other)

    @property
    def tree(self) -> Tree:
        return "max" if self.is_largest else "min", self.one.tree, self.other.tree


_Atom: TypeAlias = _Steps | _Quotient | _Extreme
_Monomial: TypeAlias = tuple[_Atom, ...]
"""Factors, sorted by their text; a power is a factor that is repeated."""


@dataclass(frozen=True)
class Expression:
    """A polynomial of dimensions and rounded quotients, in one canonical form.

    Attributes:
        terms: Products and their coefficients, none of them 0, sorted by their text.
    """

    terms: tuple[tuple[_Monomial, int], ...] = ()

    @classmethod
    def of(cls, value: int) -> "Expression":
        """Return the expression of a size, a constant for a plain integer."""
        return value.expression if isinstance(value, Size) else cls.constant(value)

    @classmethod
    def constant(cls, value: int) -> "Expression":
        return cls((((), int(value)),) if value else ())

    @classmethod
    def of_atom(cls, atom: _Atom) -> "Expression":
        return cls((((atom,), 1),))

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of its dimensions."""
        found: set[str] = set()
        for atom in self.atoms():
            if isinstance(atom, _Steps):
                found.add(atom.name)
            else:
                for part in _parts(atom):
                    found |= part.names
        return frozenset(found)

    def atoms(self) -> Iterator[_Atom]:
        """Yield the factors of all terms."""
        for monomial, _ in self.terms:
            yield from monomial

    @property
    def as_constant(self) -> int | None:
        """Its value, if that does not depend on any dimension."""
        if not self.terms:
            return 0
        monomial, value = self.terms[0]
        return value if not monomial and len(self.terms) == 1 else None

    def evaluate(self, values: _Values) -> Any:
        """Return its value: of integers an integer, of arrays an array of int64."""
        total: Any = 0
        for monomial, factor in self.terms:
            product: Any = factor
            for atom in monomial:
                product = product * atom.evaluate(values)
            total = total + product
        return total

    @property
    def tree(self) -> Tree:
        """The expression by its operations; equal expressions have equal ones."""
        terms = [_term(monomial, factor) for monomial, factor in self.terms]
        return ("+", *terms) if len(terms) > 1 else terms[0] if terms else 0

    def __add__(self, other: "Expression | int") -> "Expression":
        found = dict(self.terms)
        for monomial, factor in _expression(other).terms:
            found[monomial] = found.get(monomial, 0) + factor
        return _canonical(found)

    def __mul__(self, other: "Expression | int") -> "Expression":
        found: dict[_Monomial, int] = {}
        for one, factor in self.terms:
            for more, other_factor in _expression(other).terms:
                product = tuple(sorted((*one, *more), key=str))
                found[product] = found.get(product, 0) + factor * other_factor
        return _canonical(found)

    def __sub__(self, other: "Expression | int") -> "Expression":
        return self + _expression(other) * -1

    def __floordiv__(self, other: "Expression | int") -> "Expression":
        divisor = _expression(other)
        number = divisor.as_constant
        if number and all(factor % number == 0 for _, factor in self.terms):
            return Expression(tuple((each, factor // number) for each, factor in self.terms))
        exact = self._divided(divisor) if not number else None
        if exact is not None:
            return exact
        if number is None or number <= 0:
            if number is not None and number < 0:
                return (self * -1) // -number
            return Expression.of_atom(_Quotient(self, divisor))
        whole = {m: f // number for m, f in self.terms if m and f % number == 0}
        rest = _canonical({m: f for m, f in self.terms if not m or f % number})
        constant = rest.as_constant
        if constant is not None:
            return _canonical(whole) + constant // number
        return _canonical(whole) + _quotient(rest, number)

    def __mod__(self, other: "Expression | int") -> "Expression":
        return self - (self // other) * other

    def _divided(self, divisor: "Expression") -> "Expression | None":
        """Return the quotient if the division leaves no remainder."""
        if not divisor.terms:
            raise ZeroDivisionError("division of a size by 0")
        lead, lead_factor = max(divisor.terms, key=_degree)
        rest, quotient = self, Expression()
        for _ in range(64):
            if not rest.terms:
                return quotient
            monomial, factor = max(rest.terms, key=_degree)
            left = _without(monomial, lead)
            if left is None or factor % lead_factor:
                return None
            part = Expression(((left, factor // lead_factor),))
            quotient += part
            rest -= part * divisor
        return None

    def __str__(self) -> str:
        return " + ".join(_text(monomial, factor) for monomial, factor in self.terms) or "0"

    def is_monotone(self, lowest: Sizes) -> bool:
        """Tell whether it is proved to grow with each dimension, and to start at 0 or more.

        Args:
            lowest: The lowest values of the dimensions.
        """
        grows = all(factor > 0 for monomial, factor in self.terms if monomial)
        return (
            grows
            and self.evaluate(lowest) >= 0
            and all(_is_monotone(atom, lowest) for atom in self.atoms())
        )


def _expression(value: Expression | int) -> Expression:
    return value if isinstance(value, Expression) else Expression.constant(value)


def _canonical(found: Mapping[_Monomial, int]) -> Expression:
    return Expression(
        tuple(sorted(((m, f) for m, f in found.items() if f), key=lambda term: _key(term[0])))
    )


def _key(monomial: _Monomial) -> tuple[int, str]:
    return -len(monomial), " ".join(map(str, monomial))


def _degree(term: tuple[_Monomial, int]) -> tuple[int, str]:
    """Return what terms of a division are ordered by: products keep this order."""
    return len(term[0]), " ".join(map(str, term[0]))


def _without(monomial: _Monomial, removed: _Monomial) -> _Monomial | None:
    left = list(monomial)
    for atom in removed:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _quotient(numerator: Expression, denominator: int) -> Expression:
    """Return a rounded quotient; one of a quotient is a quotient of the product.

    In its one form the first term is above 0 and the constant is below the denominator.
    """
    constant = dict(numerator.terms).get((), 0)
    inner = [term for term in numerator.terms if term[0]]
    if inner[0][1] < 0:  # as sizes are rounded up: floor(-p / d) = -floor((p + d - 1) / d)
        return _quotient(numerator * -1 + (denominator - 1), denominator) * -1
    if not 0 <= constant < denominator:
        return (numerator - constant + constant % denominator) // denominator + (
            constant // denominator
        )
    if len(inner) == 1 and inner[0][1] == 1 and len(inner[0][0]) == 1:
        (atom,) = inner[0][0]
        if isinstance(atom, _Quotient):
            divisor = atom.denominator.as_constant
            if divisor is not None and divisor > 0:
                return (atom.numerator + constant * divisor) // (divisor * denominator)
    common = math.gcd(denominator, *(factor for monomial, factor in inner))
    if common > 1:  # floor((c p + k) / (c d)) = floor((p + floor(k / c)) / d)
        parts = {monomial: factor // common for monomial, factor in inner}
        return (_canonical(parts) + constant // common) // (denominator // common)
    return Expression.of_atom(_Quotient(numerator, Expression.constant(denominator)))


def _parts(atom: _Atom) -> tuple[Expression, ...]:
    if isinstance(atom, _Quotient):
        return atom.numerator, atom.denominator
    return (atom.one, atom.other) if isinstance(atom, _Extreme) else ()


def _is_monotone(atom: _Atom, lowest: Sizes) -> bool:
    if isinstance(atom, _Quotient):
        divisor = atom.denominator.as_constant
        return divisor is not None and divisor > 0 and atom.numerator.is_monotone(lowest)
    return all(part.is_monotone(lowest) for part in _parts(atom))


def _term(monomial: _Monomial, factor: int) -> Tree:
    parts: list[Tree] = []
    for atom in monomial:
        # 64 times the steps of 32 is 2 times what the dimension is above its base.
        if isinstance(atom, _Steps) and factor % atom.step == 0:
            factor //= atom.step
            parts.append(atom.times_step)
        else:
            parts.append(atom.tree)
    if factor != 1 or not parts:
        parts.insert(0, factor)
    return ("*", *parts) if len(parts) > 1 else parts[0]


def _text(monomial: _Monomial, factor: int) -> str:
    parts = [str(atom) for atom in monomial]
    return "*".join(parts if factor == 1 and parts else [str(factor), *parts])


class Size(int):
    """An integer that is an expression of dimensions, each of which has its highest value in it.

    It is equal to that integer, and hashed like it.

    Attributes:
        expression: How it depends on the dimensions; at least one is in it.
    """

    expression: Expression

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
    return _extreme(one, other, is_largest=True)


def smallest(one: int, other: int) -> int:
    """Return the smaller of two sizes, whichever that is at each value of the dimensions."""
    return _extreme(one, other, is_largest=False)


def _extreme(one: int, other: int, *, is_largest: bool) -> int:
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
    return kind.of(Expression.of_atom(_Extreme(is_largest, first, second)), value)


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


def highest_sizes(dimensions: Iterable[Dimension]) -> dict[str, int]:
    return {each.name: each.high for each in dimensions}


def lowest_sizes(dimensions: Iterable[Dimension]) -> dict[str, int]:
    return {each.name: each.low for each in dimensions}


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
    ends = [_ends(each, dimensions) for each in _apart(value.expression)]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _apart(expression: Expression) -> Iterator[Expression]:
    """Yield the parts of a sum that share no dimension."""
    parts: list[tuple[frozenset[str], dict[_Monomial, int]]] = []
    for monomial, factor in expression.terms:
        names, terms = Expression(((monomial, factor),)).names, {monomial: factor}
        for part in [each for each in parts if each[0] & names]:
            parts.remove(part)
            names, terms = names | part[0], {**part[1], **terms}
        parts.append((names, terms))
    yield from (_canonical(terms) for _, terms in parts)


def _ends(expression: Expression, dimensions: Sequence[Dimension]) -> tuple[int, int]:
    used = [each for each in dimensions if each.name in expression.names]
    lowest, highest = lowest_sizes(used), highest_sizes(used)
    if expression.is_monotone(lowest):
        return expression.evaluate(lowest), expression.evaluate(highest)
    if (expression * -1).is_monotone(lowest):
        return expression.evaluate(highest), expression.evaluate(lowest)
    found = expression.evaluate(every_value(used))
    return int(found.min()), int(found.max())


def every_value(dimensions: Sequence[Dimension]) -> "dict[str, NDArray[np.int64]]":
    """Return all combinations of values, as one array for each dimension.

    Raises:
        SizeError: There are more than `MOST_POINTS`.
    """
    if math.prod(map(len, dimensions)) > MOST_POINTS:
        raise SizeError(
            f"{', '.join(map(str, dimensions))}: too many sizes to prove a plan for, at most "
            f"{MOST_POINTS:,} of them; give a larger step or a smaller range"
        )
    import numpy as np

    axes = [np.arange(each.low, each.high + 1, each.step, dtype=np.int64) for each in dimensions]
    grids = np.meshgrid(*axes, indexing="ij")
    return {each.name: grid.ravel() for each, grid in zip(dimensions, grids, strict=True)}


def require_inside(sizes: Sizes, dimensions: Iterable[Dimension]) -> None:
    """Check that there is a value for each dimension, inside its range.

    Raises:
        SizeError: There is not.
    """
    for each in dimensions:
        value = sizes.get(each.name)
        if value is None or value not in each:
            raise SizeError(f"dimension {each.name!r} is {value}; its range is {each}")


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
        return _extreme(one, other, is_largest=is_largest)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
