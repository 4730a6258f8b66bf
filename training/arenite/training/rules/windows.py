"""The window of a convolution or a pooling, along each of its axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arenite.planner.operators import AutoPad, Window
from arenite.training.backward import Backward, NoRuleError


@dataclass(frozen=True, slots=True)
class Windows:
    """How windows slide over the axes behind the batch and the channels.

    Attributes:
        lengths: Of the image along each axis.
        counts: How many windows there are.
        kernel: Taps of a window.
        strides: From one window to the next.
        dilations: From one tap to the next.
        before: Padding in front of the image.
        after: Padding behind it, negative where windows leave some of the image out.
    """

    lengths: tuple[int, ...]
    counts: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def num_axes(self) -> int:
        """Number of axes."""
        return len(self.lengths)

    @property
    def tile(self) -> bool:
        """Whether every element of the image lies under just one tap."""
        return (
            self.kernel == self.strides
            and set(self.dilations) <= {1}
            and not any((*self.before, *self.after))
        )

    def scatter(self) -> dict[str, Any]:
        """Return the attributes of the transposed convolution back to the image."""
        # What the last window leaves out has no gradient: zeros, that is to say more output.
        return {
            "kernel_shape": list(self.kernel),
            "strides": list(self.strides),
            "dilations": list(self.dilations),
            "pads": [*self.before, *(max(0, each) for each in self.after)],
            "output_padding": [max(0, -each) for each in self.after],
        }


def windows_of(
    s: Backward, lengths: Sequence[int], counts: Sequence[int], kernel: Sequence[int]
) -> Windows:
    """Return the windows that a node states.

    Args:
        s: The node.
        lengths: Of the image.
        counts: Of the windows.
        kernel: Taps of a window.
    """
    axes, attributes = len(lengths), s.node.attributes
    strides = tuple(map(int, attributes.get("strides", (1,) * axes)))
    dilations = tuple(map(int, attributes.get("dilations", (1,) * axes)))
    mode = attributes.get("auto_pad", "NOTSET")
    if mode not in set(AutoPad):
        raise NoRuleError(f"auto_pad={mode} is unsupported")
    stated = map(int, attributes.get("pads", (0,) * 2 * axes)[:axes])
    taps = zip(lengths, counts, map(int, kernel), strides, dilations, strict=True)
    windows = [
        Window.padded(*along, AutoPad(mode), before)
        for along, before in zip(taps, stated, strict=True)
    ]
    return Windows(
        tuple(lengths), tuple(counts), tuple(map(int, kernel)), strides, dilations,
        tuple(each.before for each in windows), tuple(each.after for each in windows),
    )  # fmt: skip
