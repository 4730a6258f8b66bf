"""How a window slides over an image: strides, dilations and padding of ONNX."""

from dataclasses import dataclass

from arenite.planner.operators.windows import AutoPad, Window, num_positions
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Shape
from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.operators.base import Pair, Sides


@dataclass(frozen=True, slots=True)
class Opening:
    """How the window of an operator slides over rows and columns.

    Attributes:
        strides: Distances from one window to the next.
        dilations: Distances between elements of a window.
        padding: Top, right, bottom, left.
        output: Numbers of rows and columns of windows.
    """

    strides: Pair
    dilations: Pair
    padding: Sides
    output: Pair


def window(
    t: Translation, shape: Shape, kernel: Pair, extra: Sides = (0, 0, 0, 0), *, ceil: bool = False
) -> Opening:
    """Return how the window of an operator slides.

    Args:
        t: The operator.
        shape: N, C, H, W of the image.
        kernel: Rows and columns of the window.
        extra: Padding in addition to the operator's own.
        ceil: Whether a window that is partly beyond the padding counts.
    """
    strides, dilations = pair(t.integers("strides")), pair(t.integers("dilations"))
    mode = auto_pad(t)
    pads = t.integers("pads") or (0, 0, 0, 0)
    if len(pads) == 2:
        pads = (0, pads[0], 0, pads[1])
    if len(pads) != 4 or min(pads) < 0:
        raise NotLoweredError(f"pads={list(pads)} is unsupported")
    begins, ends, outputs = [], [], []
    for axis in range(2):
        size = shape[2 + axis]
        taps = kernel[axis], strides[axis], dilations[axis]
        if mode.is_same:
            count = num_positions(size, *taps, mode)
            same = Window.padded(size, count, *taps, mode)
            begin, end = same.before, max(0, same.after)
        else:
            keeps = mode is AutoPad.NOTSET
            begin = (pads[axis] if keeps else 0) + (extra[0], extra[3])[axis]
            end = (pads[axis + 2] if keeps else 0) + (extra[2], extra[1])[axis]
            count = num_positions(size + begin + end, *taps)
            # One more position, if it begins inside the image or the padding in front.
            behind = Window(size, count + 1, *taps, begin).after
            begins_inside = count * strides[axis] < size + begin
            if ceil and end < behind < end + strides[axis] and begins_inside:
                count, end = count + 1, behind
        begins.append(begin)
        ends.append(end)
        outputs.append(count)
    return Opening(
        strides,
        dilations,
        (begins[0], ends[1], ends[0], begins[1]),
        (outputs[0], outputs[1]),
    )


def auto_pad(t: Translation) -> AutoPad:
    """Return how an operator states its padding."""
    mode = t.attribute("auto_pad", "NOTSET")
    if mode not in set(AutoPad):
        raise NotLoweredError(f"auto_pad={mode} is unsupported")
    return AutoPad(mode)


def pair(values: tuple[int, ...]) -> Pair:
    """Return rows and columns; one number is of columns, none is 1 and 1."""
    if len(values) == 1:
        return 1, values[0]
    return (values[0], values[1]) if values else (1, 1)
