"""Convolutions of images, and the filters and gradients that training steps make in the run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from arenite.planner import DType, Tensor
from arenite.planner.operators import (
    Along,
    Operands,
    Region,
    Sliding,
    Spread,
    same_layout,
    sliding_over,
)
from arenite.planner.units import align_up
from arenite.runtime.operators.base import (
    FLOAT_BYTES,
    NO_PADDING,
    PANEL,
    UNSTORED,
    Clamped,
    Pair,
    RuntimeOperator,
    Sides,
    has_16_bits,
    has_fixed_top,
    makes_one_image,
    padding_at_border,
    without_padding,
)
from arenite.runtime.operators.halves import has_halves

MOST_TILE_ELSEWHERE = 4
"""Rows of the tiles that processors other than 64-bit ARM take in place of larger ones, of 3 x 3
filters; others have no tiles there."""
_MOST_POINTS = 8
"""Points of a tile in each direction."""
_PRODUCT_COLUMNS = 2 * PANEL
_MOST_FILTER_BYTES = 5 << 19
"""Most bytes of transformed panels of the filter, unless a few panels take more."""
_MANY_INPUTS = 256
"""From so many input channels on, twice as many tiles are made together."""
_TILES_OF_LINES = 4
"""How many times as many tiles are made together if they are lines."""
_LEAST_NARROWED = 4
"""Results of a tile from which on it can be narrow."""
_LEAST_TILES = 6
"""Tiles that are made together at least, unless there are fewer."""


@dataclass(frozen=True, slots=True)
class Winograd:
    """A convolution by tiles, whose working memory holds tiles that are taken apart and panels.

    Attributes:
        tile: Results made together in each direction in which the filter has several taps.
        kernel: Rows and columns of the filter.
        inputs: Channels of the image.
        outputs: Channels of the result.
        rows: Rows of the result.
        columns: Columns of the result.
    """

    tile: int
    kernel: Pair
    inputs: int
    outputs: int
    rows: int
    columns: int

    @classmethod
    def each(
        cls, tile: int, kernel: Pair, inputs: int, outputs: int, rows: int, columns: int
    ) -> "tuple[Winograd, ...]":
        """Return the convolution by the tiles that processors take where these are stated."""
        elsewhere = min(tile, MOST_TILE_ELSEWHERE)
        taken = [tile, elsewhere] if elsewhere in cls.sizes(kernel) else [tile]
        return tuple(
            cls(each, kernel, inputs, outputs, rows, columns) for each in dict.fromkeys(taken)
        )

    @staticmethod
    def sizes(kernel: Pair) -> tuple[int, ...]:
        """Return the tiles that a filter can have."""
        if kernel == (3, 3):
            return (2, 4, 6)
        if kernel == (5, 5) or (min(kernel) == 1 and max(kernel) in {3, 5, 7}):
            return (_MOST_POINTS + 1 - max(kernel),)
        return ()

    @property
    def num_points(self) -> int:
        """Points of a tile: in each direction its results and the taps of the filter, less one."""
        return math.prod(1 if taps == 1 else self.tile + taps - 1 for taps in self.kernel)

    @property
    def tiles(self) -> int:
        """Tiles of the result."""
        return math.prod(count for count, _ in self._along())

    @property
    def products(self) -> int:
        """Points of all tiles: the last ones may be narrow, by two results and two points."""
        return math.prod(points for _, points in self._along())

    def _along(self) -> Iterator[tuple[int, int]]:
        """Yield the tiles in each direction, and their points."""
        for length, taps in zip((self.rows, self.columns), self.kernel, strict=True):
            size = 1 if taps == 1 else self.tile
            count = -(-length // size)
            narrow = min(count, (count * size - length) // 2) if size >= _LEAST_NARROWED else 0
            yield count, count * (size + taps - 1) - 2 * narrow

    @property
    def blocks(self) -> int:
        """In how many blocks tiles are made if there is enough working memory."""
        together = 28 if self.inputs < _MANY_INPUTS else 56
        return -(-self.tiles // (together * (_TILES_OF_LINES if min(self.kernel) == 1 else 1)))

    def scratch(self, threads: int) -> int:
        """Return the bytes that are of use for so many threads: each has a block of its own."""
        least = 2 if self.blocks == 1 else 4
        panels = max(_MOST_FILTER_BYTES // self._panel // 2 * 2, least)
        block = self._block(-(-self.tiles // self.blocks))
        return min(panels, -(-self.outputs // PANEL)) * self._panel + threads * block

    def most_scratch(self, threads: int) -> int:
        """Return the bytes with which no tile is taken apart twice."""
        panels = -(-self.outputs // PANEL) * self._panel
        block = self._block(-(-self.tiles // self.blocks))
        return min(self.scratch(max(threads, self.blocks)), panels + threads * block)

    def least_scratch(self, threads: int) -> int:
        """Return the bytes with which tiles and panels are transformed most often."""
        return self._panel + threads * self._block(min(self.tiles, _LEAST_TILES))

    @property
    def _panel(self) -> int:
        return FLOAT_BYTES * self.num_points * (self.inputs + 1) * PANEL

    def _block(self, tiles: int) -> int:
        together = align_up(tiles, 2)
        points = align_up(self.inputs, PANEL) * together + PANEL
        return FLOAT_BYTES * self.num_points * (points + together * _PRODUCT_COLUMNS + PANEL)


class Convolution(Clamped):
    """Multiplies its first input by weights, its second; adds a bias, its third; and an addend.

    The addend has the shape of the result: floats, which are added before the result is clamped.
    Bias and addend are optional. The fifth input is the scale of each output channel's sums, over
    that of the result, where these are integers.

    Of 8-bit integers with a packed filter the result may be floats, or sums of 32 bits, too. Then
    the sixth and seventh input are scale and zero point of the first, which may be made in the
    run, and the eighth the zero points of the weights of each output channel; if left out, 1, the
    zero point that the first states, or 0, and 0. Floats have a bias of floats and need the fifth
    input, the scales of the weights. Of integers, with weights without a zero point, the addend
    may be sums of 32 bits, too: they are added to the sums before these are scaled.
    """

    __slots__ = ()

    ADDEND: ClassVar[int] = 3
    """Position of the addend."""
    SCALES: ClassVar[int] = 4
    """Position of the scales of the sums."""
    SUMMED_DEPTH: ClassVar[int] = 512
    """Depth of which sums of weights are made at a time."""

    def sum_scratch(self, operands: Operands) -> tuple[int, int]:
        """Return the bytes of sums of a pair of panels, and the pairs; no pairs if it cannot.

        With sums of weights it takes seven products, after Strassen, in place of eight.
        """
        weights, result = filter_of(operands, 3, 5), operands.result
        if weights is None or weights.dtype is not DType.FLOAT32 or has_halves(operands):
            return 0, 0
        assert result is not None
        depth = math.prod(weights.shape[1:-1])
        pairs, odd = divmod(result.shape[-1], 2 * PANEL)
        if odd or depth % 16 or weights.shape[0] != 2 * pairs:
            return 0, 0
        return 2 * PANEL * min(depth, self.SUMMED_DEPTH) * FLOAT_BYTES, pairs

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the addend, whose elements are read before those of the result are written."""
        addend, source = operands.input(self.ADDEND), operands.source
        if addend is None or source is None or _storage(addend) == _storage(source):
            return ()
        return (self.ADDEND,) if same_layout(addend, operands.result) else ()

    def reads_rows(self, position: int) -> bool:
        """Tell whether it is the image or the addend."""
        return position in (0, self.ADDEND)

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the same region of the addend."""
        if position == self.ADDEND:
            return region
        return super().input_region(operands, position, region)


def _storage(tensor: Tensor) -> str:
    return tensor.name if tensor.alias is None else tensor.alias.tensor


def filter_of(operands: Operands, *ranks: int) -> Tensor | None:
    """Return the weights of a step, None if they have none of these ranks."""
    weights = operands.input(1)
    return weights if weights is not None and len(weights.shape) in ranks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2D(Convolution):
    """Reads x, a filter Cout, kh, kw, Cin / groups, an optional bias, and an optional addend.

    In floating point the filter is packed: panels, kh, kw, Cin / groups, 16; and it is a constant,
    or a tensor inside a window that an earlier LoadWeights filled. A filter of integers may be
    packed too: panels, 1 + quads, 64; then `kernel` states kh and kw.

    With a `tile` it is computed after Winograd, by tiles of so many rows and columns, in working
    memory for `tile_threads` threads: floats, strides and dilations of 1, one group; 2, 4 or 6 for
    a filter of 3 x 3, 4 for 5 x 5, and 6, 4 or 2 for one row or column of 3, 5 or 7 taps. On the
    processor that the program is tuned on, `tuned_tile` and `tuned_threads` take their place;
    working memory is enough for either. It has `tile_scratch` bytes; 0 is as many as are of use
    for these threads. Tiles may depend on sizes. On processors other than 64-bit ARM tiles of 4
    take the place of those of 6, in the same working memory, and filters other than 3 x 3 are
    computed directly.

    Without a tile floats may be multiplied after `strassen`, by sums of weights in `tile_scratch`
    bytes, if any.
    """

    number: ClassVar[int] = 1
    widens_filter: ClassVar[bool] = True

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = NO_PADDING
    groups: int = 1
    kernel: Pair = (0, 0)
    tile: int = 0
    tile_threads: int = 1
    tuned_tile: int = 0
    tuned_threads: int = 1
    strassen: bool = False
    tile_scratch: int = field(default=0, metadata={UNSTORED: True})

    def loaded_inputs(self) -> tuple[int, ...]:
        return (1,) if self.groups == 1 else ()

    def sliding(self, operands: Operands) -> Sliding | None:
        kernel = self._window(operands)
        if kernel is None:
            return None
        return sliding_over(
            operands.source, operands.result, kernel=kernel, strides=self.strides,
            dilations=self.dilations, groups=self.groups,
            before=(self.padding[0], self.padding[3]),
        )  # fmt: skip

    def with_window(self, row_stride: int, padding: Sides) -> "Conv2D":
        return replace(self, strides=(row_stride, self.strides[1]), padding=padding)

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Conv2D":
        return replace(self, padding=without_padding(self.padding, along.axis))

    def cut_at_border(self, along: Along, made: Pair, taken: Pair) -> "Conv2D":
        return replace(self, padding=padding_at_border(self.padding, along, made, taken))

    def multiply_adds(self, operands: Operands) -> int:
        kernel, source, result = self._window(operands), operands.source, operands.result
        if kernel is None or source is None or result is None:
            return 0
        return result.num_elements * math.prod(kernel) * (source.shape[-1] // self.groups)

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of tiles that are taken apart, and of panels of the filter."""
        if self.tile_scratch:
            return self.tile_scratch
        found = (layer.scratch(threads) for layer, threads in self._tiled(operands))
        return max(found, default=0)

    def least_scratch(self, operands: Operands) -> int:
        """Return the least bytes that tiles can be made with."""
        found = (layer.least_scratch(threads) for layer, threads in self._tiled(operands))
        return max(found, default=0)

    def most_scratch(self, operands: Operands) -> int:
        """Return the bytes beyond which tiles take no less time, on any number of threads."""
        return max(
            (layer.most_scratch(threads) for layer, threads in self._tiled(operands)), default=0
        )

    def _tiled(self, operands: Operands) -> Iterator[tuple[Winograd, int]]:
        """Yield the layer by each choice of tiles, and the threads of the choice."""
        if not (self.tile or self.tuned_tile):
            return
        source, result, kernel = operands.source, operands.result, self._window(operands)
        if source is None or result is None or kernel is None or self.sliding(operands) is None:
            return
        _, rows, columns, outputs = result.shape
        chosen = ((self.tile, self.tile_threads), (self.tuned_tile, self.tuned_threads))
        for tile, threads in chosen:
            if tile:  # of a range of sizes, those at the highest
                for each in Winograd.each(
                    int(tile), kernel, source.shape[3], outputs, int(rows), int(columns)
                ):
                    yield each, threads

    def tiles(self, operands: Operands) -> tuple[int, ...]:
        """Return the tiles by which it can be computed after Winograd."""
        weights = filter_of(operands, 5)
        if (
            weights is None
            or (self.strides, self.dilations, self.groups) != ((1, 1), (1, 1), 1)
            or has_halves(operands)
            or self.sliding(operands) is None
        ):
            return ()
        return Winograd.sizes((weights.shape[1], weights.shape[2]))

    def makes_rows(self, operands: Operands) -> bool:
        is_image = self.sliding(operands) is not None and makes_one_image(operands)
        return is_image and has_fixed_top(self.padding)

    def has_kernel_by_rows(self, operands: Operands) -> bool:
        """Tell whether its filter is packed or of 16-bit images, and it is not made by tiles."""
        if self.tile or self.tuned_tile:
            return False
        return filter_of(operands, 3, 5) is not None or has_16_bits(operands)

    def _window(self, operands: Operands) -> Pair | None:
        weights = filter_of(operands, 3, 4, 5)
        if weights is None:
            return None
        return self.kernel if len(weights.shape) == 3 else (weights.shape[1], weights.shape[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwiseConv2D(Convolution):
    """Reads x, a filter 1, kh, kw, C * multiplier, an optional bias, and an optional addend."""

    number: ClassVar[int] = 2

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = NO_PADDING

    def sliding(self, operands: Operands) -> Sliding | None:
        weights, source = filter_of(operands, 4), operands.source
        if weights is None or source is None:
            return None
        kernel = weights.shape[1:3]
        return sliding_over(
            source, operands.result, kernel=(kernel[0], kernel[1]), strides=self.strides,
            dilations=self.dilations, groups=source.shape[-1],
            before=(self.padding[0], self.padding[3]),
        )  # fmt: skip

    def with_window(self, row_stride: int, padding: Sides) -> "DepthwiseConv2D":
        return replace(self, strides=(row_stride, self.strides[1]), padding=padding)

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "DepthwiseConv2D":
        return replace(self, padding=without_padding(self.padding, along.axis))

    def cut_at_border(self, along: Along, made: Pair, taken: Pair) -> "DepthwiseConv2D":
        return replace(self, padding=padding_at_border(self.padding, along, made, taken))

    def multiply_adds(self, operands: Operands) -> int:
        weights, result = filter_of(operands, 4), operands.result
        if weights is None or result is None:
            return 0
        return result.num_elements * weights.shape[1] * weights.shape[2]

    def makes_rows(self, operands: Operands) -> bool:
        is_image = self.sliding(operands) is not None and makes_one_image(operands)
        return is_image and has_fixed_top(self.padding)

    def has_kernel_by_rows(self, operands: Operands) -> bool:
        """Tell whether it computes in floats, 16 bits, or integers that have scales of sums."""
        weights = filter_of(operands, 4)
        is_float = weights is not None and weights.dtype is DType.FLOAT32
        return is_float or has_16_bits(operands) or operands.input(self.SCALES) is not None


TRANSPOSED_PIXELS = 56
"""Pixels that a transposed convolution of few outputs multiplies at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedConv2D(Clamped):
    """Reads x, a filter Cout, kh, kw, Cin / groups, and an optional bias.

    `adjustment` rows and columns are added at the bottom and at the right. With `by_inputs` the
    filter, of floats, is Cin, Cout / groups, kh, kw and may be made in the run: then it is packed
    in working memory.
    """

    number: ClassVar[int] = 3

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Sides = NO_PADDING
    adjustment: Pair = (0, 0)
    groups: int = 1
    by_inputs: bool = False

    def multiply_adds(self, operands: Operands) -> int:
        weights, source = filter_of(operands, 4), operands.source
        if weights is None or source is None or not source.shape or not source.shape[-1]:
            return 0
        return source.num_elements * weights.num_elements // source.shape[-1]

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of a filter packed in the run, or of the products of some pixels.

        A packed filter is that of one phase of the strides. Products are made of floats and few
        outputs with windows of one row: those of a pixel with all taps.
        """
        weights, source = filter_of(operands, 4), operands.source
        if weights is None or source is None or len(source.shape) != 4:
            return 0
        if not self.by_inputs:
            outputs, rows, taps, _ = weights.shape
            is_few = self.groups == 1 and outputs < PANEL and rows == 1
            if not is_few or source.dtype is not DType.FLOAT32 or self._fills_panels(operands):
                return 0
            return FLOAT_BYTES * outputs * taps * min(TRANSPOSED_PIXELS, source.shape[2])
        inputs, outputs = source.shape[-1] // self.groups, weights.shape[1]
        taps = math.prod(
            -(-taps // (stride // math.gcd(stride, dilation)))
            for taps, stride, dilation in zip(
                weights.shape[2:], self.strides, self.dilations, strict=True
            )
        )
        if inputs == outputs == 1:
            return FLOAT_BYTES * self.groups * taps
        return FLOAT_BYTES * self.groups * align_up(outputs, PANEL) * inputs * taps

    def row_scratch(self, operands: Operands) -> int:
        if self.computes_halves(operands):
            return RuntimeOperator.row_scratch(self, operands)
        return self.kernel_scratch(operands)

    def _fills_panels(self, operands: Operands) -> bool:
        """Tell whether the phases of the columns have the same pixels and fill a panel."""
        weights, result, stride = filter_of(operands, 4), operands.result, self.strides[1]
        if weights is None or result is None or weights.shape[0] * stride < PANEL:
            return False
        sizes = (weights.shape[2], self.padding[3], result.shape[2])
        return self.dilations[1] == 1 and not any(size % stride for size in sizes)

    def makes_rows(self, operands: Operands) -> bool:
        source, result = operands.source, operands.result
        if self.by_inputs or filter_of(operands, 4) is None or source is None or result is None:
            return False
        is_image = len(source.shape) == len(result.shape) == 4 and makes_one_image(operands)
        return is_image and has_fixed_top(self.padding)

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the region of the image whose elements reach the region of the result."""
        # Not super(): a dataclass with slots is a copy of the class that this names.
        everything = Clamped.input_region(self, operands, position, region)
        weights, source, result = filter_of(operands, 4), operands.source, operands.result
        if position or self.by_inputs or weights is None or source is None or result is None:
            return everything
        if len(source.shape) != 4 or len(result.shape) != 4 or 0 in result.shape:
            return everything
        rows, columns = (
            self._read(
                axis, weights.shape[1 + axis], int(source.shape[1 + axis]), region[1 + axis]
            )
            for axis in range(2)
        )
        outputs, inputs = result.shape[3] // self.groups, source.shape[3] // self.groups
        start, stop = region[3]
        channels = (start // outputs * inputs, -(-stop // outputs) * inputs)
        return (region[0], rows, columns, channels)

    def along(self, operands: Operands, axes: Sequence[int | None]) -> Along | None:
        """Return how rows or columns of the image add to those of the result."""
        weights, source, result = filter_of(operands, 4), operands.source, operands.result
        axis = axes[0]
        if self.by_inputs or weights is None or source is None or result is None:
            return None
        if axis not in (1, 2) or any(each is not None for each in axes[1:]):
            return None
        before = self.padding[0] if axis == 1 else self.padding[3]
        spread = Spread(
            source.shape[axis], result.shape[axis], weights.shape[axis],
            self.strides[axis - 1], self.dilations[axis - 1], before,
        )  # fmt: skip
        if spread.made_of(spread.length) > spread.count:
            return None  # the end is cut off
        return Along(axis, tuple(axes), (spread, *(None for _ in axes[1:])))

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "TransposedConv2D":
        """Return the same without the rows that older and newer ones add to.

        Rows are made from where an index of the image begins.
        """
        (spread,) = (each for each in along.windows if each is not None)
        reach = (spread.kernel - 1) * spread.dilation
        front, beyond = reach // spread.stride * spread.stride, reach + 1 - spread.stride
        return self._cut_off(along.axis, front, beyond)

    def cut_at_border(self, along: Along, made: Pair, taken: Pair) -> "TransposedConv2D":
        (spread,) = (each for each in along.windows if each is not None)
        front = made[0] + spread.before - taken[0] * spread.stride
        reach = (spread.kernel - 1) * spread.dilation
        whole = (taken[1] - taken[0] - 1) * spread.stride + reach + 1
        return self._cut_off(along.axis, front, whole - front - (made[1] - made[0]))

    def _cut_off(self, axis: int, before: int, behind: int) -> "TransposedConv2D":
        """Return the same without some rows or columns; fewer than none behind are added."""
        top, right, bottom, left = self.padding
        rows, columns = self.adjustment
        behind, added = max(0, behind), max(0, -behind)
        if axis == 1:
            top, bottom, rows = before, behind, added
        else:
            left, right, columns = before, behind, added
        return replace(self, padding=(top, right, bottom, left), adjustment=(rows, columns))

    def _read(self, axis: int, kernel: int, length: int, made: tuple[int, int]) -> tuple[int, int]:
        """Return the indices of an axis that reach those of the result; some between may not."""
        stride, reach = self.strides[axis], (kernel - 1) * self.dilations[axis]
        before = self.padding[0] if axis == 0 else self.padding[3]
        low = -(-(made[0] + before - reach) // stride)
        high = (made[1] - 1 + before) // stride + 1
        low = min(max(low, 0), length)
        return low, max(min(high, length), low)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFilter(RuntimeOperator):
    """Reads a filter of floats, Cout, Cin / groups, kh, kw, and packs it for a Conv2D.

    Makes panels, kh, kw, Cin / groups, 16: for weights that are made in the run.
    """

    number: ClassVar[int] = 36

    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightGradient(RuntimeOperator):
    """Reads x, and the gradient of a Conv2D of it: the gradient of the filter.

    Makes Cout, Cin / groups, kh, kw. `before` are the rows and columns of padding at the start.
    """

    number: ClassVar[int] = 37

    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    before: Pair = (0, 0)
    groups: int = 1

    def multiply_adds(self, operands: Operands) -> int:
        gradient, result = operands.input(1), operands.result
        if gradient is None or result is None or len(gradient.shape) != 4:
            return 0
        return result.num_elements * math.prod(gradient.shape[:3])
