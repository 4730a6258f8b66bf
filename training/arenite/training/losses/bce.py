"""Binary cross-entropy: each element of the output is a yes or a no of its own."""

from collections.abc import Mapping

from arenite.training.builder import Builder
from arenite.training.graph import Node, Value
from arenite.training.losses.loss import Measured, before, scaled_by


def bce(
    graph: Builder, output: Value, makers: Mapping[str, Node], scale: Value | float
) -> Measured:
    """Write the mean over all elements; the gradient is (sigmoid z - t) / E.

    Scores z are what a last Sigmoid reads, or else the output. The loss is
    max(z, 0) - z t + log(1 + e^-|z|), which no score overflows.
    """
    scores, _ = before(graph, output, makers, "Sigmoid")
    targets = graph.new("targets", scores.dtype, scores.shape)
    count = max(1, scores.num_elements)
    tail = graph.unary("Softplus", graph.unary("Neg", graph.unary("Abs", scores)))
    line = graph.minus(graph.unary("Relu", scores), graph.times(scores, targets))
    total = graph.reduce_sum(graph.plus(line, tail), list(range(scores.rank)))
    loss = graph.scaled(total, 1 / count)
    difference = graph.minus(graph.unary("Sigmoid", scores), targets)
    return Measured(loss, targets, scores, scaled_by(graph, difference, scale, 1 / count))
