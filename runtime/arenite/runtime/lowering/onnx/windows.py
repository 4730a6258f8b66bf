"""How a window slides over an image: strides, dilations and padding of ONNX."""

from dataclasses import dataclass

from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Shape
from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.operators.base import Pair, Sides


@dataclass(frozen=True, slots=True)
class Window:
    """A window over rows and columns.

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
) -> Window:
    """Return how the window of an operator slides.

    Args:
        t: The operator.
        shape: N, C, H, W of the image.
        kernel: Rows and columns of the window.
        extra: Padding in addition to the operator's own.
        ceil: Whether a window that is partly beyond the padding counts.
    """
    strides, dilations = pair(t.integers("strides")), pair(t.integers("dilations"))
    mode = t.attribute("auto_pad", "NOTSET")
    pads = t.integers("pads") or (0, 0, 0, 0)
    if len(pads) == 2:
        pads = (0, pads[0], 0, pads[1])
    if len(pads) != 4 or min(pads) < 0:
        raise NotLoweredError(f"its padding is {list(pads)}")
    begins, ends, outputs = [], [], []
    for axis in range(2):
        size = shape[2 + axis]
        extent = dilations[axis] * (kernel[axis] - 1) + 1
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-size // strides[axis])
            total = max((count - 1) * strides[axis] + extent - size, 0)
            begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
            end = total - begin
        else:
            keeps = mode == "NOTSET"
            begin = (pads[axis] if keeps else 0) + (extra[0], extra[3])[axis]
            end = (pads[axis + 2] if keeps else 0) + (extra[2], extra[1])[axis]
            span = size + begin + end - extent
            count = span // strides[axis] + 1
            # One more window, if it begins inside the image or the padding before it.
            if ceil and span % strides[axis] and count * strides[axis] < size + begin:
                end += count * strides[axis] - span
                count += 1
        begins.append(begin)
        ends.append(end)
        outputs.append(count)
    return Window(
        strides,
        dilations,
        (begins[0], ends[1], ends[0], begins[1]),
        (outputs[0], outputs[1]),
    )


def pair(values: tuple[int, ...]) -> Pair:
    """Return rows and columns; one number is of columns, none is 1 and 1."""
    if len(values) == 1:
        return 1, values[0]
    return (values[0], values[1]) if values else (1, 1)
