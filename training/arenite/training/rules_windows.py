"""Gradients of convolutions and poolings."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from arenite.planner import DType
from arenite.planner.operators import AutoPad, Window
from arenite.training.backward import Backward, NoRuleError
from arenite.training.graph import Array, StepGraph, Value


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
        # Elements after the last window have no gradient: zeros, as from more output.
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


def conv(s: Backward) -> None:
    image, weights, g = s.input(0), s.input(1), s.gradient
    windows = windows_of(s, image.shape[2:], g.shape[2:], weights.shape[2:])
    groups = int(s.node.attributes.get("group", 1))
    if s.needs(1):  # first, since the image may not be needed after that
        parts = _parts(s, image, groups)
        found = [to_weights(s, part, g, windows, groups) for part in parts]
        s.give(1, s.graph.concat(found, 1))
    _bias(s)
    if s.needs(0):
        s.give(0, to_image(s.graph, g, weights, windows, groups))


def conv_transpose(s: Backward) -> None:
    """ConvTranspose: the adjoint of a convolution."""
    image, weights, g = s.input(0), s.input(1), s.gradient
    if "output_shape" in s.node.attributes:
        raise NoRuleError("output_shape is unsupported")
    windows = windows_of(s, g.shape[2:], image.shape[2:], weights.shape[2:])
    groups = int(s.node.attributes.get("group", 1))
    if s.needs(1):
        s.give(1, to_weights(s, g, image, windows, groups))
    _bias(s)
    if s.needs(0):
        s.give(0, _gather(s.graph, g, weights, windows, groups))


_MOST_PARTS = 3
"""Most parts of a concatenated image that get gradients of weights of their own."""


def _parts(s: Backward, image: Value, groups: int) -> list[Value]:
    """Return the parts of an image that is a concatenation along its channels, else the image.

    The parts live anyway where other gradients need them; then the whole may die.
    """
    maker = s.makers.get(image.name)
    if groups > 1 or maker is None or maker.op_type != "Concat":
        return [image]
    is_of_channels = int(maker.attributes["axis"]) % image.rank == 1
    if not is_of_channels or len(maker.inputs) > _MOST_PARTS:
        return [image]
    return [s.graph.values[name] for name in maker.inputs]


def _bias(s: Backward) -> None:
    if s.needs(2):
        axes = [axis for axis in range(s.gradient.rank) if axis != 1]
        s.give(2, s.graph.reduce_sum(s.gradient, axes))


def to_image(graph: StepGraph, g: Value, weights: Value, windows: Windows, groups: int) -> Value:
    """Return the gradient of the image of a convolution."""
    shape = (g.shape[0], weights.shape[1] * groups, *windows.lengths)
    return graph.node("ConvTranspose", [g, weights], shape, group=groups, **windows.scatter())


def _gather(graph: StepGraph, g: Value, weights: Value, windows: Windows, groups: int) -> Value:
    """Return the convolution of the gradient of a transposed one's result."""
    rest = [max(0, -each) for each in windows.after]
    cut = graph.pad(g, [0] * g.rank, [0, 0, *(-each for each in rest)])
    return graph.node(
        "Conv",
        [cut, weights],
        (g.shape[0], weights.shape[0], *windows.counts),
        kernel_shape=list(windows.kernel),
        strides=list(windows.strides),
        dilations=list(windows.dilations),
        pads=[*windows.before, *(max(0, each) for each in windows.after)],
        group=groups,
    )


_Form: TypeAlias = Callable[[StepGraph, Value, Value, Windows, int, Value | None], Value]
_FEWEST_CHANNELS = 16
"""Fewest channels for which a matrix product per tap is faster than the convolution."""


