"""Sizes in C: what a program for a range of sizes states as expressions of its dimensions.

The writers of steps print lengths as they do integers. In such a program each is a `Symbol`, which
prints a mark of its expression; `SizeVariables` then puts a C variable in the place of each mark.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import numpy as np

from arenite.planner import Program, Step
from arenite.planner.errors import SizeError
from arenite.planner.sizes import (
    Dimension,
    Size,
    Sizes,
    Tree,
    at,
    bounds,
    largest,
    smallest,
    with_sizes,
)
from arenite.runtime.cexport.base.errors import NotWrittenError

_MARK = re.compile("\x02(.*?)\x03")
_INTEGERS: Final = -(2**31) + 1, 2**31 - 1
_NUM_RANDOM_POINTS: Final = 4
_MOST_ALONE: Final = 16
"""Dimensions of which each is low alone at some point."""


class Symbol(Size):
    """A size whose text is a mark of its expression."""

    def __str__(self) -> str:
        return f"\x02{json.dumps(self.expression.tree)}\x03"


def has_symbols(text: str) -> bool:
    """Tell whether a text has marks of sizes."""
    return "\x02" in text


def without_symbols(text: str) -> str:
    """Return a text with a short name in the place of each size, to measure its width."""
    return _MARK.sub("s00", text)


def symbolic(program: Program) -> Program:
    """Return a program whose sizes are symbols."""
    return _mapped(program, lambda size: Symbol.of(size.expression, int(size)))


def program_at(program: Program, sizes: Sizes) -> Program:
    """Return a program at one size; it still states its dimensions."""
    return _mapped(program, lambda size: at(size, sizes))


def value_at(value: Any, sizes: Sizes) -> Any:
    """Return a tuple or a dataclass with all its sizes as integers."""
    return with_sizes(value, lambda size: at(size, sizes))


def text_at(text: str, sizes: Sizes) -> str:
    """Return a text with its sizes as numbers."""
    return _MARK.sub(lambda found: str(_value(json.loads(found[1]), sizes)), text)


def points(dimensions: Sequence[Dimension]) -> list[Sizes]:
    """Return sizes to check a program at: the lowest ones, those next to ends, and random ones."""
    random = np.random.default_rng(0)
    places = [[0] * len(dimensions), [1] * len(dimensions)]
    places += [
        [2 if each is low else len(each) - 2 for each in dimensions]
        for low in dimensions[:_MOST_ALONE]
    ]
    places += [
        [int(random.integers(len(each))) for each in dimensions] for _ in range(_NUM_RANDOM_POINTS)
    ]
    found = [
        {each.name: _in_range(each, index) for each, index in zip(dimensions, place, strict=True)}
        for place in places
    ]
    return [point for index, point in enumerate(found) if point not in found[:index]]


def has_trivial_lengths(program: Program, step: Step, sizes: Sizes) -> bool:
    """Tell whether a size that a step depends on is 1 or 0.

    Source for it alone has no loop along that axis, or does nothing.
    """
    found: list[Size] = []

    def kept(size: Size) -> int:
        found.append(size)
        return size

    named = [program.tensors[name] for name in (*step.reads, *step.writes)]
    with_sizes((step.operator, *(each.shape for each in named)), kept)
    return any(at(each, sizes) in (0, 1) for each in found)


def _in_range(dimension: Dimension, index: int) -> int:
    return dimension.low + min(max(index, 0), len(dimension) - 1) * dimension.step


def _mapped(program: Program, change: Callable[[Size], int]) -> Program:
    tensors = {
        name: replace(
            tensor,
            shape=with_sizes(tensor.shape, change),
            alias=None if tensor.alias is None else with_sizes(tensor.alias, change),
        )
        for name, tensor in program.tensors.items()
    }
    steps = tuple(
        replace(step, operator=with_sizes(step.operator, change)) for step in program.steps
    )
    return replace(program, tensors=tensors, steps=steps)


def _value(tree: Any, sizes: Sizes) -> int:
    """Return the value of an expression, with sizes in the place of integers if they are sizes."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return sizes[tree]
    sign, *parts = tree
    return reduce(_OPERATIONS[sign], (_value(each, sizes) for each in parts))


def _names(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif not isinstance(tree, int):
        for each in tree[1:]:
            yield from _names(each)


_OPERATIONS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": lambda one, other: one + other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one // other,
    "max": largest,
    "min": smallest,
}


