"""Gradients of operators that move, repeat, select or reduce elements."""

import math
from collections.abc import Callable

import numpy as np

from arenite.planner import DType
from arenite.training.backward import Backward, NoRuleError
from arenite.training.graph import Array, Value, reduced
from arenite.training.rules_windows import give_to_equal


def reshape(s: Backward) -> None:
    """Reshape, Flatten, Squeeze, Unsqueeze."""
    s.give(0, s.graph.reshape(s.gradient, s.input(0).shape))


def transpose(s: Backward) -> None:
    """Transpose: back again."""
    rank = s.input(0).rank
    perm = s.node.attributes.get("perm", tuple(range(rank))[::-1])
    s.give(0, s.graph.transpose(s.gradient, [int(axis) for axis in np.argsort(perm)]))


def concat(s: Backward) -> None:
    """Concat: each operand takes its part."""
    axis, start = int(s.node.attributes["axis"]) % s.output().rank, 0
    for position in range(s.num_inputs):
        length = s.input(position).shape[axis]
        if s.needs(position):
            part = s.graph.slice(s.gradient, [axis], [start], [start + length])
            s.give(position, part)
        start += length


def split(s: Backward) -> None:
    """Split: the gradients one after another."""
    axis = int(s.node.attributes.get("axis", 0)) % s.input(0).rank
    parts = [
        s.graph.zeros_like(s.output(position)) if gradient is None else gradient
        for position, gradient in enumerate(s.gradients)
    ]
    s.give(0, s.graph.concat(parts, axis))


def cut(s: Backward) -> None:
    """Slice: zeros around the gradient, and between its elements where there are steps."""
    source, g = s.input(0), s.gradient
    starts = s.ints("starts", 1)
    axes = [each % source.rank for each in s.ints("axes", 3, range(len(starts)))]
    steps = s.ints("steps", 4, [1] * len(starts))
    before, after = [0] * source.rank, [0] * source.rank
    for axis, start, step in zip(axes, starts, steps, strict=True):
        length, count = source.shape[axis], g.shape[axis]
        first = min(max(start + length if start < 0 else start, 0), length)
        if step > 1 and count > 1:
            g = _apart(s, g, axis, step)
        before[axis], after[axis] = first, length - first - g.shape[axis]
    s.give(0, s.graph.pad(g, before, after))


