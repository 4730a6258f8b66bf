"""Operators that move elements, resize images, or load weights."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.operator import Operands
from arenite.planner.operators.parts import Part
from arenite.planner.tensors import Tensor
from arenite.runtime.operators.base import Lengths, Offset, RuntimeOperator, Strides


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A strided copy; starts and strides in elements.

    Attributes:
        input: Position among the step's inputs.
        output: Position among its outputs.
        shape: Shape of what is copied.
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
            if not stride and step == length:
                length *= count
            elif not stride:
                stride, rows = step, count
            elif step == stride * rows:
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
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(RuntimeOperator):
    """Moves elements, after filling the outputs with the element `fill`, if there is one."""

    number: ClassVar[int] = 18

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
        begin, strides = 0, set[int]()
        for move in self.moves:
            source, row = operands.inputs[move.input], move.row
            is_whole = source is not None and math.prod(move.shape) == source.num_elements
            if row is None or not (is_whole and move.reads_one_run) or move.input_start:
                return False
            if move.output_start != begin:
                return False
            begin += row[0]
            strides.add(row[1])
        return strides == {begin} and target.dtype.bits >= 8


def _row_parts(operands: Operands) -> tuple[Part, ...]:
    """Return inputs that may lie where the output begins, the largest first."""
    target = operands.result
    assert target is not None
    inputs = [each for each in operands.inputs if each is not None]
    inputs.sort(key=lambda each: -each.num_elements)
    return tuple(Part(each.name, target.name, 0, moves=True) for each in inputs)


def _part(move: Move, inner: Tensor, inner_start: int, outer: Tensor, outer_start: int) -> Part:
    count = math.prod(move.shape)
    if inner_start or count != inner.num_elements or not count:
        return Part(inner.name, outer.name, None, "more than this is made of it")
    if not (move.reads_one_run and move.writes_one_run):
        return Part(inner.name, outer.name, None, "its bytes are not one run of the whole")
    return Part(inner.name, outer.name, outer_start * inner.dtype.bits // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(RuntimeOperator):
    """Reads data and indices: slices of the data along an axis."""

    number: ClassVar[int] = 19

    axis: int
    batch_axes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterAdd(RuntimeOperator):
    """Reads indices and slices: zeros, to which each slice is added at its index.

    The index is that of the first axis; a slice whose index is beyond it is lost.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWeights(RuntimeOperator):
    """Brings constant weights into memory for each run: from the file, or decoded.

    Reads weights, coded or not. Makes a window, at least as large: floats where a later
    convolution or product finds its filter, under the filter's own shape.
    """

    number: ClassVar[int] = 27
