"""Tensors that bands take by rows, and where their rows lie at each size of a range.

A plan places the rows of the highest sizes. Smaller sizes have shorter rows. Those of a tensor
that some step takes in one piece lie end to end then. If all steps take a tensor by rows, each row
keeps its first byte::

    highest sizes   |---- row 0 ----|---- row 1 ----|---- row 2 ----|
    end to end      |- row 0 -|- row 1 -|- row 2 -|
    kept            |- row 0 -|     |- row 1 -|     |- row 2 -|

Rows that replace others lie where those do. Those of one tensor lie end to end in one other, or
all are kept: rows that do not get storages of their own (`RowPlaces.parted`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from arenite.planner.errors import SizeError
from arenite.planner.operators.bands import Band, Pieces
from arenite.planner.programs.program import Program
from arenite.planner.sizes import depends, same, same_lengths
from arenite.planner.tensors import Tensor, TensorKind, row_bytes


class FirstRow(NamedTuple):
    """What the first row of a piece is.

    Attributes:
        tensor: The name that the tensor had as a whole.
        row: The number of the row in it.
    """

    tensor: str
    row: int


class RowPlaces:
    """Where the rows of the tensors of a program lie, at any size.

    It looks through the steps when it is first asked.
    """

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def pieces(self) -> Mapping[str, FirstRow]:
        """The first row of each tensor that is rows of another."""
        return {
            name: FirstRow(operand.tensor, row)
            for name, operand, row in self._operands()
            if operand.firsts
        }

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of the tensors that are taken by rows, by the names that they had as a whole."""
        return {each.tensor: each.shape for _, each, _ in self._operands() if each.firsts}

    def _operands(self) -> Iterator[tuple[str, Pieces, int]]:
        for step in self._program.steps:
            if isinstance(step.operator, Band):
                yield from step.operator.pieces_by_name(step.inputs, step.outputs)

    @cached_property
    def _of_tensor(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for piece, first in self.pieces.items():
            found.setdefault(first.tensor, []).append(piece)
        return found

    def of(self, tensor: str) -> Sequence[str]:
        """Return the pieces of a tensor, by the name that it had as a whole."""
        return self._of_tensor[tensor]

    def whole(self, tensor: str) -> Tensor:
        """Return a tensor as it would be in one piece, in a storage of its own."""
        piece = self._program.tensors[self._of_tensor[tensor][0]]
        return replace(piece, name=tensor, shape=self.shapes[tensor], alias=None)

    def keeps(self, name: str) -> bool:
        """Tell whether rows keep their first bytes: those of a piece, or of a tensor."""
        return self.holder(name) is None if name in self.pieces else name in self._kept

    def holder(self, piece: str) -> str | None:
        """Return the tensor in which a piece lies end to end with other rows, as they do.

        None if its rows keep their first bytes.
        """
        tensors = self._program.tensors
        offset = self._program.root(piece)[1]
        if not depends(offset) and not depends(row_bytes(tensors[piece])):
            return None
        found = self._below(piece)
        return None if found in self.pieces or found in self._kept else found

    def common_holder(self, pieces: Iterable[str]) -> str | None:
        """Return the tensor in which all of some pieces lie end to end, None if all are kept.

        Raises:
            SizeError: They do not lie in one way. `parted` leaves no rows that replace others so.
        """
        tensors = self._program.tensors
        found = {self.holder(piece): piece for piece in pieces}
        for holder, piece in found.items():
            has_its_rows = holder is None or same(
                row_bytes(tensors[holder]), row_bytes(tensors[piece])
            )
            if len(found) > 1 or not has_its_rows:
                raise SizeError(
                    f"rows of {self.pieces[piece].tensor!r} would lie in more than one way at "
                    "smaller sizes; supported: rows that all move, or none; choose another budget"
                )
        return next(iter(found))

    def parted(self) -> Program:
        """Return the program with storages for rows that would move, but others of theirs not.

        Cost: O(pieces).
        """
        tensors = dict(self._program.tensors)
        for pieces in self._of_tensor.values():
            holders = {piece: self.holder(piece) for piece in pieces}
            if len(set(holders.values())) == 1:
                continue
            for piece, holder in holders.items():
                alias = tensors[piece].alias
                if holder is not None and alias is not None and alias.tensor in self.pieces:
                    tensors[piece] = replace(tensors[piece], alias=None)
        return replace(self._program, tensors=tensors)

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The tensors that steps touch by rows alone.

        Of tensors that lie in one place, as a result lies on the operand that it overwrites, all
        are touched by rows or none. Parts of a tensor and views with other rows lie end to end as
        it does.
        """
        program, pieces = self._program, self.pieces
        touched = {name for step in program.steps for name in (*step.reads, *step.writes)}
        touched |= {port.tensor for port in (*program.inputs, *program.outputs)}
        wholes: set[str] = set()
        pairs: list[tuple[str, str]] = []
        for name, tensor in program.tensors.items():
            if tensor.kind is TensorKind.STATE:
                touched.add(name)
            if tensor.alias is None:
                continue
            under = tensor.alias.tensor
            if name in pieces:
                wholes.add(under)
            elif under not in pieces and has_rows_of(
                tensor, program.tensors[under], tensor.alias.offset
            ):
                pairs.append((name, under))
            else:
                touched |= {name, self._below(under)}
        of_one_place = _joined_sets(pairs)
        for name in wholes:
            together = of_one_place.get(name, {name})
            if not touched.isdisjoint(together):
                touched |= together
        return frozenset(wholes - touched - pieces.keys())

    def _below(self, name: str) -> str:
        """Return the tensor that a piece lies in, by way of others; of another tensor itself."""
        while name in self.pieces and (alias := self._program.tensors[name].alias) is not None:
            name = alias.tensor
        return name


def has_rows_of(tensor: Tensor, storage: Tensor, offset: int) -> bool:
    """Tell whether a tensor at an offset in a storage has its rows, at their places."""
    return (
        same(offset, 0)
        and tensor.dtype is storage.dtype
        and same_lengths(tensor.shape, storage.shape)
    )


def _joined_sets(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return for each name all that pairs connect it with."""
    found: dict[str, set[str]] = {}
    for one, other in pairs:
        joined = found.get(one, {one}) | found.get(other, {other})
        found.update(dict.fromkeys(joined, joined))
    return found
