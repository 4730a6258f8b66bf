"""Problems as row-banded networks make them: many small records, and stairs at frontiers.

A chain of layers runs row by row. Each asks those before it for the rows that its window
needs; a row lives from the step that makes it to its last reader. Rows lie anywhere, but the
input, the output and what lies between two regions are contiguous: their rows are stairs of
one record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.units import align_up


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that makes rows from rows.

    Attributes:
        rows: Rows of its result; 1 for one that reads the whole.
        row_size: Bytes of each.
        kernel: Rows of its window; 0 for one that reads all rows before it makes any.
        stride: Rows between two windows.
        sources: Indices of the layers it reads, -1 for the input; the window slides over each.
        in_place: Whether a row of the result takes the place of the last source's.
    """

    rows: int
    row_size: int
    kernel: int
    stride: int
    sources: tuple[int, ...]
    in_place: bool = False


@dataclass(slots=True)
class Network:
    """Layers in the making; each call adds one on top of the last.

    Attributes:
        rows: Of the input.
        width: Pixels of a row of the input.
        channels: Of the input.
        itemsize: Bytes of an element.
    """

    rows: int
    width: int
    channels: int
    itemsize: int = 1
    layers: list[Layer] = field(default_factory=list)
    shapes: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """Index of the last layer, -1 for the input."""
        return len(self.layers) - 1

    def shape(self, index: int) -> tuple[int, int, int]:
        """Return rows, width and channels of a layer's result."""
        return (self.rows, self.width, self.channels) if index < 0 else self.shapes[index]

    def _add(
        self, shape: tuple[int, int, int], kernel: int, stride: int, *sources: int, **more: bool
    ) -> int:
        rows, width, channels = shape
        row_size = width * channels * self.itemsize
        self.layers.append(Layer(rows, row_size, kernel, stride, sources, **more))
        self.shapes.append(shape)
        return self.last

    def convolve(
        self, kernel: int, stride: int, channels: int | None = None, source: int | None = None
    ) -> int:
        """Add a convolution or pooling, padded so that only the stride shrinks it."""
        source = self.last if source is None else source
        rows, width, before = self.shape(source)
        channels = before if channels is None else channels
        return self._add(
            (-(-rows // stride), -(-width // stride), channels), kernel, stride, source
        )

    def add(self, other: int) -> int:
        """Add the sum of an earlier result and the last, in place of the last."""
        return self._add(self.shape(self.last), 1, 1, other, self.last, in_place=True)

    def join(self, other: int) -> int:
        """Add a concatenation of channels, by copying."""
        rows, width, channels = self.shape(self.last)
        return self._add((rows, width, channels + self.shape(other)[2]), 1, 1, other, self.last)

    def enlarge(self, channels: int) -> int:
        """Add a resize to twice the rows and columns with a convolution's channels."""
        rows, width, _ = self.shape(self.last)
        return self._add((2 * rows, 2 * width, channels), 1, -2, self.last)

    def head(self, channels: int) -> int:
        """Add a layer that reads all rows and makes one."""
        return self._add((1, 1, channels), 0, 1, self.last)

    def problem(self, cuts: Sequence[int] = (), alignment: int = 16) -> Problem:
        """Return the records of the network in bands of one row.

        Args:
            cuts: Layers whose result is contiguous, and whole before any that follows runs.
            alignment: Alignment of the records.
        """
        return _Schedule(self, frozenset(cuts)).problem(alignment)


class _Schedule:
    """Rows in the order they are made."""

    def __init__(self, network: Network, cuts: frozenset[int]) -> None:
        self._layers = network.layers
        self._input = Layer(
            network.rows, network.width * network.channels * network.itemsize, 1, 1, ()
        )
        self._cuts = cuts
        self._made = {-1: network.rows} | dict.fromkeys(range(len(network.layers)), 0)
        # By layer and row: first and last step.
        self._lives = {(-1, row): [0, 0] for row in range(network.rows)}
        self._owner: dict[tuple[int, int], tuple[int, int]] = {}
        self._step = 0
        for cut in sorted({*cuts, len(network.layers) - 1}):
            self._pull(cut, network.layers[cut].rows)

    def _pull(self, index: int, upto: int) -> None:
        layer = self._layer(index)
        while self._made[index] < upto:
            row = self._made[index]
            windows = [(source, *self._window(layer, row, source)) for source in layer.sources]
            for source, _, last in windows:
                self._pull(source, last)
            step, self._step = self._step, self._step + 1
            for source, first, last in windows:
                for read in range(first, last):
                    self._lives[self._owner.get((source, read), (source, read))][1] = step
            if layer.in_place:
                place = (layer.sources[-1], row)
                self._owner[index, row] = self._owner.get(place, place)
            else:
                self._lives[index, row] = [step, step]
            self._made[index] += 1

    def _layer(self, index: int) -> Layer:
        return self._input if index < 0 else self._layers[index]

    def _window(self, layer: Layer, row: int, source: int) -> tuple[int, int]:
        rows = self._layer(source).rows
        if layer.kernel == 0:
            return 0, rows
        if layer.stride < 0:
            return row // -layer.stride, row // -layer.stride + 1
        before = max(0, (layer.rows - 1) * layer.stride + layer.kernel - rows) // 2
        first = row * layer.stride - before
        return max(0, first), min(rows, first + layer.kernel)

    def problem(self, alignment: int) -> Problem:
        contiguous = {-1, len(self._layers) - 1, *self._cuts}
        owners = {index: self._owner.get((index, 0), (index, 0))[0] for index in contiguous}
        for row in range(self._layers[-1].rows):
            self._lives[owners[len(self._layers) - 1], row][1] = self._step - 1
        records = []
        for index in sorted({*owners.values()}):
            layer, outline = self._layer(index), []
            for row in range(layer.rows):
                start, last = self._lives.pop((index, row))
                outline.append(Stair(row * layer.row_size, layer.row_size, start, last + 1))
            size = align_up(layer.rows * layer.row_size, alignment)
            start, end = min(each.start for each in outline), max(each.end for each in outline)
            stairs = tuple(outline) if len(outline) > 1 else ()
            records.append(
                UsageRecord(f"tensor {index}", size, start, end, alignment, outline=stairs)
            )
        for (index, row), (start, last) in self._lives.items():
            size = align_up(self._layer(index).row_size, alignment)
            records.append(UsageRecord(f"{index}.{row}", size, start, last + 1, alignment))
        return Problem(tuple(sorted(records, key=lambda record: record.start)))


def mobilenet_v2(size: int = 224, itemsize: int = 1, width: float = 1.0) -> Network:
    """Return MobileNet v2."""

    def scaled(channels: int) -> int:
        return max(8, round(channels * width / 8) * 8)

    network = Network(size, size, 3, itemsize)
    network.convolve(3, 2, scaled(32))
    network.convolve(3, 1)
    network.convolve(1, 1, scaled(16))
    for expansion, channels, repeats, first_stride in (
        (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for repeat in range(repeats):
            begin = network.last
            stride = first_stride if repeat == 0 else 1
            network.convolve(1, 1, expansion * network.shape(begin)[2])
            network.convolve(3, stride)
            network.convolve(1, 1, scaled(channels))
            if repeat:
                network.add(begin)
    network.convolve(1, 1, 1280)
    network.head(1280)
    network.head(1000)
    return network


def mobilenet_v1(size: int, width: float, channels: int = 3, itemsize: int = 1) -> Network:
    """Return MobileNet v1."""
    network = Network(size, size, channels, itemsize)
    network.convolve(3, 2, int(32 * width))
    for made, stride in (
        (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2),
        (1024, 1),
    ):  # fmt: skip
        network.convolve(3, stride)
        network.convolve(1, 1, int(made * width))
    network.head(int(1024 * width))
    network.head(2)
    return network


def resnet_8(itemsize: int = 1) -> Network:
    """Return the ResNet of MLPerf Tiny."""
    network = Network(32, 32, 3, itemsize)
    network.convolve(3, 1, 16)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        begin = network.last
        network.convolve(3, stride, channels)
        inner = network.convolve(3, 1, channels)
        if stride == 1:
            network.add(begin)
        else:
            network.convolve(1, stride, channels, begin)
            network.add(inner)
    network.head(64)
    network.head(10)
    return network


def u_net(size: int, channels: int, depth: int = 4, itemsize: int = 4) -> Network:
    """Return a U-Net whose output is contiguous."""
    network = Network(size, size, 3, itemsize)
    skips = []
    for level in range(depth):
        network.convolve(3, 1, channels << level)
        skips.append(network.convolve(3, 1))
        network.convolve(2, 2)
    network.convolve(3, 1, channels << depth)
    network.convolve(3, 1)
    for level in reversed(range(depth)):
        network.enlarge(channels << level)
        network.join(skips[level])
        network.convolve(3, 1, channels << level)
        network.convolve(3, 1)
    network.convolve(1, 1, 1)
    return network
