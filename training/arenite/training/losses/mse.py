"""Mean squared error."""

from collections.abc import Mapping

from arenite.training.builder import Builder
from arenite.training.graph import Node, Value
from arenite.training.losses.loss import Measured, scaled_by


def mse(
    graph: Builder, output: Value, makers: Mapping[str, Node], scale: Value | float
) -> Measured:
    """Write the mean over all elements; the gradient is 2 (y - t) / E."""
    del makers
    targets = graph.new("targets", output.dtype, output.shape)
    count = max(1, output.num_elements)
    difference = graph.minus(output, targets)
    square = graph.times(difference, difference)
    loss = graph.scaled(graph.reduce_sum(square, list(range(output.rank))), 1 / count)
    return Measured(loss, targets, output, scaled_by(graph, difference, scale, 2 / count))
