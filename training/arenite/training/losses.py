"""Loss functions and their gradients."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from arenite.planner import DType
from arenite.training.errors import UnfitLossError
from arenite.training.graph import Node, StepGraph, Value


@dataclass(frozen=True, slots=True)
class WrittenLoss:
    """A loss, written into a graph.

    Attributes:
        loss: Its value, a scalar.
        targets: New inputs of the graph that the output is compared with.
        source: The compared value: the model's output, or the operand of its last activation.
        seed: Gradient of the loss with respect to `source`, scaled.
    """

    loss: Value
    targets: tuple[Value, ...]
    source: Value
    seed: Value


class Loss(Protocol):
    """Compares the output of a model with targets."""

    def __call__(
        self, graph: StepGraph, output: Value, makers: Mapping[str, Node], scale: Value | float
    ) -> WrittenLoss:
        """Write the loss and its gradient into a graph.

        Args:
            output: The model's output.
            makers: The node that computes each value, by the value's name.
            scale: Factor of the gradient, not of the loss.

        Raises:
            UnfitLossError: The loss is not defined for the shape of the output.
        """
        ...


def bce(
    graph: StepGraph, output: Value, makers: Mapping[str, Node], scale: Value | float
) -> WrittenLoss:
    """Write the mean binary cross-entropy; the gradient is (sigmoid z - t) / E.

    Scores z are the operand of a last Sigmoid, or else the output. The loss is
    max(z, 0) - z t + log(1 + e^-|z|), which no score overflows.
    """
    scores, _ = _scores(graph, output, makers, "Sigmoid")
    targets = graph.new("targets", scores.dtype, scores.shape)
    count = max(1, scores.num_elements)
    tail = graph.unary("Softplus", graph.unary("Neg", graph.unary("Abs", scores)))
    line = graph.minus(graph.unary("Relu", scores), graph.times(scores, targets))
    loss = graph.scaled(graph.total(graph.plus(line, tail)), 1 / count)
    difference = graph.minus(graph.unary("Sigmoid", scores), targets)
    return WrittenLoss(loss, (targets,), scores, _scaled(graph, difference, scale, 1 / count))


def mse(
    graph: StepGraph, output: Value, makers: Mapping[str, Node], scale: Value | float
) -> WrittenLoss:
    """Write the mean squared error; the gradient is 2 (y - t) / E."""
    del makers
    targets = graph.new("targets", output.dtype, output.shape)
    count = max(1, output.num_elements)
    difference = graph.minus(output, targets)
    loss = graph.scaled(graph.total(graph.times(difference, difference)), 1 / count)
    return WrittenLoss(loss, (targets,), output, _scaled(graph, difference, scale, 2 / count))


def cross_entropy(
    graph: StepGraph, output: Value, makers: Mapping[str, Node], scale: Value | float
) -> WrittenLoss:
    """Write the mean cross-entropy over all labels; the gradient is (softmax - one-hot) / N.

    Scores are the operand of a last Softmax or LogSoftmax, or else the output. Labels are class
    numbers; the classes lie along the axis of that Softmax, or else axis 1.
    """
    scores, axis = _classes(graph, output, makers)
    labels, ones = _labels(graph, scores, axis)
    logarithms = graph.node("LogSoftmax", [scores], scores.shape, axis=axis)
    count = max(1, labels.num_elements)
    loss = graph.scaled(graph.total(graph.times(logarithms, ones)), -1 / count)
    difference = graph.minus(graph.unary("Exp", logarithms), ones)
    return WrittenLoss(loss, (labels,), scores, _scaled(graph, difference, scale, 1 / count))


@dataclass(frozen=True, slots=True)
class DistillationLoss:
    """Cross-entropy of labels, mixed with the divergence from a teacher's softened scores.

    L = weight T^2 KL(softmax(taught / T), softmax(z / T)) + (1 - weight) cross-entropy(z). The
    input `taught` of the step holds the teacher's scores. T^2 keeps the gradients of both parts
    in proportion.

    Attributes:
        temperature: T, the divisor of the scores; above 0.
        weight: Share of the teacher in the loss, 0 to 1.

    Source: Hinton, Vinyals and Dean, Distilling the Knowledge in a Neural Network,
    arXiv 1503.02531, section 2.
    """

    temperature: float = 4.0
    weight: float = 0.9

    def __post_init__(self) -> None:
        if not self.temperature > 0 or not 0 <= self.weight <= 1:
            raise ValueError("temperature must be above 0, weight from 0 to 1")

    def __call__(
        self, graph: StepGraph, output: Value, makers: Mapping[str, Node], scale: Value | float
    ) -> WrittenLoss:
        """Write the loss; its gradient is linear in those of both parts."""
        scores, axis = _classes(graph, output, makers)
        labels, ones = _labels(graph, scores, axis)
        taught = graph.new("taught", scores.dtype, scores.shape)
        count = max(1, labels.num_elements)
        soft, aims = (
            graph.node(
                "LogSoftmax", [graph.scaled(each, 1 / self.temperature)], scores.shape, axis=axis
            )
            for each in (scores, taught)
        )
        aim = graph.unary("Exp", aims)
        divergence = graph.total(graph.times(aim, graph.minus(aims, soft)))
        loss = graph.scaled(divergence, self.weight * self.temperature**2 / count)
        seed = graph.scaled(
            graph.minus(graph.unary("Exp", soft), aim), self.weight * self.temperature
        )
        if self.weight < 1:
            logarithms = graph.node("LogSoftmax", [scores], scores.shape, axis=axis)
            total = graph.total(graph.times(logarithms, ones))
            loss = graph.plus(loss, graph.scaled(total, (self.weight - 1) / count))
            hard = graph.minus(graph.unary("Exp", logarithms), ones)
            seed = graph.plus(seed, graph.scaled(hard, 1 - self.weight))
        return WrittenLoss(loss, (labels, taught), scores, _scaled(graph, seed, scale, 1 / count))


def _classes(graph: StepGraph, output: Value, makers: Mapping[str, Node]) -> tuple[Value, int]:
    scores, last = _scores(graph, output, makers, "Softmax", "LogSoftmax")
    if scores.rank < 2:
        raise UnfitLossError(
            f"cross-entropy needs scores of classes along axis 1; output {output.name!r} has "
            f"shape {list(output.shape)}"
        )
    return scores, 1 if last is None else int(last.attributes.get("axis", -1)) % scores.rank


def _labels(graph: StepGraph, scores: Value, axis: int) -> tuple[Value, Value]:
    """Return the input of class numbers, and its one-hot form in the shape of the scores."""
    shape = (*scores.shape[:axis], *scores.shape[axis + 1 :])
    labels = graph.new("labels", DType.INT64, shape)
    numbers = graph.constant(np.array([0, 1]), scores.dtype)
    depth = graph.constant(np.array(scores.shape[axis], np.int64))
    ones = graph.node("OneHot", [labels, depth, numbers], scores.shape, scores.dtype, axis=axis)
    return labels, ones


def _scaled(graph: StepGraph, value: Value, scale: Value | float, number: float) -> Value:
    """Return a value times a scale and a number, in one multiplication where possible."""
    if isinstance(scale, float):
        return graph.scaled(value, scale * number)
    return graph.times(value, graph.scaled(scale, number))


def _scores(
    graph: StepGraph, output: Value, makers: Mapping[str, Node], *activations: str
) -> tuple[Value, Node | None]:
    """Return the operand of a last activation and that node; without one the output and None."""
    maker = makers.get(output.name)
    if maker is None or maker.op_type not in activations:
        return output, None
    return graph.values[maker.inputs[0]], maker


LOSSES: Final[Mapping[str, Loss]] = {"cross-entropy": cross_entropy, "bce": bce, "mse": mse}
"""Loss functions by name."""
