"""Reductions."""

from arenite.training.backward import Backward, NoRuleError
from arenite.training.graph import Value, reduced
from arenite.training.rules.pooling import give_to_equal


def reduce_sum(s: Backward) -> None:
    """ReduceSum: every element takes the gradient of its sum."""
    g, _ = _kept(s)
    s.give(0, s.graph.expand(g, s.input(0).shape))


def reduce_mean(s: Backward) -> None:
    """ReduceMean: every element takes its share."""
    g, axes = _kept(s)
    count = 1
    for axis in axes:
        count *= s.input(0).shape[axis]
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
        raise NoRuleError("its axes would be trained")
    axes = s.axes()
    if not axes and not s.node.attributes.get("noop_with_empty_axes", 0):
        axes = list(range(s.input(0).rank))
    shape = reduced(s.input(0).shape, axes, keepdims=True)
    return s.graph.reshape(s.gradient, shape), axes