class SizeVariables:
    """The variables of a C function that hold the sizes in it.

    Args:
        dimensions: The dimensions.
        names: Name of each of them in the function.
        uncounted: Those that no step has counted yet.

    Attributes:
        lines: Definitions of the variables that depend on no dimension that a step counts.
        uncounted: Those that no step has counted yet.
    """

    def __init__(
        self, dimensions: Sequence[Dimension], names: Sequence[str], uncounted: Iterable[str] = ()
    ) -> None:
        self.lines: list[str] = []
        self.uncounted = set(uncounted)
        self._counted = frozenset(self.uncounted)
        self._late: list[str] = []
        self._dimensions = dimensions
        self._names = {each.name: name for each, name in zip(dimensions, names, strict=True)}
        self._sizes = {each.name: each.size for each in dimensions}
        self._known: dict[str, str] = {}
        self._marks: dict[str, str] = {}

    def filled(self, text: str) -> str:
        """Return a text with the variable of each size in its place.

        Raises:
            NotWrittenError: A size is beyond 32 bits, or that cannot be proved.
        """
        return _MARK.sub(lambda found: self._filled(found[1]), text)

    def of(self, size: int) -> str:
        """Return the variable of a size, or the integer.

        Raises:
            NotWrittenError: As by `filled`.
        """
        return self._variable(size.expression.tree) if isinstance(size, Size) else str(size)

    def late(self) -> list[str]:
        """Return the definitions that depend on what a step has counted, each once."""
        found, self._late = self._late, []
        return found

    def check(self, size: int) -> None:
        """Check that 32 bits hold a size.

        Raises:
            NotWrittenError: They do not, or that cannot be proved.
        """
        if isinstance(size, Size):
            self._bounds(size.expression.tree)

    def _filled(self, mark: str) -> str:
        if mark not in self._marks:
            self._marks[mark] = self._variable(json.loads(mark))
        return self._marks[mark]

    def _variable(self, tree: Tree) -> str:
        text = self._text(tree)
        if isinstance(tree, int | str):
            return text
        if text not in self._known:
            taken = (*self._names.values(), *self._known.values())
            names = (f"s{count}" for count in itertools.count())
            self._known[text] = next(name for name in names if name not in taken)
            stated = text[1:-1] if text.startswith("(") else text
            is_late = not self._counted.isdisjoint(_names(tree))
            lines = self._late if is_late else self.lines
            lines.append(f"const int32_t {self._known[text]} = {stated};")
        return self._known[text]

    def _text(self, tree: Tree) -> str:
        """Return an expression, in brackets unless it is a name or a number."""
        if isinstance(tree, int):
            self._bounds(tree)
            return str(tree) if tree >= 0 else f"({tree})"
        if isinstance(tree, str):
            if tree in self.uncounted:
                raise NotWrittenError(
                    f"dimension {tree!r} is counted by a later step; choose --order given"
                )
            return self._names[tree]
        sign, *parts = tree
        assert isinstance(sign, str)
        for count in range(2, len(parts) + 1):
            self._bounds((sign, *parts[:count]))
        if sign in ("+", "*"):
            text = f" {sign} ".join(map(self._text, parts))
            text = re.sub(r"[+] \(-(\d+)\)", r"- \1", text)
            return f"({text})"
        one, other = parts
        if sign != "/":
            a, b = self._variable(one), self._variable(other)
            return f"({a} {'>' if sign == 'max' else '<'} {b} ? {a} : {b})"
        if self._bounds(other)[0] < 1:
            raise NotWrittenError("a size divided by one that may be 0 or less is unsupported")
        if self._bounds(one)[0] >= 0:
            return f"({self._text(one)} / {self._text(other)})"
        self._bounds(("+", other, ("*", -1, one)))
        a, b = self._variable(one), self._variable(other)
        return f"({a} >= 0 ? {a} / {b} : -(({b} - 1 - {a}) / {b}))"

    def _bounds(self, tree: Tree) -> tuple[int, int]:
        """Return the least and the largest value of an expression, which 32 bits must hold."""
        try:
            low, high = bounds(_value(tree, self._sizes), self._dimensions)
        except SizeError as error:
            raise NotWrittenError(str(error)) from error
        if low < _INTEGERS[0] or high > _INTEGERS[1]:
            raise NotWrittenError(f"a size from {low} to {high} is beyond 32 bits")
        return low, high
