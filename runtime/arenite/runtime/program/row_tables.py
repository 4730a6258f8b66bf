"""Where each row of a tensor lies whose rows are pieces of a banded program."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from arenite.planner.operators.bands import Band, Pieces
from arenite.planner.program import Program
from arenite.planner.rows import ROW_AXIS, num_rows, row_bytes
from arenite.planner.tensors import Tensor

Place: TypeAlias = tuple[str, int]
"""Memory, and the byte in it."""


class RowTables:
    """The pieces of each tensor that steps read or write by rows.

    Attributes:
        shapes: Shapes of these tensors, by the name that they had as a whole.
        wholes: That name, by piece.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.wholes: dict[str, str] = {}
        self._pieces: dict[str, dict[str, int]] = {}  # first row by piece; pieces may overlap
        for step in program.steps:
            if isinstance(step.operator, Band):
                self._note(step.operator.inputs, step.inputs)
                self._note(step.operator.outputs, step.outputs)

    def _note(self, operands: Sequence[Pieces | None], names: Sequence[str]) -> None:
        place = 0
        for pieces in operands:
            count = 1 if pieces is None else pieces.count
            if pieces is not None and pieces.firsts:
                self.shapes[pieces.tensor] = pieces.shape
                found = self._pieces.setdefault(pieces.tensor, {})
                found.update(zip(names[place : place + count], pieces.firsts, strict=True))
                self.wholes.update(dict.fromkeys(names[place : place + count], pieces.tensor))
            place += count

    def whole(self, tensor: str) -> Tensor:
        """Return a tensor as it would be in one piece."""
        piece = self._program.tensors[next(iter(self._pieces[tensor]))]
        return replace(piece, name=tensor, shape=self.shapes[tensor], alias=None)

    def rows(self, tensor: str, place: Callable[[str], Place]) -> tuple[str, list[int]]:
        """Return the memory of a tensor, and the byte where each of its rows begins.

        Args:
            tensor: The name that it had as a whole.
            place: Returns the place of a piece.
        """
        shape, pieces = self.shapes[tensor], self._pieces[tensor]
        starts: list[int | None] = [None] * shape[ROW_AXIS]
        memories: set[str] = set()
        for name, first in pieces.items():
            piece = self._program.tensors[name]
            memory, begin = place(name)
            memories.add(memory)
            for row in range(num_rows(piece)):
                starts[first + row] = begin + row * row_bytes(piece)
        (memory,) = memories
        # Rows of an input that nothing reads are no piece of any step; any place will do for them.
        somewhere = next(start for start in starts if start is not None)
        return memory, [somewhere if start is None else start for start in starts]


def is_contiguous(starts: Sequence[int], size: int) -> bool:
    """Tell whether rows of so many bytes lie one behind the other."""
    return all(start == starts[0] + row * size for row, start in enumerate(starts))
