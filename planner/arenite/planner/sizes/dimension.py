"""Dimensions: named sizes with a range, and the texts that state them."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from arenite.planner.errors import SizeError
from arenite.planner.sizes.expressions import Expression, Sizes, Tree
from arenite.planner.sizes.size import Size

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
        grows: Whether it counts rows that runs add to states: it begins at 0.
        growth: How much it grows in a run, once that is known.

    Raises:
        SizeError: The range has no values, a step that does not lead from one end to the other, or
            grows and does not begin at 0 in steps of 1.
    """

    name: str
    low: int
    high: int
    step: int = 1
    counted_by: str = field(default="", compare=False)
    grows: bool = False
    growth: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if self.low < 0 or self.high < self.low:
            raise SizeError(f"{self}: a range needs 0 <= low <= high")
        if self.step < 1 or (self.high - self.low) % self.step:
            raise SizeError(f"{self}: the steps from {self.low} do not lead to {self.high}")
        if self.grows and (self.low, self.step) != (0, 1):
            raise SizeError(f"{self}: what grows begins at 0, in steps of 1, such as 0..255+")

    @classmethod
    def parse(cls, name: str, text: str) -> "int | Dimension":
        """Return the dimension of a text such as `1..512` or `64..512:64`, the integer of `17`.

        A range of one value is that integer. The dimension of `0..255+` grows.

        Raises:
            SizeError: The text is neither, or the range is not valid.
        """
        found = _RANGE.fullmatch(text)
        if found is None:
            raise SizeError(
                f"{name}={text}: expected a length such as 17, or a range such as 1..512, "
                "64..512:64, or 0..511+ of a cache"
            )
        *numbers, plus = found.groups()
        low, high, step = (None if each is None else int(each) for each in numbers)
        assert low is not None
        if high is None:
            return low
        made = cls(name, low, high, 1 if step is None else step, grows=plus is not None)
        return low if low == high else made

    @property
    def text(self) -> str:
        """Its range as `parse` reads it."""
        step = f":{self.step}" if self.step != 1 else ""
        return f"{self.low}..{self.high}{step}{'+' if self.grows else ''}"

    def __str__(self) -> str:
        return f"{self.name}={self.text}"

    @property
    def size(self) -> "int | Size":
        """The dimension as a size, whose value is `high`."""
        if self.low == self.high:
            return self.high
        # Counted in steps, so that halves of an even length are lengths and no quotients.
        base = 0 if self.low % self.step == 0 else self.low
        steps = Expression.steps_of(self.name, base, self.step)
        return Size.of(steps * self.step + base, self.high)

    @property
    def values(self) -> range:
        """All its values, ascending."""
        return range(self.low, self.high + 1, self.step)

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high and (value - self.low) % self.step == 0

    def __len__(self) -> int:
        return (self.high - self.low) // self.step + 1


_RANGE = re.compile(r"(\d{1,18})(?:\.\.(\d{1,18})(?::(\d{1,18}))?(\+)?)?", re.ASCII)

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)

Length: TypeAlias = int | Dimension
"""A length of an input: one value, or a range."""


def read_lengths(stated: Mapping[str, "int | str | Dimension"]) -> dict[str, Length]:
    """Return lengths by name, given as numbers, as ranges, or as texts of them.

    A text may also be another dimension that is given, or a sum of these and of numbers:
    `past + seq`.

    Raises:
        SizeError: A text is none of these.
    """
    sums = {
        name: text
        for name, text in stated.items()
        if isinstance(text, str) and ("+" in text or text in stated) and not _RANGE.fullmatch(text)
    }
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
        SizeError: It is an expression, and neither a dimension nor a sum of some and a number.
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
    if constant < 0 or not names:
        raise SizeError(f"{length.expression}: expected a sum of dimensions and a number")
    return "+".join([*names, *([str(constant)] if constant else [])])


def _summands(tree: "Tree") -> "Iterator[Tree]":
    if isinstance(tree, tuple) and tree[0] == "+":
        for each in tree[1:]:
            yield from _summands(each)
    else:
        yield tree


def highest_sizes(dimensions: Iterable[Dimension]) -> dict[str, int]:
    """Return the highest value of each dimension, by name."""
    return {each.name: each.high for each in dimensions}


def first_sizes(dimensions: Iterable[Dimension]) -> dict[str, int]:
    """Return the sizes at which a session begins: the highest, and no rows of what grows."""
    return {each.name: 0 if each.grows else each.high for each in dimensions}


def lowest_sizes(dimensions: Iterable[Dimension]) -> dict[str, int]:
    """Return the lowest value of each dimension, by name."""
    return {each.name: each.low for each in dimensions}


def require_inside(sizes: Sizes, dimensions: Iterable[Dimension]) -> None:
    """Check that there is a value for each dimension, inside its range.

    Raises:
        SizeError: There is not.
    """
    for each in dimensions:
        value = sizes.get(each.name)
        if value is None or value not in each:
            raise SizeError(f"dimension {each.name!r} is {value}; its range is {each}")


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
