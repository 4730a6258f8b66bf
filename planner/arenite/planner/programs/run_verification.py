"""Check that every turn of a run finds the rows that it reads, independent of the search.

The turns are walked in order over the bytes of each memory. Each byte knows which row of which
tensor was written there last, and forgets it when the record that it lies in dies::

    InvalidPlanError
    ├── UnheldRowsError         rows lie in no record that is live
    ├── UnwrittenRowsError      rows are read before they are written
    └── OverwrittenRowsError    rows are read where others were written meanwhile
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.problem import Rectangle
from arenite.planner.programs.run import PlacedRows, Rows, Run


class UnheldRowsError(InvalidPlanError):
    """A turn touches rows that lie in no record that is live."""


class UnwrittenRowsError(InvalidPlanError):
    """A turn reads rows that were not written since their record began."""


class OverwrittenRowsError(InvalidPlanError):
    """A turn reads rows where others were written after them."""


class _Written(NamedTuple):
    """The last write to some bytes."""

    tensor: str
    row: int


class _Stretch(NamedTuple):
    """Bytes of one record that were written together."""

    end: int
    written: _Written | None


def verify_run(run: Run, rectangles: Iterable[Rectangle]) -> None:
    """Check that each turn finds all it reads as it was written, in records that are live.

    A tensor that no turn writes and that is no input is a view: it is what lies in its bytes. What
    another wrote there is an error for every other tensor.

    Args:
        rectangles: The rectangles of the records of a valid plan.

    Raises:
        InvalidPlanError: By the subclass of the first rule broken.

    Cost: O(rows touched at all turns x (log n + rows that share their bytes)), n records.
    """
    _Walk(run, rectangles).check()


class _Walk:
    def __init__(self, run: Run, rectangles: Iterable[Rectangle]) -> None:
        self._run = run
        self._tensors = {tensor.name: tensor for tensor in run.tensors}
        self._starting: dict[int, list[Rectangle]] = {}
        self._ending: dict[int, list[Rectangle]] = {}
        self._live: dict[str, _LiveBytes] = {}
        for each in rectangles:
            self._starting.setdefault(each.start, []).append(each)
            self._ending.setdefault(each.end, []).append(each)
            self._live.setdefault(each.memory, _LiveBytes())
        writes = (rows.tensor for turn in run.turns for rows in turn.writes)
        self._own = {*run.inputs, *writes}

    def check(self) -> None:
        run = self._run
        self._enter(0)
        for name in run.inputs:
            self._write(self._all(name), "before turn 0 the caller")
        for number, turn in enumerate(run.turns):
            where = f"turn {number}, {turn.step!r},"
            self._enter(number)
            for rows in turn.reads:
                self._read(rows, where)
            for rows in turn.writes:
                self._write(rows, where)
        for name in run.outputs:
            self._read(self._all(name), "after the last turn the caller")

    def _all(self, name: str) -> Rows:
        return Rows(name, 0, len(self._tensors[name].offsets))

    def _enter(self, turn: int) -> None:
        for each in self._ending.pop(turn, ()):
            self._live[each.memory].remove(each.offset, each.offset + each.size)
        for each in self._starting.pop(turn, ()):
            self._live[each.memory].add(each.offset, each.offset + each.size)

    def _write(self, rows: Rows, where: str) -> None:
        tensor = self._tensors[rows.tensor]
        for row in range(rows.first, rows.stop):
            begin = tensor.offsets[row]
            is_held = tensor.row_bytes == 0 or self._of(tensor).write(
                begin, begin + tensor.row_bytes, _Written(tensor.name, row)
            )
            if not is_held:
                raise UnheldRowsError(
                    f"{where} writes {_shown(tensor, row)}, which lies in no record that is live",
                    [tensor.name],
                )

    def _read(self, rows: Rows, where: str) -> None:
        tensor = self._tensors[rows.tensor]
        for row in range(rows.first, rows.stop):
            if tensor.row_bytes:
                self._read_row(tensor, row, where)

    def _read_row(self, tensor: PlacedRows, row: int, where: str) -> None:
        begin = tensor.offsets[row]
        found = self._of(tensor).read(begin, begin + tensor.row_bytes)
        if found is None:
            raise UnheldRowsError(
                f"{where} reads {_shown(tensor, row)}, which lies in no record that is live",
                [tensor.name],
            )
        for written in found:
            if written is None:
                raise UnwrittenRowsError(
                    f"{where} reads {_shown(tensor, row)} before it is written", [tensor.name]
                )
            if tensor.name in self._own and written != (tensor.name, row):
                other = self._tensors[written.tensor]
                raise OverwrittenRowsError(
                    f"{where} reads {_shown(tensor, row)}, where {_shown(other, written.row)} "
                    "was written after it",
                    sorted({tensor.name, other.name}),
                )

    def _of(self, tensor: PlacedRows) -> "_LiveBytes":
        return self._live.setdefault(tensor.memory, _LiveBytes())


def _shown(tensor: PlacedRows, row: int) -> str:
    return f"{tensor.name!r}" if len(tensor.offsets) == 1 else f"row {row} of {tensor.name!r}"


class _LiveBytes:
    """The bytes of one memory that lie in live records; no stretch reaches over two of them."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._stretches: list[_Stretch] = []

    def add(self, begin: int, end: int) -> None:
        """Begin a record; that it shares no byte with another was checked before."""
        place = bisect_left(self._begins, begin)
        self._put(place, place, [(begin, _Stretch(end, None))])

    def remove(self, begin: int, end: int) -> None:
        self._put(bisect_left(self._begins, begin), bisect_left(self._begins, end), [])

    def write(self, begin: int, end: int, written: _Written) -> bool:
        """Note a write to some bytes; tell whether all of them lie in records."""
        found = self._under(begin, end)
        if found is None:
            return False
        made: list[tuple[int, _Stretch]] = []
        for place in found:
            start, stretch = self._begins[place], self._stretches[place]
            if start < begin:
                made.append((start, _Stretch(begin, stretch.written)))
            made.append((max(start, begin), _Stretch(min(stretch.end, end), written)))
            if stretch.end > end:
                made.append((end, _Stretch(stretch.end, stretch.written)))
        self._put(found.start, found.stop, made)
        return True

    def read(self, begin: int, end: int) -> Iterator[_Written | None] | None:
        """Return the last writes to some bytes, None if some of them lie in no record."""
        found = self._under(begin, end)
        return None if found is None else (self._stretches[place].written for place in found)

    def _under(self, begin: int, end: int) -> range | None:
        """Return the places of the stretches that hold some bytes, None if there is a gap."""
        first = place = bisect_right(self._begins, begin) - 1
        reached = begin
        while reached < end:
            if not 0 <= place < len(self._begins) or self._begins[place] > reached:
                return None
            reached = self._stretches[place].end
            if reached <= begin:
                return None
            place += 1
        return range(first, place)

    def _put(self, first: int, stop: int, made: Sequence[tuple[int, _Stretch]]) -> None:
        self._begins[first:stop] = [begin for begin, _ in made]
        self._stretches[first:stop] = [stretch for _, stretch in made]
