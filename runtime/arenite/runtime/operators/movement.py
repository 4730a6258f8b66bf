"""Operators that move elements, resize images, load weights, or spill tensors."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, TypeAlias

from arenite.planner import Tensor
from arenite.planner.operators import Operands, Part, Region
from arenite.planner.sizes import depends, same
from arenite.planner.tensors import ROW_AXIS
from arenite.runtime.operators.base import (
    Lengths,
    Offset,
    RuntimeOperator,
    Strides,
    is_one_image,
    makes_one_image,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A strided copy; starts and strides in elements.

    Attributes:
        input: Position among the step's inputs.
        output: Position among its outputs.
        shape: Shape of the copied elements.
    """

    input: int = 0
    output: int = 0
    shape: Lengths
    input_start: Offset = 0
    input_strides: Strides
    output_start: Offset = 0
    output_strides: Strides

    @property
    def reads_one_run(self) -> bool:
        """Whether the elements read are contiguous."""
        return _is_one_run(self.shape, self.input_strides)

    @property
    def row(self) -> tuple[int, int] | None:
        """The elements of a row and those from one row written to the next, if all are alike.

        Cost: O(axes).
        """
        length, stride = 1, 0
        for count, step in zip(reversed(self.shape), reversed(self.output_strides), strict=True):
            if count == 1:
                continue
            if not stride and same(step, length):
                length *= count
            elif not stride:
                stride, rows = step, count
            elif same(step, stride * rows):
                rows *= count
            else:
                return None
        return length, stride

    @property
    def writes_one_run(self) -> bool:
        """Whether the elements written are contiguous."""
        return _is_one_run(self.shape, self.output_strides)


