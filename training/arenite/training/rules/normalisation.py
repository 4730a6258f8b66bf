"""Batch normalisation: with statistics that stay, or with those of the batch."""

from arenite.training.backward import Backward
from arenite.training.graph import Value

WITH_BATCH_STATISTICS = "BatchNormalization of the batch"
"""The rule of a BatchNormalization whose mean and variance are computed from its input."""


def frozen(s: Backward) -> None:
    """BatchNormalization by statistics that are constants."""
    inverse = _inverse(s)
    if s.needs(0):
        factor = s.graph.times(inverse, _wide(s, s.input(1)))
        s.give(0, s.graph.times(s.gradient, factor))
    if s.needs(1) or s.needs(2):
        _scale_and_shift(s, inverse)


def of_the_batch(s: Backward) -> None:
    """BatchNormalization by the statistics of its input.

    With c = x - mean: dx = gamma inverse (g - mean g - c inverse^2 mean g c).
    """
    graph, inverse = s.graph, _inverse(s)
    shift, scale = _scale_and_shift(s, inverse)
    if not s.needs(0):
        return
    count = s.input(0).num_elements // s.input(0).shape[1]
    factor = graph.times(inverse, _wide(s, s.input(1)))
    slope = graph.times(graph.times(factor, inverse), _wide(s, scale))
    of_source = graph.scaled(slope, -1 / count)
    offset = graph.scaled(graph.times(factor, _wide(s, shift)), -1 / count)
    # The mean goes into the offset, so that no second tensor of the input's size is made.
    offset = graph.minus(offset, graph.times(of_source, _wide(s, s.input(3))))
    found = graph.plus(
        graph.times(s.gradient, factor),
        graph.plus(graph.times(s.input(0), of_source), offset),
    )
    s.give(0, found)


def _scale_and_shift(s: Backward, inverse: Value) -> tuple[Value, Value]:
    """Give and return the gradients of beta and gamma."""
    graph, g = s.graph, s.gradient
    axes = [axis for axis in range(g.rank) if axis != 1]
    shift = graph.reduce_sum(g, axes)
    centred = graph.minus(s.input(0), _wide(s, s.input(3)))
    summed = graph.reduce_sum(graph.times(centred, g), axes)
    scale = graph.times(summed, graph.reshape(inverse, summed.shape))
    if s.needs(1):
        s.give(1, scale)
    if s.needs(2):
        s.give(2, shift)
    return shift, scale


def _inverse(s: Backward) -> Value:
    """Return 1 / sqrt(variance + epsilon), a channel wide."""
    graph, variance = s.graph, s.input(4)
    epsilon = float(s.node.attributes.get("epsilon", 1e-5))
    root = graph.unary("Sqrt", graph.plus(variance, graph.scalar(epsilon, variance)))
    return _wide(s, graph.unary("Reciprocal", root))


def _wide(s: Backward, value: Value) -> Value:
    """Return a value a channel, with axes of length 1 behind."""
    rank = s.input(0).rank
    return s.graph.reshape(value, (value.num_elements, *[1] * (rank - 2)))