def _apart(s: Backward, g: Value, axis: int, step: int) -> Value:
    """Return the elements along an axis with `step` - 1 zeros between them."""
    shape = list(g.shape)
    wide = s.graph.reshape(g, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    none = [0] * wide.rank
    padded = s.graph.pad(wide, none, [*none[: axis + 1], step - 1, *none[axis + 2 :]])
    flat = [*shape[:axis], shape[axis] * step, *shape[axis + 1 :]]
    length = (shape[axis] - 1) * step + 1
    return s.graph.slice(s.graph.reshape(padded, flat), [axis], [0], [length])


def pad(s: Backward) -> None:
    """Pad with a constant: the pads are cut off."""
    rank = s.input(0).rank
    pads, axes = s.ints("pads", 1), s.ints("axes", 3, range(rank))
    before, after = [0] * rank, [0] * rank
    for axis, first, last in zip(axes, pads, pads[len(axes) :], strict=False):
        before[axis], after[axis] = -first, -last
    s.give(0, s.graph.pad(s.gradient, before, after))


def expand(s: Backward) -> None:
    """Expand: the sum over the repeated axes."""
    s.give(0, s.gradient)


def tile(s: Backward) -> None:
    """Tile: the sum over the repetitions."""
    source = s.input(0)
    apart: list[int] = []
    for count, length in zip(s.output().shape, source.shape, strict=True):
        apart += [count // length if length else 0, length]
    wide = s.graph.reshape(s.gradient, apart)
    total = s.graph.reduce_sum(wide, list(range(0, 2 * source.rank, 2)))
    s.give(0, s.graph.reshape(total, source.shape))


def gather(s: Backward) -> None:
    """Gather: gradients are summed by index."""
    if s.needs(1):
        raise NoRuleError("training the indices is unsupported")
    source, indices, g, graph = s.input(0), s.input(1), s.gradient, s.graph
    count = indices.num_elements
    if source.rank == 1:
        places, updates = (graph.reshape(each, (count,)) for each in (indices, g))
        operands = [graph.zeros_like(source), places, updates]
        s.give(0, graph.node("ScatterElements", operands, source.shape, reduction="add"))
        return
    axis = int(s.node.attributes.get("axis", 0)) % source.rank
    order = [*range(axis, axis + indices.rank), *range(axis), *range(axis + indices.rank, g.rank)]
    moved = [axis, *(each for each in range(source.rank) if each != axis)]
    rest = [source.shape[each] for each in moved[1:]]
    updates = graph.reshape(graph.transpose(g, order), (count, *rest))
    places = graph.cast(graph.reshape(indices, (count, 1)), DType.INT64)
    zeros = graph.transpose(graph.zeros_like(source), moved)
    found = graph.node("ScatterND", [zeros, places, updates], zeros.shape, reduction="add")
    s.give(0, graph.transpose(found, [int(each) for each in np.argsort(moved)]))


def resize(s: Backward) -> None:
    """Resize to the nearest by whole factors: the sum over the copies of each element."""
    source, result = s.input(0), s.output()
    if s.node.attributes.get("mode", "nearest") != "nearest":
        raise NoRuleError(f"mode={s.node.attributes['mode']} is unsupported")
    factors = [
        after // before if before and after % before == 0 else 0
        for before, after in zip(source.shape, result.shape, strict=True)
    ]
    apart = [each for pair in zip(source.shape, factors, strict=True) for each in pair]
    if 0 in factors or not _repeats(s, factors):
        raise NoRuleError(
            "scales that do not repeat each element a whole number of times are unsupported"
        )
    wide = s.graph.reshape(s.gradient, apart)
    total = s.graph.reduce_sum(wide, list(range(1, 2 * source.rank, 2)))
    s.give(0, s.graph.reshape(total, source.shape))


def _repeats(s: Backward, factors: list[int]) -> bool:
    """Tell whether element i of the result is element i // factor of the source."""
    attributes = s.node.attributes
    mode = attributes.get("coordinate_transformation_mode", "half_pixel")
    nearest = attributes.get("nearest_mode", "round_prefer_floor")
    rounds: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    for factor, length in zip(factors, s.output().shape, strict=True):
        index = np.arange(length)
        if factor == 1:
            continue
        if mode == "asymmetric":
            place = index / factor
        elif mode in ("half_pixel", "pytorch_half_pixel"):
            place = (index + 0.5) / factor - 0.5
        else:
            return False
        found = np.clip(rounds[nearest](place), 0, length // factor - 1)
        if not np.array_equal(found, index // factor):
            return False
    return True


def depth_to_space(s: Backward) -> None:
    """DepthToSpace: the blocks become channels again."""
    batch, channels, height, width = s.input(0).shape
    size = int(s.node.attributes["blocksize"])
    inner = channels // (size * size)
    wide = s.graph.reshape(s.gradient, (batch, inner, height, size, width, size))
    is_rows_first = s.node.attributes.get("mode", "DCR") == "DCR"
    perm = [0, 3, 5, 1, 2, 4] if is_rows_first else [0, 1, 3, 5, 2, 4]
    s.give(0, s.graph.reshape(s.graph.transpose(wide, perm), (batch, channels, height, width)))


def space_to_depth(s: Backward) -> None:
    """SpaceToDepth: the channels become blocks again."""
    batch, channels, height, width = s.input(0).shape
    size = int(s.node.attributes["blocksize"])
    shape = (batch, size, size, channels, height // size, width // size)
    wide = s.graph.transpose(s.graph.reshape(s.gradient, shape), [0, 3, 4, 1, 5, 2])
    s.give(0, s.graph.reshape(wide, (batch, channels, height, width)))


def reduce_sum(s: Backward) -> None:
    """ReduceSum: every element takes the gradient of its sum."""
    g, _ = _kept(s)
    s.give(0, s.graph.expand(g, s.input(0).shape))


def reduce_mean(s: Backward) -> None:
    """ReduceMean: every element takes its share."""
    g, axes = _kept(s)
    count = math.prod(s.input(0).shape[axis] for axis in axes)
    s.give(0, s.graph.expand(s.graph.scaled(g, 1 / max(1, count)), s.input(0).shape))


def reduce_max(s: Backward) -> None:
    """ReduceMax, ReduceMin: equal elements share."""
    g, axes = _kept(s)
    result = s.graph.reshape(s.output(), g.shape)
    give_to_equal(s, result, g, axes)


def reduce_l2(s: Backward) -> None:
    """ReduceL2: g x / y."""
    g, _ = _kept(s)
    ratio = s.graph.over(g, s.graph.reshape(s.output(), g.shape))
    s.give(0, s.graph.times(s.input(0), ratio))


def reduce_sum_square(s: Backward) -> None:
    """ReduceSumSquare: 2 g x."""
    g, _ = _kept(s)
    s.give(0, s.graph.times(s.input(0), s.graph.scaled(g, 2)))


def _kept(s: Backward) -> tuple[Value, list[int]]:
    """Return the gradient with the axes that were reduced, and those."""
    if s.wanted != {0}:
        raise NoRuleError("training the axes is unsupported")
    rank = s.input(0).rank
    axes = [each % rank for each in s.ints("axes", 1, range(rank))]
    if not axes and not s.node.attributes.get("noop_with_empty_axes", 0):
        axes = list(range(rank))
    shape = reduced(s.input(0).shape, axes, keepdims=True)
    return s.graph.reshape(s.gradient, shape), axes
