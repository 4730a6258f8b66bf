"""Windows that slide over an image: convolutions and pools."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of an image under a sliding window.

    Attributes:
        length: Of the image.
        count: Positions of the window: the length of the result.
        kernel: Taps of the window.
        stride: From one position to the next.
        dilation: From one tap to the next.
        before: Padding in front of the image.
    """

    length: int
    count: int
    kernel: int
    stride: int
    dilation: int
    before: int

    def first(self, position: int) -> int | None:
        """Return the lowest index read for an output index, None if all is padding."""
        start = position * self.stride - self.before
        if start < 0:
            start += -(start // self.dilation) * self.dilation
        last = position * self.stride - self.before + (self.kernel - 1) * self.dilation
        return start if start <= min(last, self.length - 1) else None

    def read(self, start: int, stop: int) -> tuple[int, int]:
        """Return the stretch of the image that the outputs from `start` to `stop` lie over."""
        low = start * self.stride - self.before
        high = (stop - 1) * self.stride - self.before + (self.kernel - 1) * self.dilation + 1
        return min(max(low, 0), self.length), min(max(high, 0), self.length)


@dataclass(frozen=True, slots=True)
class Sliding:
    """How an operator slides a window over its first input, an image.

    Attributes:
        rows: The axis of rows.
        columns: The axis of columns.
        row_axis: Where rows are among the stored axes; columns come next.
        channel_axis: Where channels are.
        groups: Parts of the channels; an output reads one of them. As many as the input has
            channels: each output reads one channel.
    """

    rows: Window
    columns: Window
    row_axis: int
    channel_axis: int
    groups: int

    def input_region(
        self, region: tuple[tuple[int, int], ...], channels_in: int, channels_out: int
    ) -> tuple[tuple[int, int], ...]:
        """Return what of the image a region of the result depends on."""
        found = list(region)
        found[self.row_axis] = self.rows.read(*region[self.row_axis])
        found[self.row_axis + 1] = self.columns.read(*region[self.row_axis + 1])
        start, stop = region[self.channel_axis]
        outputs, inputs = channels_out // self.groups, channels_in // self.groups
        found[self.channel_axis] = (start // outputs * inputs, (-(-stop // outputs)) * inputs)
        return tuple(found)


def positive_pair(value: object) -> tuple[int, int] | None:
    """Return two numbers of at least 1, None if that is not what is given."""
    if isinstance(value, tuple) and len(value) == 2 and all(int(each) >= 1 for each in value):
        return int(value[0]), int(value[1])
    return None
