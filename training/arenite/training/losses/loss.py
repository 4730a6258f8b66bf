"""What a loss is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from arenite.training.builder import Builder
from arenite.training.graph import Node, Value


@dataclass(frozen=True, slots=True)
class Measured:
    """A loss, written into a graph.

    Attributes:
        loss: Its value, without axes.
        target: The new input of the graph that says what is right.
        source: What was compared with it: the model's output, or what a last activation reads.
        seed: Gradient of the loss with respect to `source`, scaled.
    """

    loss: Value
    target: Value
    source: Value
    seed: Value


class Loss(Protocol):
    """Compares what a model makes with what is right."""

    def __call__(
        self, graph: Builder, output: Value, makers: Mapping[str, Node], scale: Value | float
    ) -> Measured:
        """Write the loss and its gradient into a graph.

        Args:
            graph: The graph.
            output: What the model makes.
            makers: The node that makes each value, by the value's name.
            scale: Factor of the gradient, not of the loss.

        Raises:
            UnfitLossError: The loss does not go with such an output.
        """
        ...


def scaled_by(graph: Builder, value: Value, scale: Value | float, number: float) -> Value:
    """Return a value times a scale and a number, in one multiplication where that can be."""
    if isinstance(scale, float):
        return graph.scaled(value, scale * number)
    return graph.times(value, graph.scaled(scale, number))


def before(
    graph: Builder, output: Value, makers: Mapping[str, Node], *activations: str
) -> tuple[Value, Node | None]:
    """Return what a last activation reads, and that; the output if there is none."""
    maker = makers.get(output.name)
    if maker is None or maker.op_type not in activations:
        return output, None
    return graph.values[maker.inputs[0]], maker