def to_weights(s: Backward, image: Value, g: Value, windows: Windows, groups: int) -> Value:
    """Return the gradient of a convolution's weights, (M, C / groups, taps).

    Args:
        s: The node.
        image: The image under the windows, (N, C, lengths).
        g: Gradient of the result, (N, M, counts).
        groups: Number of groups.
    """
    graph = s.graph
    by_taps = groups == 1 and (image.shape[1] >= _FEWEST_CHANNELS or set(windows.kernel) == {1})
    form = _by_taps if by_taps else _by_convolution
    if not s.image_by_image or image.shape[0] == 1:
        total = form(graph, image, g, windows, groups, None)
    else:
        total = _image_by_image(graph, form, image, g, windows, groups)
    taps = windows.kernel
    if by_taps:
        return graph.reshape(total, (g.shape[1], image.shape[1], *taps))
    return graph.transpose(total, [1, 0, *range(2, total.rank)])


def _image_by_image(
    graph: StepGraph, form: _Form, image: Value, g: Value, windows: Windows, groups: int
) -> Value:
    total: Value | None = None
    for number in range(image.shape[0]):
        one, other = (graph.slice(each, [0], [number], [number + 1]) for each in (image, g))
        total = form(graph, one, other, windows, groups, total)
    assert total is not None
    return total


def _by_convolution(
    graph: StepGraph, image: Value, g: Value, windows: Windows, groups: int, total: Value | None
) -> Value:
    """Return the gradient as (C / groups, M, taps): strides and dilations change places."""
    batch, channels, *lengths = image.shape
    inner = channels // groups
    axes = range(3, 3 + windows.num_axes)
    parted = graph.reshape(image, (batch, groups, inner, *lengths))
    turned = graph.transpose(parted, [2, 1, 0, *axes])
    rows = graph.reshape(turned, (inner, groups * batch, *lengths))
    # Where the last window leaves some of the image out, that is cut off.
    rows = graph.pad(rows, [0] * rows.rank, [0, 0, *(min(0, each) for each in windows.after)])
    filters = graph.transpose(g, [1, 0, *range(2, g.rank)])
    found = graph.node(
        "Conv",
        [rows, filters],
        (inner, g.shape[1], *windows.kernel),
        kernel_shape=list(windows.counts),
        strides=list(windows.dilations),
        dilations=list(windows.strides),
        pads=[*windows.before, *(max(0, each) for each in windows.after)],
        group=groups,
    )
    return found if total is None else graph.plus(total, found)


def _by_taps(
    graph: StepGraph, image: Value, g: Value, windows: Windows, groups: int, total: Value | None
) -> Value:
    """Return the gradient as (M, C, number of taps): a product of matrices for each tap."""
    del groups
    channels, num_filters = image.shape[1], g.shape[1]
    axes = range(2, image.rank)
    padded = graph.pad(image, [0, 0, *windows.before], [0, 0, *windows.after])
    pixels = image.shape[0] * math.prod(windows.counts)
    rows = graph.reshape(graph.transpose(g, [1, 0, *axes]), (num_filters, pixels))
    columns: list[Value] = []
    for tap in product(*map(range, windows.kernel)):
        starts = [t * d for t, d in zip(tap, windows.dilations, strict=True)]
        ends = [
            start + (count - 1) * stride + 1
            for start, count, stride in zip(starts, windows.counts, windows.strides, strict=True)
        ]
        seen = graph.slice(padded, list(axes), starts, ends, list(windows.strides))
        matrix = graph.reshape(graph.transpose(seen, [1, 0, *axes]), (channels, pixels))
        products = graph.gemm(rows, matrix, trans_b=True)
        columns.append(graph.reshape(products, (num_filters, channels, 1)))
    found = graph.concat(columns, 2)
    return found if total is None else graph.plus(total, found)


