"""Expressions of named dimensions: polynomials of them and of quotients that are rounded down."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # imported where it is used: the command line starts without it
    import numpy as np
    from numpy.typing import NDArray

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
        return value.expression if isinstance(value, Expressed) else cls.constant(value)

    @classmethod
    def constant(cls, value: int) -> "Expression":
        """Return the expression that is one number at all sizes."""
        return cls((((), int(value)),) if value else ())

    @classmethod
    def of_atom(cls, atom: _Atom) -> "Expression":
        """Return the expression that is one factor."""
        return cls((((atom,), 1),))

    @classmethod
    def steps_of(cls, name: str, base: int, step: int) -> "Expression":
        """Return how many steps a dimension is above its base."""
        return cls.of_atom(_Steps(name, base, step))

    @classmethod
    def extreme(cls, one: "Expression", other: "Expression", *, is_largest: bool) -> "Expression":
        """Return the larger or the smaller of two."""
        return cls.of_atom(_Extreme(is_largest, one, other))

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

    def apart(self) -> "Iterator[Expression]":
        """Yield the parts of a sum that share no dimension."""
        parts: list[tuple[frozenset[str], dict[_Monomial, int]]] = []
        for monomial, factor in self.terms:
            names, terms = Expression(((monomial, factor),)).names, {monomial: factor}
            for part in [each for each in parts if each[0] & names]:
                parts.remove(part)
                names, terms = names | part[0], {**part[1], **terms}
            parts.append((names, terms))
        yield from (_canonical(terms) for _, terms in parts)

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


class Expressed(int):
    """An integer that carries an expression."""

    expression: Expression
