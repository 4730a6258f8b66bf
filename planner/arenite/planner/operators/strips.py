"""Steps that run as one, a row of the last's result at a time, in strips of columns.

Some of them slide a window over rows; the others make each row from the same row. The images
between them are there for one row of the result and one strip at a time, and are made again where
windows share them::

    x             rows of a block     row of the result
    |.........|   |....|              |..|
    |.........| > |....| > one row >  |..|  then the next strip, and the next row
    |.........|   |....|

A strip is an ordinary chain of steps over narrower images: `NarrowLayer`. The rows that a window
reads for each row that it makes follow one another there, those that it shares written out again;
so the window moves on by as many rows as it spans, and every row is made once. Padding lies above
the first and below the last row of an image only: where a window reaches beyond the operand in
between, as the lower of two may at its last rows, other strips make the rows from there on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from arenite.planner.operators.operator import Operands, Operator, Region, whole
from arenite.planner.operators.windows import Window
from arenite.planner.sizes import depends
from arenite.planner.tensors import Tensor, TensorKind, row_bytes

_MOST_PARTS = 4
"""Ranges of rows that strips of their own make."""


@dataclass(frozen=True, slots=True)
class WideLayer:
    """A step as it was before it became part of another."""

    name: str
    operator: Operator
    operands: Operands


@dataclass(frozen=True, slots=True)
class NarrowLayer:
    """A layer as it runs in one strip.

    Attributes:
        firsts: For each row of the strip the first row of its result that is made for it, and
            the row after the last.
    """

    name: str
    operator: Operator
    operands: Operands
    firsts: tuple[int, ...]

    @property
    def source(self) -> Tensor:
        """The image that it reads."""
        source = self.operands.source
        assert source is not None
        return source

    @property
    def result(self) -> Tensor:
        """The image that it makes."""
        result = self.operands.result
        assert result is not None
        return result

    @property
    def bytes_at_once(self) -> int:
        """Most bytes of its result that are made for one row of the strip."""
        most = max(stop - first for first, stop in zip(self.firsts, self.firsts[1:], strict=False))
        return most * row_bytes(self.result)


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows and columns of the result, and the layers that make them.

    Attributes:
        rows: The rows.
        first: The first of the columns.
        read_from: The first of the columns of the operand that they depend on.
        taken: For each row the rows of the operand that the first layer reads, shared ones again.
        layers: The layers that make them.
    """

    rows: range
    first: int
    read_from: int
    taken: tuple[tuple[int, ...], ...]
    layers: tuple[NarrowLayer, ...]

    @property
    def scratch(self) -> int:
        """Most bytes between two layers that are there at once, for one row of the result."""
        between = [each.bytes_at_once for each in self.layers[:-1]]
        return max(map(sum, zip([0, *between], [*between, 0], strict=True)))


