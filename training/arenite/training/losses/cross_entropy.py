"""Cross-entropy of classes: minus the logarithm of the probability of the right one."""

from collections.abc import Mapping

import numpy as np

from arenite.planner.dtypes import DType
from arenite.training.builder import Builder
from arenite.training.errors import UnfitLossError
from arenite.training.graph import Node, Value
from arenite.training.losses.loss import Measured, before, scaled_by


def cross_entropy(
    graph: Builder, output: Value, makers: Mapping[str, Node], scale: Value | float
) -> Measured:
    """Write the mean over all labels; the gradient is (softmax - one for the right class) / N.

    Scores are what a last Softmax or LogSoftmax reads, or else the output. Labels are numbers
    of classes: the classes lie along the axis of that Softmax, or else axis 1.
    """
    scores, last = before(graph, output, makers, "Softmax", "LogSoftmax")
    if scores.rank < 2:
        raise UnfitLossError(
            f"the loss cross-entropy wants scores of classes along axis 1, and the model makes "
            f"{output.name!r} of shape {list(output.shape)}"
        )
    axis = 1 if last is None else int(last.attributes.get("axis", -1)) % scores.rank
    depth = scores.shape[axis]
    shape = (*scores.shape[:axis], *scores.shape[axis + 1 :])
    labels = graph.new("labels", DType.INT64, shape)
    logarithms = graph.node("LogSoftmax", [scores], scores.shape, axis=axis)
    numbers = graph.constant(np.array([0, 1]), scores.dtype)
    ones = graph.node(
        "OneHot",
        [labels, graph.constant(np.array(depth, np.int64)), numbers],
        scores.shape,
        scores.dtype,
        axis=axis,
    )
    count = max(1, labels.num_elements)
    total = graph.reduce_sum(graph.times(logarithms, ones), list(range(scores.rank)))
    loss = graph.scaled(total, -1 / count)
    difference = graph.minus(graph.unary("Exp", logarithms), ones)
    return Measured(loss, labels, scores, scaled_by(graph, difference, scale, 1 / count))
