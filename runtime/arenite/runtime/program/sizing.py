"""What in a program file depends on the sizes of a run: its expressions, and where they stand.

All else in the file is that of the highest sizes, for which its plan is made. At smaller ones each
tensor takes the front of its place.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from arenite.planner import Program, Tensor, TensorKind
from arenite.planner.errors import SizeError
from arenite.planner.operators import Operator
from arenite.planner.sizes import Dimension, Expression, Size, Tree, bounds
from arenite.runtime.errors import UnwritableProgramError
from arenite.runtime.operators.base import UNSTORED, RuntimeOperator
from arenite.runtime.operators.convolution import Conv2D
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.reduction import Pool2D


class Sizing:
    """The expressions of a program and the numbers that they stand for.

    Args:
        dimensions: The dimensions of the program; without any nothing depends on sizes.
    """

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self._dimensions = dimensions
        self._dimension_numbers = {each.name: n for n, each in enumerate(dimensions)}
        self._expressions: dict[tuple[str, int, int], int] = {}
        self._axes: list[dict[str, int]] = []
        self._numbers: list[dict[str, int]] = []
        self._offsets: list[dict[str, int]] = []
        self._counting: dict[str, int] = {}  # steps, by dimension

    def add_tensor(self, index: int, shape: Iterable[int], offset: int = 0) -> None:
        """Note the axes of a tensor whose lengths depend on sizes, and its offset if that does."""
        if isinstance(offset, Size):
            expression = self._expression(offset.expression.tree)
            self._offsets.append({"tensor": index, "expression": expression})
        for axis, length in enumerate(shape):
            if isinstance(length, Size):
                expression = self._expression(length.expression.tree)
                self._axes.append({"tensor": index, "axis": axis, "expression": expression})

    def add_step(
        self, index: int, name: str, operator: Operator, made: Tensor | None = None
    ) -> None:
        """Note the numbers of a step's operator that depend on sizes, and what it counts.

        Args:
            index: Its place among the steps.
            name: Its name, for the error.
            operator: Its operator.
            made: Its first result, if it makes that whole.

        Raises:
            UnwritableProgramError: The file has no place for one of them.
        """
        if not self._dimensions:
            return
        if isinstance(operator, RuntimeOperator) and operator.counts and made is not None:
            length = Expression.of(made.shape[0])
            for dimension in self._dimensions:
                if dimension.counted_by and Expression.of(dimension.size) == length:
                    self._counting[dimension.name] = index
        numbered, others = _attributes(operator)
        for each in _sizes((*numbered, *(made.shape if made is not None else ()))):
            self._require_counted(name, each)
        for attribute, value in others:
            for each in _sizes(value):
                raise UnwritableProgramError(
                    f"step {name!r}: {attribute} of {type(operator).__name__} is "
                    f"{each.expression}; supported: a number that no dimension changes"
                )
        for number, value in enumerate(numbered):
            if isinstance(value, Size):
                expression = self._expression(value.expression.tree)
                self._numbers.append({"step": index, "number": number, "expression": expression})

    def fields(self) -> dict[str, Any]:
        """Return the fields of the root table; none without dimensions."""
        if not self._dimensions:
            return {}
        return {
            "dimensions": list(map(self._dimension, self._dimensions)),
            "expressions": [
                {"operation": operation, "a": a, "b": b} for operation, a, b in self._expressions
            ],
            "axes": self._axes,
            "numbers": self._numbers,
            **({"offsets": self._offsets} if self._offsets else {}),
        }

    def _require_counted(self, step: str, size: Size) -> None:
        """Check that steps have counted what a later step depends on.

        Raises:
            UnwritableProgramError: One has not: another order was chosen than that of the model.
        """
        for each in self._dimensions:
            if each.counted_by and each.name in size.expression.names - self._counting.keys():
                raise UnwritableProgramError(
                    f"step {step!r} depends on dimension {each.name!r}, which a later step "
                    "counts; choose --order given"
                )

    def _dimension(self, dimension: Dimension) -> dict[str, Any]:
        fields = {
            "name": dimension.name, "low": dimension.low, "high": dimension.high,
            "step": dimension.step,
        }  # fmt: skip
        if dimension.grows:
            growth = Expression.of(dimension.growth)
            return {**fields, "grows_by": self._expression(growth.tree)}
        if not dimension.counted_by:
            return fields
        if dimension.name not in self._counting:
            raise UnwritableProgramError(f"no step counts the dimension {dimension.name!r}")
        return {**fields, "counted_by": self._counting[dimension.name]}

    def _node(self, operation: str, a: int, b: int = 0) -> int:
        return self._expressions.setdefault((operation, a, b), len(self._expressions))

    def _expression(self, tree: Tree) -> int:
        if isinstance(tree, int):
            return self._node("constant", tree)
        if isinstance(tree, str):
            return self._node("dimension", self._dimension_numbers[tree])
        sign, *operands = tree
        found, *more = map(self._expression, operands)
        for each in more:
            found = self._node(_OPERATIONS[str(sign)], found, each)
        return found


_OPERATIONS = {
    "+": "add", "*": "multiply", "/": "divide", "max": "maximum", "min": "minimum",
}  # fmt: skip


def _attributes(operator: Operator) -> tuple[list[int], list[tuple[str, object]]]:
    """Return the numbers of an operator in the file's order, and all its other attributes."""
    numbered: list[int] = []
    others: dict[str, Any] = {
        each.name: getattr(operator, each.name)
        for each in dataclasses.fields(operator)  # type: ignore[arg-type]  # all of ours are
        if UNSTORED not in each.metadata
    }
    if isinstance(operator, Copy):
        for move in others.pop("moves"):
            numbered += [*move.shape, move.input_start, *move.input_strides]
            numbered += [move.output_start, *move.output_strides]
    numbered += others.pop("padding", ())
    if isinstance(operator, Pool2D):
        numbered += others.pop("window")
    if isinstance(operator, Conv2D):
        numbered += [others.pop("tile"), others.pop("tuned_tile")]
    return numbered, list(others.items())


def _sizes(value: object) -> Iterator[Size]:
    """Yield the sizes in an attribute."""
    if isinstance(value, Size):
        yield value
    elif isinstance(value, tuple):
        yield from itertools.chain.from_iterable(map(_sizes, value))


def check_shapes(program: Program) -> None:
    """Check that shapes are possible at all sizes; that tensors fit their storage is known.

    Raises:
        SizeError: A length is below 0 at some size, or a state has no fixed shape.
    """
    for tensor in program.tensors.values():
        for axis, length in enumerate(tensor.shape):
            if not isinstance(length, Size):
                continue
            if tensor.kind is TensorKind.STATE:
                raise SizeError(
                    f"state {tensor.name!r}: axis {axis} has {length.expression} elements; "
                    "supported: states of one shape, which a run can leave to the next"
                )
            lowest, _ = bounds(length, program.dimensions)
            if lowest < 0:
                raise SizeError(
                    f"tensor {tensor.name!r}: axis {axis} has {length.expression} elements, "
                    f"{lowest} at some size; supported: lengths of at least 0"
                )
