"""Windows that slide over an image: convolutions and pools."""

from dataclasses import dataclass


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

    def first(self, position: int) -> int | None:
        """Return the lowest index read for an output index, None if it reads only padding."""
        start = position * self.stride - self.before
        if start < 0:
            start += -(start // self.dilation) * self.dilation
        last = position * self.stride - self.before + (self.kernel - 1) * self.dilation
        return start if start <= min(last, self.length - 1) else None

    def read(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of the image under the outputs from `start` to before `stop`."""
        low = start * self.stride - self.before
        high = (stop - 1) * self.stride - self.before + (self.kernel - 1) * self.dilation + 1
        return min(max(low, 0), self.length), min(max(high, 0), self.length)


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


def positive_pair(value: object) -> tuple[int, int] | None:
    """Return a pair of numbers of at least 1, None for anything else."""
    if isinstance(value, tuple) and len(value) == 2 and all(int(each) >= 1 for each in value):
        return int(value[0]), int(value[1])
    return None
