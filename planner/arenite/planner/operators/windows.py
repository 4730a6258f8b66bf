"""Windows that slide over an image: convolutions and pools, and how they pad it.

Importers, lowering and training describe windows in these terms; the padding of each mode is
derived here and nowhere else.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Self

from arenite.planner.sizes import largest
from arenite.planner.tensors import Tensor


class AutoPad(StrEnum):
    """How a model states the padding of an axis, in the words of ONNX.

    Source: ONNX operators Conv and ConvTranspose, attribute `auto_pad`.
    """

    NOTSET = "NOTSET"
    """By its numbers."""
    VALID = "VALID"
    """No padding."""
    SAME_UPPER = "SAME_UPPER"
    """Enough for ceil(length / stride) positions, the larger half behind; `SAME` of TFLite."""
    SAME_LOWER = "SAME_LOWER"
    """Enough for ceil(length / stride) positions, the larger half in front."""

    @property
    def is_same(self) -> bool:
        """Whether the padding follows from the length of the result."""
        return self in (AutoPad.SAME_UPPER, AutoPad.SAME_LOWER)


def num_positions(
    length: int, kernel: int, stride: int, dilation: int, mode: AutoPad = AutoPad.VALID
) -> int:
    """Return the positions of a window along an axis, at most 0 if it does not fit.

    Args:
        length: Length of the image, padding that is stated by its numbers included.
        mode: How the padding is stated.
    """
    room = length if mode.is_same else length - (kernel - 1) * dilation
    return -(-room // stride)


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of an image under a sliding window.

    Attributes:
        length: Length of the image.
        count: Number of positions of the window: the length of the result.
        kernel: Number of taps of the window.
        stride: Distance from one position to the next.
        dilation: Distance from one tap to the next.
        before: Padding in front of the image.
    """

    length: int
    count: int
    kernel: int
    stride: int
    dilation: int
    before: int

    @classmethod
    def padded(
        cls,
        length: int,
        count: int,
        kernel: int,
        stride: int,
        dilation: int,
        mode: AutoPad,
        stated: int = 0,
    ) -> Self:
        """Return the window with its padding as a mode states it, in front by `stated` or none."""
        window = cls(length, count, kernel, stride, dilation, 0)
        total = largest(0, window.after)
        before = {
            AutoPad.NOTSET: stated,
            AutoPad.VALID: 0,
            AutoPad.SAME_UPPER: total // 2,
            AutoPad.SAME_LOWER: total - total // 2,
        }[mode]
        return replace(window, before=before)

    @property
    def after(self) -> int:
        """Padding behind the image; below 0 where no position reaches its end."""
        span = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return span - self.length - self.before

    def first(self, position: int) -> int | None:
        """Return the lowest index read for an output index, None if it reads only padding."""
        start = position * self.stride - self.before
        if start < 0:
            start += -(start // self.dilation) * self.dilation
        last = position * self.stride - self.before + (self.kernel - 1) * self.dilation
        return start if start <= min(last, self.length - 1) else None

    def read(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of the image under the outputs from `start` to before `stop`."""
        low, high = self.under(start, stop)
        return min(max(low, 0), self.length), min(max(high, 0), self.length)

    def under(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range under the outputs from `start` to before `stop`, padding included."""
        low = start * self.stride - self.before
        return low, (stop - 1) * self.stride - self.before + (self.kernel - 1) * self.dilation + 1

    def made_of(self, end: int) -> int:
        """Return how many outputs the image up to before `end` makes, if it goes on there."""
        reach = (self.kernel - 1) * self.dilation + 1
        return (end + self.before - reach) // self.stride + 1

    def made_from(self, start: int) -> int:
        """Return the first output that depends on nothing before `start`, padding included."""
        return -(-(start + self.before) // self.stride)

    def advance(self, rows: Fraction) -> Fraction:
        """Return by how many outputs the result moves on when the image does by so many.

        A window that has one position moves as far as the image.
        """
        return Fraction(1) if self.count == 1 else rows / self.stride


@dataclass(frozen=True, slots=True)
class Spread:
    """One axis of an image whose every index adds to several indices of the result.

    That is a transposed convolution. Attributes are as in `Window`, seen from the result:
    `before` are the indices of it that are cut off in front.
    """

    length: int
    count: int
    kernel: int
    stride: int
    dilation: int
    before: int

    def under(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of the image that adds to the outputs, beyond its ends too."""
        reach = (self.kernel - 1) * self.dilation
        return -(-(start + self.before - reach) // self.stride), (
            stop - 1 + self.before
        ) // self.stride + 1

    def made_of(self, end: int) -> int:
        """Return how many outputs nothing from `end` on adds to."""
        return end * self.stride - self.before

    def made_from(self, start: int) -> int:
        """Return the first output that nothing before `start` adds to, beyond its end too."""
        return (start - 1) * self.stride + 1 - self.before + (self.kernel - 1) * self.dilation

    def advance(self, rows: Fraction) -> Fraction:
        """Return by how many outputs the result moves on when the image does by so many."""
        return rows * self.stride


@dataclass(frozen=True, slots=True)
class Sliding:
    """How an operator slides a window over its first input, an image.

    Attributes:
        rows: The window along the rows.
        columns: The window along the columns.
        row_axis: Index of the stored axis of rows; that of columns is the next.
        channel_axis: Index of the stored axis of channels.
        groups: Number of groups of channels; an output reads one group. If it is the number
            of input channels, each output reads one channel.
    """

    rows: Window
    columns: Window
    row_axis: int
    channel_axis: int
    groups: int

    def input_region(
        self, region: tuple[tuple[int, int], ...], channels_in: int, channels_out: int
    ) -> tuple[tuple[int, int], ...]:
        """Return the region of the image that a region of the result depends on."""
        found = list(region)
        found[self.row_axis] = self.rows.read(*region[self.row_axis])
        found[self.row_axis + 1] = self.columns.read(*region[self.row_axis + 1])
        start, stop = region[self.channel_axis]
        outputs, inputs = channels_out // self.groups, channels_in // self.groups
        found[self.channel_axis] = (start // outputs * inputs, (-(-stop // outputs)) * inputs)
        return tuple(found)


def sliding_over(
    source: Tensor | None,
    result: Tensor | None,
    *,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    groups: int,
    before: tuple[int, int] = (0, 0),
    mode: AutoPad = AutoPad.NOTSET,
    row_axis: int = 1,
) -> Sliding | None:
    """Return how a window slides over a batch of images; None if the tensors are no such batch.

    It is that at the highest sizes. `before` is the padding above and to the left for a `mode`
    that states numbers; `row_axis` is 1 for N, H, W, C and 2 for N, C, H, W. Other arguments are
    as in `Window` and `Sliding`.
    """
    if source is None or result is None or len(source.shape) != 4 or len(result.shape) != 4:
        return None
    channel_axis = 3 if row_axis == 1 else 1
    channels = source.shape[channel_axis], result.shape[channel_axis]
    is_empty = 0 in (*source.shape, *result.shape)
    if is_empty or groups < 1 or any(count % groups for count in channels):
        return None
    rows, columns = (
        Window.padded(
            int(source.shape[row_axis + axis]), int(result.shape[row_axis + axis]),
            int(kernel[axis]), strides[axis], dilations[axis], mode, int(before[axis]),
        )
        for axis in range(2)
    )  # fmt: skip
    return Sliding(rows, columns, row_axis, channel_axis, groups)


def positive_pair(value: object) -> tuple[int, int] | None:
    """Return a pair of numbers of at least 1, None for anything else."""
    if isinstance(value, tuple) and len(value) == 2 and all(int(each) >= 1 for each in value):
        return int(value[0]), int(value[1])
    return None
