"""Pooling. Of equal elements the first is the largest, as where PyTorch pools."""

from typing import Any

import numpy as np

from arenite.planner import DType
from arenite.training.backward import Backward, NoRuleError
from arenite.training.graph import Array, Value
from arenite.training.rules.windows import Windows, windows_of


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
    attributes = windows.scatter()
    s.give(
        0,
        graph.node("ConvTranspose", [share, ones], image.shape, group=channels, **attributes),
    )


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
    """GlobalAveragePool."""
    source = s.input(0)
    count = source.num_elements // (source.shape[0] * source.shape[1])
    s.give(0, s.graph.expand(s.graph.scaled(s.gradient, 1 / count), source.shape))


def global_max_pool(s: Backward) -> None:
    """GlobalMaxPool: equal elements share."""
    give_to_equal(s, s.output(), s.gradient, list(range(2, s.input(0).rank)))


def give_to_equal(s: Backward, result: Value, g: Value, axes: list[int]) -> None:
    """Give the gradient to the elements that equal a result kept with axes of length 1."""
    if not axes:
        raise NoRuleError("it reduces no axis")
    graph = s.graph
    equal = graph.cast(graph.compare("Equal", s.input(0), result), g.dtype)
    share = graph.over(g, graph.reduce_sum(equal, axes, keepdims=True))
    s.give(0, graph.times(equal, share))
