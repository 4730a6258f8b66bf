"""Moves of elements as a program file states them, and the rows that they join."""

import math
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from arenite.planner.sizes import depends, same
from arenite.runtime.operators.base import Lengths, Offset, Strides


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

    def is_whole(self, num_elements: int) -> bool:
        """Tell whether it brings so many elements, in their order, from front to front."""
        return (
            same(self.input_start, 0)
            and same(self.output_start, 0)
            and same(math.prod(self.shape), num_elements)
            and self.reads_one_run
            and self.writes_one_run
        )


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


known_moved_rows = cache(moved_rows)


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


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows along an axis of a tensor, of so many elements each."""

    count: int
    size: int

    @classmethod
    def along(cls, shape: tuple[int, ...], axis: int) -> "Rows":
        """Return the rows along an axis."""
        return cls(shape[axis], math.prod(shape[axis + 1 :]))

    def place(self, index: int) -> tuple[int, int, int]:
        """Return the block of rows that an element lies in, its row there, and its place in it."""
        row, place = divmod(index, self.size)
        return (*divmod(row, self.count), place)

    def moved(self, stride: int, count: int) -> int:
        """Return a stride from block to block, or within a row, where blocks have `count` rows."""
        blocks, rest = divmod(stride, self.count * self.size)
        return stride if rest else blocks * count * self.size


@dataclass(frozen=True, slots=True)
class RowByRow:
    """A move of the same elements from each of some rows to each of some rows.

    Attributes:
        source: Rows of the input.
        target: Rows of the result.
        taken: The first row that it reads.
        made: The first row that it writes.
        count: How many it writes.
        stride: Rows from one that it reads to the next.
        others: Length and strides, of the input and of the result, of the axes beside the rows.
    """

    move: Move
    source: Rows
    target: Rows
    taken: int
    made: int
    count: int
    stride: int
    others: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, move: Move, source: Rows, target: Rows) -> "RowByRow | None":
        """Return a move as one row by row, None if it is none."""
        axes = _split_at_rows(move, source.size, target.size)
        if axes is None or 0 in move.shape:
            return None
        _, taken, place = source.place(move.input_start)
        _, made, target_place = target.place(move.output_start)
        rows: list[tuple[int, int]] = []
        others: list[tuple[int, int, int]] = []
        for length, one, other in axes:
            is_step = one > 0 and one % source.size == 0 and one % (source.count * source.size) > 0
            if is_step and other == target.size:
                rows.append((length, one // source.size))
            else:
                others.append((length, one, other))
        count, stride = rows[0] if rows else (1, 1)
        fits = (
            len(rows) <= 1
            and taken + (count - 1) * stride < source.count
            and made + count <= target.count
            and _stays_within(source, place, [(length, one) for length, one, _ in others])
            and _stays_within(target, target_place, [(length, one) for length, _, one in others])
        )
        return (
            cls(move, source, target, taken, made, count, stride, tuple(others)) if fits else None
        )

    def cut(self, read: int, written: int) -> Move:
        """Return the move where all rows written are there, and those read for them.

        Args:
            read: Rows of the input.
            written: Rows of the result.
        """
        block, _, place = self.source.place(self.move.input_start)
        target_block, _, target_place = self.target.place(self.move.output_start)
        return Move(
            input=self.move.input,
            output=self.move.output,
            shape=(written, *(length for length, _, _ in self.others)),
            input_start=block * read * self.source.size + place,
            input_strides=(
                self.stride * self.source.size,
                *(self.source.moved(one, read) for _, one, _ in self.others),
            ),
            output_start=target_block * written * self.target.size + target_place,
            output_strides=(
                self.target.size,
                *(self.target.moved(one, written) for _, _, one in self.others),
            ),
        )


def _stays_within(rows: Rows, place: int, axes: list[tuple[int, int]]) -> bool:
    """Tell whether axes stay within each row, or go from block to block."""
    low = high = place
    for length, stride in axes:
        if stride % (rows.count * rows.size):
            reach = (length - 1) * stride
            low, high = low + min(reach, 0), high + max(reach, 0)
    return low >= 0 and high < rows.size