@dataclass(frozen=True, slots=True)
class Strips(Operator):
    """Layers of which each reads the one before, run as one.

    The first input is that of the first layer, the others are constants.

    Attributes:
        strips: The strips, from top to bottom, and from left to right.
        blocks: For each row of the result the rows of the operand that it depends on, from the
            first to before the second.
    """

    layers: tuple[WideLayer, ...]
    strips: tuple[Strip, ...]
    blocks: tuple[tuple[int, int], ...]

    @property
    def label(self) -> str:
        """Name of the operator of the first layer, which computes the repeated columns."""
        return self.layers[0].operator.label

    @property
    def computes_as(self) -> type[Operator]:
        return self.layers[0].operator.computes_as

    @property
    def num_across(self) -> int:
        """Number of strips that make a row of the result."""
        return sum(strip.rows == self.strips[0].rows for strip in self.strips)

    def multiply_adds(self, operands: Operands) -> int:
        """Return those of all strips; repeated rows and columns count again."""
        return sum(
            each.operator.multiply_adds(each.operands)
            for strip in self.strips
            for each in strip.layers
        )

    def scratch(self, operands: Operands) -> int:
        return self.row_scratch(operands)

    def row_scratch(self, operands: Operands) -> int:
        return max(strip.scratch for strip in self.strips)

    def turns_a_row(self, operands: Operands) -> int:
        return self.num_across * len(self.layers)

    def makes_rows(self, operands: Operands) -> bool:
        return True

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the rows that rows of the result depend on, and the whole of other inputs."""
        tensor = operands.inputs[position]
        assert tensor is not None
        found = list(whole(tensor))
        if position == 0:
            first, stop = region[1]
            found[1] = (self.blocks[first][0], self.blocks[stop - 1][1])
        return tuple(found)


def in_strips(layers: Sequence[WideLayer], width: int) -> Strips | None:
    """Return layers as one operator, None if they cannot run in strips.

    Args:
        layers: At least one; each but the first reads the result of the one before, and constants.
        width: Columns of a strip of the result, at least 1.
    """
    windows: list[tuple[Window, Window]] = []
    for layer in layers:
        tensors = (layer.operands.source, layer.operands.result)
        if any(depends(length) for each in tensors if each is not None for length in each.shape):
            return None  # the last strip would end elsewhere at each size
        sliding = layer.operator.sliding(layer.operands)
        if sliding is None or (sliding.row_axis, sliding.channel_axis) != (1, 3):
            return None
        windows.append((sliding.rows, sliding.columns))
    down = [rows for rows, _ in windows]
    if all(map(_keeps_rows, down)):
        return None
    parts = _parts(down)
    if parts is None:
        return None
    strips: list[Strip] = []
    columns = windows[-1][1].count
    for part in parts:
        for first in range(0, columns, width):
            strip = _strip(layers, windows, part, (first, min(first + width, columns)))
            if strip is None:
                return None
            strips.append(strip)
    taken = (rows.taken[0] for part in parts for rows in part)
    return Strips(tuple(layers), tuple(strips), tuple((each[0], each[-1] + 1) for each in taken))


def _keeps_rows(rows: Window) -> bool:
    return (rows.kernel, rows.stride, rows.before) == (1, 1, 0) and rows.count == rows.length


def _taps(window: Window) -> int:
    """Return how many rows a window spans."""
    return (window.kernel - 1) * window.dilation + 1


@dataclass(frozen=True, slots=True)
class _Row:
    """What each layer makes and reads for one row of the last's result.

    Attributes:
        row: The row.
        made: Rows of each layer's result.
        taken: Rows of each layer's operand, those that windows share again.
        above: How many more rows each layer's first window spans above the operand.
        below: How many more its last window spans below it.
    """

    row: int
    made: tuple[range, ...]
    taken: tuple[tuple[int, ...], ...]
    above: tuple[int, ...]
    below: tuple[int, ...]


def _parts(windows: Sequence[Window]) -> list[list[_Row]] | None:
    """Return the rows of the result in ranges, so that only the ends of each reach into padding.

    None if a row lies on padding alone, a row between two layers is read by two windows, or there
    are too many ranges.
    """
    parts: list[list[_Row]] = []
    for row in range(windows[-1].count):
        found = _row(windows, row)
        if found is None:
            return None
        if parts and not any(parts[-1][-1].below) and not any(found.above):
            parts[-1].append(found)
        else:
            parts.append([found])
            if len(parts) > _MOST_PARTS:
                return None
    return parts


def _row(windows: Sequence[Window], row: int) -> _Row | None:
    """Return what each layer makes and reads for a row, None if these rows do not fit."""
    made, taken = [range(row, row + 1)], list[tuple[int, ...]]()
    above, below = list[int](), list[int]()
    for window in reversed(windows):
        rows: list[int] = []
        own = made[-1]
        for each in own:
            start = each * window.stride - window.before
            stop = start + _taps(window)
            reached = range(max(0, start), min(stop, window.length))
            is_cut_above, is_cut_below = start < 0, stop > window.length
            is_cut_between = (is_cut_above and each > own[0]) or (is_cut_below and each < own[-1])
            if not reached or is_cut_between:
                return None
            rows += reached
        above.append(max(0, window.before - own[0] * window.stride))
        end = own[-1] * window.stride - window.before + _taps(window)
        below.append(max(0, end - window.length))
        taken.append(tuple(rows))
        if len(taken) < len(windows):
            if rows != list(range(rows[0], rows[-1] + 1)):
                return None
            made.append(range(rows[0], rows[-1] + 1))
    return _Row(
        row, tuple(reversed(made)), tuple(reversed(taken)), tuple(reversed(above)),
        tuple(reversed(below)),
    )  # fmt: skip


def _strip(
    layers: Sequence[WideLayer],
    windows: Sequence[tuple[Window, Window]],
    part: Sequence[_Row],
    columns: tuple[int, int],
) -> Strip | None:
    """Return the layers as they make some columns of some rows."""
    found: list[NarrowLayer] = []
    made, label = columns, f"columns {columns[0]} to {columns[1]}"
    if part[0].row:
        label += f" from row {part[0].row}"
    for index in reversed(range(len(layers))):
        layer, (down, over) = layers[index], windows[index]
        read = over.read(*made)
        left = max(0, over.before - made[0] * over.stride)
        right = max(0, (made[1] - 1) * over.stride - over.before + _taps(over) - over.length)
        operator = layer.operator.with_window(
            _taps(down), (part[0].above[index], right, part[-1].below[index], left)
        )
        source, result = layer.operands.source, layer.operands.result
        if operator is None or source is None or result is None or read[0] == read[1]:
            return None
        firsts = tuple(accumulate((len(each.made[index]) for each in part), initial=0))
        num_taken = sum(len(each.taken[index]) for each in part)
        operands = Operands(
            (_cut(source, label, num_taken, read), *layer.operands.inputs[1:]),
            (_cut(result, label, firsts[-1], made),),
        )
        found.append(NarrowLayer(f"{layer.name}/{label}", operator, operands, firsts))
        made = read
    return Strip(
        range(part[0].row, part[-1].row + 1), columns[0], made[0],
        tuple(each.taken[0] for each in part), tuple(reversed(found)),
    )  # fmt: skip


def _cut(tensor: Tensor, label: str, num_rows: int, columns: tuple[int, int]) -> Tensor:
    """Return columns of a tensor, as many rows high, by the name of the strip."""
    name = f"{tensor.name}/{label}"
    shape = (1, num_rows, columns[1] - columns[0], tensor.shape[3])
    return replace(tensor, name=name, shape=shape, kind=TensorKind.ACTIVATION, alias=None)
