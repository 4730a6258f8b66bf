"""A model lowered to what the native core runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from arenite.planner.graph import Graph
from arenite.runtime.lowering.layout import Order, Shape
from arenite.runtime.program.operators import RuntimeOperator

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Operand:
    """A storage as a step sees it.

    Attributes:
        tensor: The tensor of the graph, or the constant, whose bytes these are.
        shape: Stored axes.
        offset: First byte.
    """

    tensor: str
    shape: Shape
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What runs for an operator of the graph; None where an optional input is left out."""

    operator: RuntimeOperator
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output as the caller sees it.

    Attributes:
        name: In the model.
        operand: Where it lies.
        shape: In the model.
        order: Stored axis i is the caller's axis order[i].
    """

    name: str
    operand: Operand
    shape: Shape
    order: Order


@dataclass(frozen=True, slots=True)
class State:
    """A tensor kept from one run to the next; None: it starts as zeros."""

    tensor: str
    initial: Array | None


@dataclass(frozen=True, slots=True)
class Quantisation:
    """How integers stand for numbers: scale * (q - zero_point).

    Attributes:
        scales: One, or one for each index of `axis`.
        zero_point: The integer that stands for 0.
        axis: The stored axis that `scales` belong to, if they are many.
    """

    scales: tuple[float, ...]
    zero_point: int = 0
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Lowered:
    """The program of a model before it has a plan.

    Attributes:
        graph: What is planned: one operator a step, one tensor a storage.
        steps: By operator name.
        constants: By tensor name, in stored order.
        quantisations: By tensor name.
        inputs: In the model's order.
        outputs: In the model's order.
        states: Kept between runs.
        notes: What the user should know of the lowering.
    """

    graph: Graph
    steps: Mapping[str, Step]
    constants: Mapping[str, Array]
    quantisations: Mapping[str, Quantisation]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    states: tuple[State, ...]
    notes: tuple[str, ...]
