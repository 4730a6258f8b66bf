"""A node whose inputs have lengths that depend on dimensions, and what its rule asks of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.operators.imported import AttributeValue
from arenite.planner.sizes import Dimension, Expression, Ranges, depends, same

Shape: TypeAlias = tuple[int, ...]
Objects: TypeAlias = NDArray[np.object_]
"""Elements that are integers, sizes among them."""


class TiedError(SizeError):
    """An operator needs a dimension to be what other dimensions make.

    Attributes:
        dimension: Its name.
        size: What it has to be; the range is the same.
    """

    def __init__(self, reason: str, dimension: str, size: int) -> None:
        super().__init__(reason)
        self.dimension = dimension
        self.size = size


@dataclass(frozen=True, slots=True)
class Call:
    """A node whose inputs have lengths that depend on dimensions.

    Attributes:
        kind: Operator type, with its domain unless that is ONNX's own.
        opset: Version of its operator set.
        attributes: Those of the node.
        shapes: Of its inputs, None where one is left out.
        made: Types of its outputs at the highest sizes, None where one is left out.
        value: Returns the elements of an input, None if they are unknown before the run.
        ranges: The dimensions.
    """

    kind: str
    opset: int
    attributes: Mapping[str, AttributeValue]
    shapes: Sequence[Shape | None]
    made: Sequence[TensorType | None]
    value: Callable[[int], Objects | None]
    ranges: Ranges

    def has(self, position: int) -> bool:
        return position < len(self.shapes) and self.shapes[position] is not None

    def shape(self, position: int = 0) -> Shape:
        """Return the shape of an input that the operator requires."""
        found = self.shapes[position] if position < len(self.shapes) else None
        if found is None:
            raise SizeError(f"input {position} is left out")
        return found

    def integer(self, name: str, default: int) -> int:
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        value: Any = self.attributes.get(name)
        return value if isinstance(value, tuple) else None

    def elements(self, position: int) -> tuple[Any, ...]:
        """Return the elements of an input.

        Raises:
            SizeError: They are unknown before the run.
        """
        found = self.value(position)
        if found is None:
            raise SizeError(f"the elements of input {position} are not known for all sizes")
        return tuple(found.ravel().tolist())

    def stated(self, name: str, position: int) -> tuple[int, ...] | None:
        """Return integers that are an attribute or, in later versions, an input."""
        return self.elements(position) if self.has(position) else self.integers(name)

    def taken(self) -> slice:
        """Return the axes of which a Shape states the lengths."""
        return slice(self.integer("start", 0), self.integer("end", len(self.shape())))

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        axis = self.integer(name, default)
        return axis + rank if axis < 0 else axis

    def require_same(self, one: int, other: int, what: str) -> int:
        """Return a length that two are.

        Raises:
            SizeError: They differ at some sizes.
        """
        if not self.ranges.same(one, other):
            reason = f"{what} {text(one)} and {text(other)} are equal at some sizes only"
            for dimension, size in self._ties(one, other):
                low, high = self.ranges.bounds(size)
                if (dimension.low, dimension.high) == (low, high):
                    raise TiedError(reason, dimension.name, size)
                reason += f"; if they are always, {dimension.name} has the range {low}..{high}"
            raise SizeError(reason)
        return one if depends(other) else other

    def _ties(self, one: int, other: int) -> Iterator[tuple[Dimension, int]]:
        """Yield the dimensions that may be expressions of others, with these."""
        stated = [each for each in self.ranges.dimensions if not each.counted_by]
        for dimension in reversed(stated):
            for it, size in ((one, other), (other, one)):
                is_it = same(it, dimension.size)
                if is_it and depends(size) and dimension.name not in Expression.of(size).names:
                    yield dimension, size

    def broadcast(self, *shapes: Shape) -> Shape:
        """Return the shape that operands of these shapes have together."""
        rank = max(map(len, shapes))
        result = [1] * rank
        for shape in shapes:
            for axis, length in enumerate(shape, rank - len(shape)):
                if depends(result[axis]) or result[axis] != 1:
                    if depends(length) or length != 1:
                        result[axis] = self.require_same(result[axis], length, "lengths")
                else:
                    result[axis] = length
        return tuple(result)


def text(length: int) -> str:
    """Return a length as an expression of dimensions."""
    return str(length.expression) if hasattr(length, "expression") else str(length)


def whole_number(value: Any) -> int:
    """Return an element that is an integer, whatever its type.

    Raises:
        SizeError: It is a fraction.
    """
    if isinstance(value, int):
        return value
    if depends(value.denominator) or value.denominator != 1:
        raise SizeError("a Range of fractions depends on the sizes")
    numerator: int = value.numerator
    return numerator


Rule: TypeAlias = Callable[[Call], list[Shape]]


def rules_of(rule: Rule, *kinds: str) -> dict[str, Rule]:
    """Return a table with one rule for several operators."""
    return dict.fromkeys(kinds, rule)
