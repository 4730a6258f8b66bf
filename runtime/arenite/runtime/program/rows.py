"""Places of the rows of tensors that a banded program makes in pieces."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from arenite.planner import Program
from arenite.planner.operators import Band, Pieces
from arenite.planner.programs import RowPlaces
from arenite.planner.tensors import ROW_AXIS, num_rows, row_bytes

Place: TypeAlias = tuple[str, int]
"""Memory, and the byte in it."""


def starts_of_rows(
    program: Program, places: RowPlaces, tensor: str, place: Callable[[str], Place]
) -> list[int]:
    """Return the byte where each row of a tensor begins.

    Args:
        places: Those of the program.
        tensor: The name that it had as a whole.
        place: Returns the place of a piece.
    """
    pieces = {piece: places.pieces[piece].row for piece in places.of(tensor)}
    whole = program.tensors.get(tensor)
    if whole is not None and whole.shape == places.shapes[tensor]:
        pieces = {tensor: 0, **pieces}  # steps that read it in one piece touch all rows
    _, starts = _row_starts(program, pieces.items(), place)
    return _filled(starts, places.shapes[tensor], starts[min(starts)])


def _row_starts(
    program: Program, pieces: Iterable[tuple[str, int]], place: Callable[[str], Place]
) -> tuple[str, dict[int, int]]:
    """Return the memory of pieces, given with their first rows, and where each row begins."""
    starts: dict[int, int] = {}
    memories: set[str] = set()
    for name, first in pieces:
        piece = program.tensors[name]
        memory, begin = place(name)
        memories.add(memory)
        for row in range(num_rows(piece)):
            starts[first + row] = begin + row * row_bytes(piece)
    (memory,) = memories
    return memory, starts


def _filled(starts: Mapping[int, int], shape: Sequence[int], somewhere: int) -> list[int]:
    """Return where each row begins; rows that no step touches may lie anywhere."""
    return [starts.get(row, somewhere) for row in range(shape[ROW_AXIS])]


def is_contiguous(starts: Sequence[int], size: int) -> bool:
    """Tell whether rows of so many bytes lie one behind the other."""
    return all(start == starts[0] + row * size for row, start in enumerate(starts))


@dataclass(slots=True)
class _Table:
    """Places of the rows of a tensor.

    Attributes:
        starts: The byte where each begins, by row.
        holder: The tensor in which they lie end to end at every size, None if they are kept.
    """

    memory: str
    starts: dict[int, int]
    holder: str | None

    def agrees(self, other: "_Table") -> bool:
        """Tell whether no row lies at two places, at any size."""
        return (self.memory, self.holder) == (other.memory, other.holder) and all(
            self.starts.get(row, start) == start for row, start in other.starts.items()
        )


@dataclass(slots=True)
class _Variant:
    """Turns of one step that find every row at one place.

    Attributes:
        operands: Places of the rows of each operand, inputs first; None for operands without rows.
        numbers: The numbers of these tables among those of their tensors, once all is known.
    """

    operands: list[_Table | None]
    numbers: list[int] = field(default_factory=list)


class RowVariants:
    """The variants of all banded steps of a program."""

    def __init__(self, program: Program, places: RowPlaces, place: Callable[[str], Place]) -> None:
        """Find them.

        Args:
            places: Those of the program.
            place: Returns where a piece lies.

        Raises:
            SizeError: Rows of one operand move from size to size, and others of it do not.

        Cost: O(rows of the operands of all turns).
        """
        self._program = program
        self._places = places
        self._place = place
        self._variants: dict[str, list[_Variant]] = {}
        self._of_step: dict[str, int] = {}
        self._tables: dict[str, list[_Table]] = {}
        for step in program.steps:
            band = step.operator
            if isinstance(band, Band):
                found = self._operands(band.inputs, step.inputs)
                found += self._operands(band.outputs, step.outputs)
                self._of_step[step.name] = self._add(band.step, found)
        self._number()

    def of(self, step: str) -> int:
        """Return the number of the variant that a turn belongs to, by the name of its step."""
        return self._of_step[step]

    def tables(self, banded: str, variant: int) -> Sequence[int]:
        """Return for each operand of a variant, inputs first, which table of its tensor it has."""
        return self._variants[banded][variant].numbers

    def starts(self, tensor: str, table: int, shape: Sequence[int]) -> tuple[str, list[int]]:
        """Return the memory of a table, and the byte where each of its rows begins."""
        found = self._tables[tensor][table]
        return found.memory, _filled(found.starts, shape, next(iter(found.starts.values())))

    def holder(self, tensor: str, table: int) -> str | None:
        """Return the tensor in which the rows of a table lie end to end, None if they are kept."""
        return self._tables[tensor][table].holder

    def _operands(
        self, operands: Sequence[Pieces | None], names: Sequence[str]
    ) -> list[_Table | None]:
        found: list[_Table | None] = []
        at = 0
        for pieces in operands:
            count = 1 if pieces is None else pieces.count
            is_cut = pieces is not None and pieces.firsts
            found.append(
                self._table(pieces, names[at : at + count]) if pieces and is_cut else None
            )
            at += count
        return found

    def _table(self, pieces: Pieces, names: Sequence[str]) -> _Table:
        found = zip(names, pieces.firsts, strict=True)
        memory, starts = _row_starts(self._program, found, self._place)
        holder = self._places.common_holder(names) if self._program.dimensions else None
        return _Table(memory, starts, holder)

    def _add(self, banded: str, operands: list[_Table | None]) -> int:
        variants = self._variants.setdefault(banded, [])
        for number, variant in enumerate(variants):
            pairs = list(zip(variant.operands, operands, strict=True))
            if all(one is None or other is None or one.agrees(other) for one, other in pairs):
                for one, other in pairs:
                    if one is not None and other is not None:
                        one.starts.update(other.starts)
                return number
        variants.append(_Variant(operands))
        return len(variants) - 1

    def _number(self) -> None:
        """Let operands share a table of their tensor wherever no row lies at two places."""
        firsts = {
            step.operator.step: step.operator
            for step in reversed(self._program.steps)
            if isinstance(step.operator, Band)
        }
        for banded, variants in self._variants.items():
            band = firsts[banded]
            for variant in variants:
                for pieces, table in zip(
                    (*band.inputs, *band.outputs), variant.operands, strict=True
                ):
                    number = -1
                    if pieces is not None and table is not None:
                        number = self._shared(pieces.tensor, table)
                    variant.numbers.append(number)

    def _shared(self, tensor: str, table: _Table) -> int:
        known = self._tables.setdefault(tensor, [])
        for number, other in enumerate(known):
            if other.agrees(table):
                other.starts.update(table.starts)
                return number
        known.append(replace(table, starts=dict(table.starts)))
        return len(known) - 1