def max_pool(s: Backward) -> None:
    """MaxPool: run again with indices, and the gradient scattered to them."""
    graph, image, g = s.graph, s.input(0), s.gradient
    attributes: dict[str, Any] = {
        name: list(each) if isinstance(each, tuple) else each
        for name, each in s.node.attributes.items()
        if name != "storage_order"
    }
    _, indices = graph.nodes_outputs(
        "MaxPool", [image], [(None, g.shape), (DType.INT64, g.shape)], **attributes
    )
    flat = [
        graph.reshape(each, (each.num_elements,)) for each in (graph.zeros_like(image), indices, g)
    ]
    found = graph.node("ScatterElements", flat, flat[0].shape, axis=0, reduction="add")
    s.give(0, graph.reshape(found, image.shape))


def average_pool(s: Backward) -> None:
    """AveragePool: each element of a window takes its share."""
    graph, image, g = s.graph, s.input(0), s.gradient
    windows = windows_of(s, image.shape[2:], g.shape[2:], s.node.attributes["kernel_shape"])
    counts = _counts(windows, _counted(s, windows))
    if counts.min() == counts.max():
        share = graph.scaled(g, 1 / float(counts.flat[0]))
    else:
        share = graph.over(g, graph.constant(counts[np.newaxis, np.newaxis], g.dtype))
    if windows.tile:
        s.give(0, _repeated(s, share, windows))
        return
    channels = image.shape[1]
    ones = graph.constant(np.ones((channels, 1, *windows.kernel)), g.dtype)
    found = graph.node(
        "ConvTranspose", [share, ones], image.shape, group=channels, **windows.scatter()
    )
    s.give(0, found)


def _counted(s: Backward, windows: Windows) -> list[tuple[int, int]]:
    """Return from where to where along each axis elements are averaged."""
    if not s.node.attributes.get("count_include_pad", 0):
        return [(0, length) for length in windows.lengths]
    after = [max(0, each) for each in windows.after]
    if "pads" in s.node.attributes:  # a window that was added by rounding up reaches beyond
        after = [int(each) for each in s.node.attributes["pads"][windows.num_axes :]]
    return [
        (-before, length + behind)
        for before, length, behind in zip(windows.before, windows.lengths, after, strict=True)
    ]


def _counts(windows: Windows, counted: list[tuple[int, int]]) -> Array:
    """Return how many elements each window averages."""
    found = np.ones((), np.int64)
    for axis in range(windows.num_axes):
        starts = np.arange(windows.counts[axis]) * windows.strides[axis] - windows.before[axis]
        taps = np.arange(windows.kernel[axis]) * windows.dilations[axis]
        places = starts[:, np.newaxis] + taps
        inside = (places >= counted[axis][0]) & (places < counted[axis][1])
        found = np.multiply.outer(found, inside.sum(1))
    return found


def _repeated(s: Backward, share: Value, windows: Windows) -> Value:
    """Return each element repeated over its window, where windows tile the image."""
    apart: list[int] = list(share.shape[:2])
    full: list[int] = list(share.shape[:2])
    for count, taps in zip(windows.counts, windows.kernel, strict=True):
        apart += [count, 1]
        full += [count, taps]
    wide = s.graph.expand(s.graph.reshape(share, apart), full)
    return s.graph.reshape(wide, s.input(0).shape)


def global_average_pool(s: Backward) -> None:
    source = s.input(0)
    count = source.num_elements // (source.shape[0] * source.shape[1])
    s.give(0, s.graph.expand(s.graph.scaled(s.gradient, 1 / count), source.shape))


def global_max_pool(s: Backward) -> None:
    """GlobalMaxPool: equal elements share."""
    give_to_equal(s, s.output(), s.gradient, list(range(2, s.input(0).rank)))


def give_to_equal(s: Backward, result: Value, g: Value, axes: list[int]) -> None:
    """Give the gradient to the elements that equal a result kept with axes of length 1."""
    if not axes:
        raise NoRuleError("an input without spatial axes is unsupported")
    graph = s.graph
    equal = graph.cast(graph.compare("Equal", s.input(0), result), g.dtype)
    share = graph.over(g, graph.reduce_sum(equal, axes, keepdims=True))
    s.give(0, graph.times(equal, share))
