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

        A part is one run of bytes, moved at once, of a tensor that is as long.
        """
        if self.fill:
            return ()
        is_join = len(operands.outputs) == 1 and len(operands.inputs) > 1
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
