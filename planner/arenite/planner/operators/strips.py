"""Steps that run as one, a row of the last's result at a time, in strips of columns.

One of them slides a window over rows; the others make each row from the same row. What lies
between them is there for one row of the result and one strip at a time, and is made again where
windows share it::

    x             rows of a block     row of the result
    |.........|   |....|              |..|
    |.........| > |....| > one row >  |..|  then the next strip, and the next row
    |.........|   |....|

A strip is an ordinary chain of steps over narrower images: `NarrowLayer`. The rows that the window
reads for each row of the result follow one another there, those that it shares written out again;
so the window moves on by as many rows as it spans, and every row is made once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arenite.planner.operators.operator import Operands, Operator, Region, whole
from arenite.planner.operators.windows import Window
from arenite.planner.sizes import depends
from arenite.planner.tensors import Tensor, TensorKind, row_bytes


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
        taps: Rows of its result that are made together, for one row of the last layer's.
    """

    name: str
    operator: Operator
    operands: Operands
    taps: int

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


@dataclass(frozen=True, slots=True)
class Strip:
    """Columns of the result, and the layers that make them.

    Attributes:
        first: The first of the columns.
        read_from: The first of the columns of the operand that they depend on.
        layers: The layers that make them.
    """

    first: int
    read_from: int
    layers: tuple[NarrowLayer, ...]

    @property
    def scratch(self) -> int:
        """Most bytes between two layers that are there at once, for one row of the result."""
        between = [each.taps * row_bytes(each.result) for each in self.layers[:-1]]
        return max(map(sum, zip([0, *between], [*between, 0], strict=True)))


@dataclass(frozen=True, slots=True)
class Strips(Operator):
    """Layers of which each reads the one before, run as one.

    The first input is that of the first layer, the others are constants.

    Attributes:
        strips: The strips, from left to right.
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

    def multiply_adds(self, operands: Operands) -> int:
        """Return those of all strips; repeated columns count again."""
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
        return len(self.strips) * len(self.layers)

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
    moving = [index for index, (rows, _) in enumerate(windows) if not _keeps_rows(rows)]
    if len(moving) != 1:
        return None
    blocks = _blocks(windows[moving[0]][0])
    if blocks is None:
        return None
    strips: list[Strip] = []
    columns = windows[-1][1].count
    for first in range(0, columns, width):
        strip = _strip(layers, windows, moving[0], blocks, (first, min(first + width, columns)))
        if strip is None:
            return None
        strips.append(strip)
    return Strips(tuple(layers), tuple(strips), blocks)


def _keeps_rows(rows: Window) -> bool:
    return (rows.kernel, rows.stride, rows.before) == (1, 1, 0) and rows.count == rows.length


def _taps(window: Window) -> int:
    """Return how many rows a window spans."""
    return (window.kernel - 1) * window.dilation + 1


def _blocks(rows: Window) -> tuple[tuple[int, int], ...] | None:
    """Return the rows under each position of a window.

    None if one lies on padding alone, or another than the first and the last reaches into it.
    """
    blocks = tuple(rows.read(row, row + 1) for row in range(rows.count))
    last = rows.count - 1
    for row, (low, high) in enumerate(blocks):
        start = row * rows.stride - rows.before
        is_cut_above, is_cut_below = low > start, high < start + _taps(rows)
        if low == high or (is_cut_above and row > 0) or (is_cut_below and row < last):
            return None
    return blocks


def _strip(
    layers: Sequence[WideLayer],
    windows: Sequence[tuple[Window, Window]],
    moving: int,
    blocks: Sequence[tuple[int, int]],
    columns: tuple[int, int],
) -> Strip | None:
    """Return the layers as they make some columns; the window of `moving` slides over rows."""
    num_rows, taps = len(blocks), _taps(windows[moving][0])
    num_unrolled = sum(high - low for low, high in blocks)
    above = windows[moving][0].before
    below = num_rows * taps - num_unrolled - above
    found: list[NarrowLayer] = []
    made, label = columns, f"columns {columns[0]} to {columns[1]}"
    for index in reversed(range(len(layers))):
        layer, (_, over) = layers[index], windows[index]
        read = over.read(*made)
        left = max(0, over.before - made[0] * over.stride)
        right = max(0, (made[1] - 1) * over.stride - over.before + _taps(over) - over.length)
        is_moving = index == moving
        operator = layer.operator.with_window(
            taps if is_moving else 1,
            (above if is_moving else 0, right, below if is_moving else 0, left),
        )
        source, result = layer.operands.source, layer.operands.result
        if operator is None or source is None or result is None or read[0] == read[1]:
            return None
        operands = Operands(
            (
                _cut(source, label, num_unrolled if index <= moving else num_rows, read),
                *layer.operands.inputs[1:],
            ),
            (_cut(result, label, num_unrolled if index < moving else num_rows, made),),
        )
        found.append(
            NarrowLayer(f"{layer.name}/{label}", operator, operands, taps if index < moving else 1)
        )
        made = read
    return Strip(columns[0], made[0], tuple(reversed(found)))


def _cut(tensor: Tensor, label: str, num_rows: int, columns: tuple[int, int]) -> Tensor:
    """Return columns of a tensor, as many rows high, by the name of the strip."""
    name = f"{tensor.name}/{label}"
    shape = (1, num_rows, columns[1] - columns[0], tensor.shape[3])
    return replace(tensor, name=name, shape=shape, kind=TensorKind.ACTIVATION, alias=None)
