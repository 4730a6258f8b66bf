"""Operators that move elements, resize images, load weights, or spill tensors."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from arenite.planner import Tensor
from arenite.planner.operators import (
    Along,
    Operands,
    Part,
    Region,
    Window,
    aligned_axes,
    same_layout,
    whole,
)
from arenite.planner.sizes import depends, same, same_lengths
from arenite.planner.tensors import ROW_AXIS
from arenite.runtime.operators.base import RuntimeOperator, is_one_image, makes_one_image
from arenite.runtime.operators.moves import (
    Move,
    MovedRows,
    RowByRow,
    Rows,
    known_moved_rows,
    moved_rows,
)


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

    def along(self, operands: Operands, axes: Sequence[int | None]) -> Along | None:
        """Return the rows that rows of the result are moved from, one each.

        Every input has rows, and its elements are moved from each of them alike. Beyond them is
        padding.
        """
        tensors = (*operands.inputs, *operands.outputs)
        if None in axes or any(each is None or any(map(depends, each.shape)) for each in tensors):
            return None
        for axis in aligned_axes(operands, axes):
            windows = self._windows_along(operands, axes, axis)
            if windows is not None:
                return Along(axis, tuple(axes), windows)
        return None

    def _windows_along(
        self, operands: Operands, axes: Sequence[int | None], axis: int
    ) -> tuple[Window, ...] | None:
        found: dict[int, Window] = {}
        for move in self.moves:
            rows = self._row_by_row(move, operands, axes, axis)
            if rows is None:
                return None
            length, count = rows.source.count, rows.target.count
            before = rows.made * rows.stride - rows.taken
            # What is neither moved nor outside the operand would be no padding.
            is_first = rows.made * rows.stride - before < rows.stride
            is_last = (rows.made + rows.count) * rows.stride - before >= length
            if (rows.made > 0 and not is_first) or (
                rows.made + rows.count < count and not is_last
            ):
                return None
            window = Window(length, count, 1, rows.stride, 1, before)
            if found.setdefault(move.input, window) != window:
                return None
        if len(found) < len(operands.inputs):
            return None
        return tuple(found[position] for position in range(len(operands.inputs)))

    def _row_by_row(
        self, move: Move, operands: Operands, axes: Sequence[int | None], axis: int
    ) -> RowByRow | None:
        source, result, own = operands.inputs[move.input], operands.result, axes[move.input]
        assert source is not None
        assert result is not None
        assert own is not None
        return RowByRow.of(move, Rows.along(source.shape, own), Rows.along(result.shape, axis))

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Copy | None":
        """Return the same moves, of as many rows as there are."""
        result = pieces.result
        assert result is not None
        moves: list[Move] = []
        for move in self.moves:
            rows = self._row_by_row(move, operands, along.axes, along.axis)
            piece, own = pieces.inputs[move.input], along.axes[move.input]
            assert piece is not None
            assert own is not None
            if rows is None:
                return None
            moves.append(rows.cut(piece.shape[own], result.shape[along.axis]))
        return Copy(moves=tuple(moves), fill=self.fill)

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
        find = moved_rows if is_sized else known_moved_rows
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
    indices. Of data of 16-bit floats the slices may be of 32.
    """

    number: ClassVar[int] = 19
    moves_halves: ClassVar[bool] = True

    INDICES: ClassVar[int] = 1
    """Position of the indices."""

    axis: int
    batch_axes: int = 0
    num_axes: int = 1

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether each row of the result is that of the same row of the indices."""
        indices, result = operands.input(self.INDICES), operands.result
        if indices is None or result is None or not is_one_image(result):
            return False
        rows = slice(ROW_AXIS + 1)
        return (
            (self.axis, self.batch_axes, self.num_axes) == (0, 0, 1)
            and len(indices.shape) > ROW_AXIS
            and same_lengths(indices.shape[rows], result.shape[rows])
        )

    def reads_rows(self, position: int) -> bool:
        return position == self.INDICES

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the indices of the slices of a region, or all of the data."""
        tensor = operands.inputs[position]
        assert tensor is not None
        if position != self.INDICES or not self.makes_rows(operands):
            return whole(tensor)
        return region[: len(tensor.shape)]

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Gather":
        """Return the same: slices are alike wherever their indices are."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterAdd(RuntimeOperator):
    """Reads indices and slices: zeros, to which each slice is added at its index.

    The index is that of the first axis; slices with an index beyond it are dropped.
    """

    number: ClassVar[int] = 32


class ScatterFunction(StrEnum):
    """What becomes of an element at an index and an update of it."""

    REPLACE = "replace"
    ADD = "add"
    MULTIPLY = "multiply"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scattering(RuntimeOperator):
    """Reads data, indices and updates: the data with updates at the indices.

    Updates are made one after another, in their order.
    """

    function: ScatterFunction = ScatterFunction.REPLACE

    def computes_halves(self, operands: Operands) -> bool:
        moves = self.function is ScatterFunction.REPLACE
        return not moves and RuntimeOperator.computes_halves(self, operands)

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the data, which nothing but the updates changes."""
        is_apart = operands.source not in operands.inputs[1:]
        return (0,) if is_apart and same_layout(operands.source, operands.result) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterElements(_Scattering):
    """Reads data, indices and updates: the data with updates at the indices.

    Indices and updates have one shape, of as many axes as the data. An index is that of `axis`;
    those of the other axes are where it stands. Negative indices count from the end; updates with
    an index beyond it are dropped. They are made one after another, in their order.
    """

    number: ClassVar[int] = 63

    axis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterSlices(_Scattering):
    """Reads data, indices and slices: the data with slices at the indices.

    The last axis of the indices has an index for each of the first axes of the data. Negative
    indices count from the end; slices with an index beyond it are dropped. They are updated one
    after another, in their order.
    """

    number: ClassVar[int] = 64


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

    Reads weights, coded or not. Makes a window, at least as large, of the same type, where a later
    convolution or product finds its filter, under the filter's own shape. Coded ones are floats.
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


@dataclass(frozen=True, slots=True)
class Append(RuntimeOperator):
    """Reads rows that are kept and new ones, and makes the newest of them, all the new ones last.

    The kept rows move down to the front of the result, and the new ones follow. Elements are
    contiguous.
    """

    number: ClassVar[int] = 56
    moves_halves: ClassVar[bool] = True

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the rows that are kept: each moves down before its place is written."""
        return (0,)