def _is_one_run(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and not same(stride, expected):
            return False
        expected *= length
    return True


MovedRows: TypeAlias = dict[int, tuple[int, int]]
"""For each row of a result, the first and last row of an input that give it elements."""


def moved_rows(
    moves: tuple[Move, ...], inputs: tuple[tuple[int, ...], ...], result: tuple[int, ...]
) -> tuple[MovedRows, ...] | None:
    """Return, of each input, the rows that moves take to each row of the result.

    Where lengths depend on sizes these are the rows at all sizes, as far as there are such.
    None where elements of a row are moved to several rows by one stride: along an axis of a move
    either the row stays the same or the place in the row does, on each side.
    """
    found: tuple[MovedRows, ...] = tuple({} for _ in inputs)
    for move in moves:
        if 0 in move.shape:
            continue
        pairs = _row_pairs(move, math.prod(inputs[move.input][2:]), math.prod(result[2:]))
        if pairs is None:
            return None
        rows = found[move.input]
        for taken, made in pairs:
            first, last = rows.get(made, (taken, taken))
            rows[made] = (min(first, taken), max(last, taken))
    return found


_known_moved_rows = cache(moved_rows)


def _row_pairs(move: Move, input_row: int, output_row: int) -> list[tuple[int, int]] | None:
    """Return the pairs of rows, of the input and of the result, between which elements move.

    Args:
        input_row: Elements of a row of the input.
        output_row: Elements of a row of the result.
    """
    axes = _split_at_rows(move, input_row, output_row)
    if axes is None:
        return None
    rows = input_row, output_row
    starts = move.input_start, move.output_start
    # The same rows at all sizes, if all that is moved is inside them.
    first = [int(start) // int(row) for start, row in zip(starts, rows, strict=True)]
    places = [start - number * row for start, number, row in zip(starts, first, rows, strict=True)]
    spans = [[place, place] for place in places]
    pairs = [(first[0], first[1])]
    for length, *strides in axes:
        steps = [0, 0]
        for side, (stride, row) in enumerate(zip(strides, rows, strict=True)):
            if same(stride % row, 0):
                steps[side] = stride // row
            else:
                spans[side][stride > 0] += stride * (length - 1)
        if any(map(depends, steps)):
            return None
        if any(steps):
            pairs = [
                (taken + i * steps[0], made + i * steps[1])
                for taken, made in pairs
                for i in range(length)
            ]
    fits = all(
        _is_never_below_0(span[0]) and _is_never_below_0(row - 1 - span[1])
        for span, row in zip(spans, rows, strict=True)
    )
    return pairs if fits else None


def _is_never_below_0(size: int) -> bool:
    """Tell whether a number that no dimension changes is at least 0."""
    return not depends(size) and size >= 0


def _split_at_rows(
    move: Move, input_row: int, output_row: int
) -> list[tuple[int, int, int]] | None:
    """Return length and strides of the axes, those that run on from row to row in two.

    None if they would be split in other ways at other sizes.
    """
    found: list[tuple[int, int, int]] = []
    axes = zip(move.shape, move.input_strides, move.output_strides, strict=True)
    for length, taken, made in axes:
        inner: int | None = length
        for stride, row in ((taken, input_row), (made, output_row)):
            if inner is not None and 0 < stride < row < stride * length and same(row % stride, 0):
                inner = _common_divisor(inner, row // stride)
        if inner is None:
            return None
        if length == 1:
            continue
        if inner < length:
            found.append((length // inner, taken * inner, made * inner))
        if inner > 1:
            found.append((inner, taken, made))
    return found


def _common_divisor(one: int, other: int) -> int | None:
    """Return the greatest one at all sizes, None if it is not known."""
    if not depends(one) and not depends(other):
        return math.gcd(one, other)
    if same(one % other, 0):
        return other
    return one if same(other % one, 0) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(RuntimeOperator):
    """Moves elements, after filling the outputs with the element `fill`, if there is one."""

    number: ClassVar[int] = 18
    moves_halves: ClassVar[bool] = True

    moves: tuple[Move, ...]
    fill: bytes = b""

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        """Return outputs that are cut from an input, or inputs that are joined to the output.

        A part is one run of bytes, moved at once, of a tensor that is as long. Where all inputs
        are joined row by row, any one may lie where the output begins: the last row is moved
        first, so none is written over before it is moved.
        """
        if self.fill:
            return ()
        is_join = len(operands.outputs) == 1 and len(operands.inputs) > 1
        if is_join and self._joins_rows(operands):
            return _row_parts(operands)
        positions = [move.input if is_join else move.output for move in self.moves]
        uses = Counter(positions)
        found: list[Part] = []
        for move, position in zip(self.moves, positions, strict=True):
            source, target = operands.inputs[move.input], operands.outputs[move.output]
            if source is None or target is None or uses[position] > 1:
                continue
            if is_join:
                found.append(_part(move, source, move.input_start, target, move.output_start))
            else:
                found.append(_part(move, target, move.output_start, source, move.input_start))
        return tuple(found)

    def _joins_rows(self, operands: Operands) -> bool:
        """Tell whether each row of the output is one row of each input, all of them whole."""
        target = operands.result
        if target is None or [move.input for move in self.moves] != list(
            range(len(operands.inputs))
        ):
            return False
        begin, strides = 0, list[int]()
        for move in self.moves:
            source, row = operands.inputs[move.input], move.row
            is_whole = source is not None and same(math.prod(move.shape), source.num_elements)
            if row is None or not (is_whole and move.reads_one_run):
                return False
            if not same(move.output_start, begin) or not same(move.input_start, 0):
                return False
            begin += row[0]
            strides.append(row[1])
        return all(same(each, begin) for each in strides) and target.dtype.bits >= 8

    def makes_rows(self, operands: Operands) -> bool:
        return makes_one_image(operands) and self._rows(operands) is not None

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the rows, whole, that are moved to those of the region."""
        everything = RuntimeOperator.input_region(self, operands, position, region)
        found = self._rows(operands) if makes_one_image(operands) else None
        if found is None:
            return everything
        taken = [row for made in range(*region[ROW_AXIS]) for row in found[position].get(made, ())]
        rows = (min(taken), max(taken) + 1) if taken else (0, 0)
        return (everything[0], rows, *everything[ROW_AXIS + 1 :])

    def rows_read(self, operands: Operands, position: int) -> Iterator[tuple[int, int]]:
        """Yield the rows that are moved to each row: their map is looked up once for all."""
        found, result = self._rows(operands), operands.result
        assert found is not None
        assert result is not None
        for row in range(result.shape[ROW_AXIS]):
            first, last = found[position].get(row, (0, -1))
            yield first, last + 1

    def _rows(self, operands: Operands) -> "tuple[MovedRows, ...] | None":
        """Return, of each input, the rows that are moved to each row of the result."""
        result = operands.result
        inputs = tuple(each.shape for each in operands.inputs if each is not None)
        if result is None or len(inputs) < len(operands.inputs):
            return None
        if not all(is_one_image(each) for each in operands.inputs):
            return None
        # Equal sizes may be those of different expressions, so they are no keys.
        is_sized = any(map(depends, itertools.chain(result.shape, *inputs)))
        find = moved_rows if is_sized else _known_moved_rows
        return find(self.moves, inputs, result.shape)


def _row_parts(operands: Operands) -> tuple[Part, ...]:
    """Return inputs that may lie where the output begins, the largest first."""
    target = operands.result
    assert target is not None
    inputs = [each for each in operands.inputs if each is not None]
    inputs.sort(key=lambda each: -each.num_elements)
    return tuple(Part(each.name, target.name, 0, moves=True) for each in inputs)


def _part(move: Move, inner: Tensor, inner_start: int, outer: Tensor, outer_start: int) -> Part:
    count = math.prod(move.shape)
    if not same(inner_start, 0) or not same(count, inner.num_elements) or not count:
        return Part(inner.name, outer.name, None, "only a part of the tensor is moved")
    if not (move.reads_one_run and move.writes_one_run):
        return Part(inner.name, outer.name, None, "its bytes are not contiguous in the result")
    return Part(inner.name, outer.name, outer_start * inner.dtype.bits // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(RuntimeOperator):
    """Reads data and indices: slices of the data along an axis.

    Of several axes, from `axis` on, each slice has one index for each: the last axis of the
    indices.
    """

    number: ClassVar[int] = 19
    moves_halves: ClassVar[bool] = True

    axis: int
    batch_axes: int = 0
    num_axes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterAdd(RuntimeOperator):
    """Reads indices and slices: zeros, to which each slice is added at its index.

    The index is that of the first axis; slices with an index beyond it are dropped.
    """

    number: ClassVar[int] = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize2D(RuntimeOperator):
    """Rows and columns of the input for each of the output.

    Without weights, takes the row or column `low`; with them, blends low and high.
    """

    number: ClassVar[int] = 20

    row_low: tuple[int, ...]
    column_low: tuple[int, ...]
    row_high: tuple[int, ...] = ()
    row_weight: tuple[float, ...] = ()
    column_high: tuple[int, ...] = ()
    column_weight: tuple[float, ...] = ()

    def makes_rows(self, operands: Operands) -> bool:
        return operands.source is not None and makes_one_image(operands)

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the region from the first to the last row and column that it takes."""
        rows = _taken(region[1], self.row_low, self.row_high)
        columns = _taken(region[2], self.column_low, self.column_high)
        return (region[0], rows, columns, region[3])


def _taken(made: tuple[int, int], low: tuple[int, ...], high: tuple[int, ...]) -> tuple[int, int]:
    lowest, highest = low[slice(*made)], (high or low)[slice(*made)]
    return min(min(lowest), min(highest)), max(max(lowest), max(highest)) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWeights(RuntimeOperator):
    """Brings constant weights into memory for each run: from the file, or decoded.

    Reads weights, coded or not. Makes a window, at least as large: floats where a later
    convolution or product finds its filter, under the filter's own shape.
    """

    number: ClassVar[int] = 27
    moves_halves: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Spill(RuntimeOperator):
    """Copies x to a memory that is spilled to."""

    number: ClassVar[int] = 33
    moves_halves: ClassVar[bool] = True

    def bytes_moved(self, operands: Operands) -> tuple[int, int]:
        return _size(operands), 0


@dataclass(frozen=True, slots=True)
class Fetch(RuntimeOperator):
    """Copies x, which was spilled, back."""

    number: ClassVar[int] = 34
    moves_halves: ClassVar[bool] = True

    def bytes_moved(self, operands: Operands) -> tuple[int, int]:
        return 0, _size(operands)


@dataclass(frozen=True, slots=True)
class Wait(RuntimeOperator):
    """Computes nothing: the steps that it awaits are done before it."""

    number: ClassVar[int] = 35
    moves_halves: ClassVar[bool] = True

    def bytes_touched(self, operands: Operands) -> int:
        return 0


def _size(operands: Operands) -> int:
    return 0 if operands.source is None else operands.source.size


@dataclass(frozen=True, slots=True)
class PackBits(RuntimeOperator):
    """Reads booleans: makes a byte for 8 of them, the first in its lowest bit."""

    number: ClassVar[int] = 39


@dataclass(frozen=True, slots=True)
class UnpackBits(RuntimeOperator):
    """Reads bytes of 8 booleans each, and makes the booleans."""

    number: ClassVar[int] = 40
