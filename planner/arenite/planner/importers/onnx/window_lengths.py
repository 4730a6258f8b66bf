"""The lengths of convolutions, pools, paddings and resized images."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.call import Call, Rule, Shape, rules_of, text
from arenite.planner.sizes import depends

_MOST_DENOMINATOR = 256
"""Of a scale that is exact in 32 bits."""


def rounded_up(length: int, divisor: int) -> int:
    """Return a quotient rounded up."""
    return -(-length // divisor)


def _windows(call: Call, sides: Sequence[int], kernel: Sequence[int], *, ceil: bool) -> list[int]:
    """Return the positions of a window along each side."""
    rank = len(sides)
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    pads = call.integers("pads") or (0,) * (2 * rank)
    mode = call.attributes.get("auto_pad", "NOTSET")
    lengths = []
    for axis, length in enumerate(sides):
        stride, taps = strides[axis], (kernel[axis] - 1) * dilations[axis] + 1
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            lengths.append(rounded_up(length, stride))
            continue
        before, after = (pads[axis], pads[axis + rank]) if mode == "NOTSET" else (0, 0)
        room = length + before + after - taps
        if call.ranges.bounds(room)[0] < 0:
            least = f", which may be {call.ranges.bounds(length)[0]}" if depends(length) else ""
            raise SizeError(
                f"a window of {taps} does not fit into the length {text(length)}{least}"
            )
        count = (rounded_up(room, stride) if ceil else room // stride) + 1
        if ceil:  # the last position begins inside the image or the padding in front
            count = call.ranges.smallest(count, rounded_up(length + before, stride))
        lengths.append(count)
    return lengths


def _convolved(source: int = 0, weights: int = 1) -> Rule:
    def rule(call: Call) -> list[Shape]:
        batch, _, *sides = call.shape(source)
        filters, _, *kernel = call.shape(weights)
        stated = call.integers("kernel_shape") or tuple(kernel)
        return [(batch, filters, *_windows(call, sides, stated, ceil=False))]

    return rule


def _transposed_convolution(call: Call) -> list[Shape]:
    batch, _, *sides = call.shape()
    _, filters, *kernel = call.shape(1)
    rank = len(sides)
    if call.integers("output_shape"):
        raise SizeError("output_shape of ConvTranspose is fixed, while its input is not")
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    pads = call.integers("pads") or (0,) * (2 * rank)
    extra = call.integers("output_padding") or (0,) * rank
    mode = call.attributes.get("auto_pad", "NOTSET")
    lengths = []
    for axis, length in enumerate(sides):
        taps = (kernel[axis] - 1) * dilations[axis] + 1
        whole = (length - 1) * strides[axis] + extra[axis] + taps
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            lengths.append(length * strides[axis])
        elif mode == "VALID":
            lengths.append(whole)
        else:
            lengths.append(whole - pads[axis] - pads[axis + rank])
    return [(batch, filters * call.integer("group", 1), *lengths)]


def _pooled(call: Call) -> list[Shape]:
    batch, channels, *sides = call.shape()
    kernel = call.integers("kernel_shape") or ()
    ceil = bool(call.integer("ceil_mode", 0))
    result = (batch, channels, *_windows(call, sides, kernel, ceil=ceil))
    return [result] * len(call.made)


def _global_pool(call: Call) -> list[Shape]:
    batch, channels, *sides = call.shape()
    if call.integer("channels_last", 0):
        return [(batch, *[1] * len(sides), sides[-1])]
    return [(batch, channels, *[1] * len(sides))]


def _padded(call: Call) -> list[Shape]:
    lengths = list(call.shape())
    pads = call.stated("pads", 1) or ()
    axes = call.elements(3) if call.has(3) else range(len(lengths))
    count = len(pads) // 2
    for number, axis in enumerate(axes):
        lengths[axis] = lengths[axis] + pads[number] + pads[number + count]
    return [tuple(lengths)]


def _resized(call: Call) -> list[Shape]:
    source = call.shape()
    places = (1, 3) if call.kind == "Upsample" or call.opset < 11 else (2, 3)
    axes = call.integers("axes") or tuple(range(len(source)))
    result = list(source)
    if call.has(places[1]) and call.shape(places[1]) != (0,):
        if call.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise SizeError("keep_aspect_ratio_policy of Resize supports stretch, as sizes vary")
        for axis, size in zip(axes, call.elements(places[1]), strict=True):
            length = source[axis]
            ratio = Fraction(int(size), int(length)) if length else Fraction(1)
            if not call.ranges.same(size * ratio.denominator, length * ratio.numerator):
                raise SizeError(
                    f"its scale, {text(size)} to {text(length)}, is not the same at all sizes; "
                    "choose steps of the range by which it is"
                )
            result[axis] = size
        return [tuple(result)]
    for axis, scale in zip(axes, call.stated("scales", places[0]) or (), strict=True):
        result[axis] = _scaled(source[axis], scale)
    return [tuple(result)]


def _scaled(length: int, scale: Any) -> int:
    if depends(scale) or not isinstance(scale, int | float | Fraction):
        raise SizeError("its scale is not the same at all sizes; choose steps of the range by "
                        "which it is")  # fmt: skip
    if not depends(length):
        return math.floor(int(length) * float(scale))
    exact = Fraction(scale)
    if exact.denominator > _MOST_DENOMINATOR:
        raise SizeError(f"the scale {scale} is no exact fraction, {text(length)} times it rounds")
    return length * exact.numerator // exact.denominator


WINDOW_RULES: dict[str, Rule] = {
    **rules_of(_convolved(), "Conv", "ConvInteger", "FusedConv", "nchwc.Conv"),
    **rules_of(_convolved(0, 3), "QLinearConv"),
    **rules_of(_transposed_convolution, "ConvTranspose"),
    **rules_of(_pooled, "AveragePool", "LpPool", "MaxPool", "QLinearAveragePool"),
    **rules_of(_global_pool, "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool",
               "QLinearGlobalAveragePool"),
    "Pad": _padded,
    **rules_of(_resized, "Resize", "Upsample"),
}  # fmt: skip
"""The rule of each operator of images."""
