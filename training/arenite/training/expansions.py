"""Operators that are written as simpler ones where they are differentiated.

A recurrent layer of T steps becomes one product for all inputs and one per step for the hidden
state::

    X (T, N, I) -> Gemm by W -> (T, N, gates) -> Split -> step 0, step 1, ...
                                                          h_0 -> h_1 -> ...
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from arenite.training.graph import Node, StepGraph, Value
from arenite.training.rules_layers import WITH_BATCH_STATISTICS


class NotExpandedError(Exception):
    """An operator with these attributes or operands cannot be written as simpler ones."""


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its operands.

    Attributes:
        graph: Graph that receives the simpler operators.
        node: The operator.
        inputs: Operands by position; None where one is left out.
        outputs: Results by position, for their types; None where one is left out.
    """

    graph: StepGraph
    node: Node
    inputs: Sequence[Value | None]
    outputs: Sequence[Value | None]

    def input(self, position: int) -> Value:
        """Return an operand that must be there."""
        found = self.optional(position)
        if found is None:
            raise NotExpandedError(f"input {position} is missing")
        return found

    def optional(self, position: int) -> Value | None:
        """Return an operand, None if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def ints(self, name: str, position: int, default: Sequence[int]) -> list[int]:
        """Return integers that an attribute or, in later versions, a constant input states."""
        found = self.node.attributes.get(name)
        value = self.optional(position)
        if found is None and value is not None:
            found = self.graph.constants.get(value.name)
            if found is None:
                raise NotExpandedError(f"{name} is not a constant")
        return [int(each) for each in np.asarray(default if found is None else found).reshape(-1)]


Expansion: TypeAlias = Callable[[Call], Sequence[Value | None] | None]
"""Writes an operator and returns its results by position, None for missing ones.

It returns None as a whole, and writes nothing, where the operator has a rule as it is.
"""


def layer_normalization(call: Call) -> Sequence[Value | None]:
    """LayerNormalization: over the last axes."""
    source = call.input(0)
    axis = int(call.node.attributes.get("axis", -1)) % source.rank
    found = _normalised(call, list(range(axis, source.rank)))
    found = call.graph.times(found, call.input(1))
    bias = call.optional(2)
    return [found if bias is None else call.graph.plus(found, bias)]


def instance_normalization(call: Call) -> Sequence[Value | None]:
    """InstanceNormalization: over the pixels of each channel of each image."""
    source, graph = call.input(0), call.graph
    found = _normalised(call, list(range(2, source.rank)))
    wide = (source.shape[1], *[1] * (source.rank - 2))
    scale, bias = (graph.reshape(call.input(position), wide) for position in (1, 2))
    return [graph.plus(graph.times(found, scale), bias)]


def _normalised(call: Call, axes: list[int]) -> Value:
    graph, source = call.graph, call.input(0)
    epsilon = float(call.node.attributes.get("epsilon", 1e-5))
    centred = graph.minus(source, graph.mean(source, axes))
    variance = graph.mean(graph.times(centred, centred), axes)
    root = graph.unary("Sqrt", graph.plus(variance, graph.scalar(epsilon, source)))
    return graph.over(centred, root)


def gelu(call: Call) -> Sequence[Value | None]:
    """Gelu by its error function, or by the Tanh that approximates it."""
    graph, source = call.graph, call.input(0)
    if str(call.node.attributes.get("approximate", "none")) == "tanh":
        cube = graph.times(source, graph.times(source, source))
        inner = graph.plus(source, graph.scaled(cube, 0.044715))
        bell = graph.unary("Tanh", graph.scaled(inner, math.sqrt(2 / math.pi)))
    else:
        bell = graph.unary("Erf", graph.scaled(source, 1 / math.sqrt(2)))
    half = graph.scaled(graph.plus(bell, graph.scalar(1, source)), 0.5)
    return [graph.times(source, half)]


def mish(call: Call) -> Sequence[Value | None]:
    """Mish: x tanh(softplus x)."""
    graph, source = call.graph, call.input(0)
    return [graph.times(source, graph.unary("Tanh", graph.unary("Softplus", source)))]


def pad(call: Call) -> Sequence[Value | None] | None:
    """Pad by reflection, by the edge or around: a Gather along each axis."""
    mode = str(call.node.attributes.get("mode", "constant"))
    if mode == "constant":
        return None
    source = call.input(0)
    axes = call.ints("axes", 3, range(source.rank))
    pads = call.ints("pads", 1, [])
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        places = np.arange(call.input(0).shape[axis])
        known = places[max(0, -before) : len(places) - max(0, -after)]
        around = np.pad(known, (max(0, before), max(0, after)), mode)  # type: ignore[call-overload]
        source = call.graph.gather(source, around, axis % source.rank)
    return [source]


def cut(call: Call) -> Sequence[Value | None] | None:
    """Slice backwards: a Gather along each axis."""
    source = call.input(0)
    starts, ends = call.ints("starts", 1, []), call.ints("ends", 2, [])
    axes = call.ints("axes", 3, range(len(starts)))
    steps = call.ints("steps", 4, [1] * len(starts))
    if min(steps) > 0:
        return None
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places = np.arange(source.shape[axis])[start:end:step]
        source = call.graph.gather(source, places, axis % source.rank)
    return [source]


def batch_normalization(call: Call) -> tuple[Value, Value, Value]:
    """Write a BatchNormalization by the statistics of its batch, and return those too.

    The ordinary operator normalises; only its mean and variance are made in the run.
    """
    graph, source = call.graph, call.input(0)
    axes = [axis for axis in range(source.rank) if axis != 1]
    wide = graph.mean(source, axes)
    centred = graph.minus(source, wide)
    spread = graph.mean(graph.times(centred, centred), axes)
    mean, variance = (graph.reshape(each, (source.shape[1],)) for each in (wide, spread))
    attributes = {
        name: value
        for name, value in call.node.attributes.items()
        if name in ("epsilon", "momentum")
    }
    (result,) = graph.nodes_outputs(
        "BatchNormalization",
        [source, call.input(1), call.input(2), mean, variance],
        [(source.dtype, source.shape)],
        WITH_BATCH_STATISTICS,
        **attributes,
    )
    return result, mean, variance


@dataclass(frozen=True, slots=True)
class GateWeights:
    """Weights of one direction of a recurrent layer.

    Attributes:
        weights: Weights of the inputs, (gates H, I).
        recurrence: Weights of the hidden state, (gates H, H).
        input_bias: Bias of the inputs, (gates H); None if there is none.
        hidden_bias: Bias of the hidden state, (gates H).
        hidden: Hidden state at the start, (N, H); None for zeros.
        cell: Cell state at the start, (N, H); None for zeros.
    """

    weights: Value
    recurrence: Value
    input_bias: Value | None
    hidden_bias: Value | None
    hidden: Value | None
    cell: Value | None


def lstm(call: Call) -> Sequence[Value | None]:
    """LSTM: gates in the order input, output, forget, cell."""
    _refuse(call, ("Sigmoid", "Tanh", "Tanh"), cell=True)

    def run(direction: GateWeights, steps: Sequence[Value]) -> tuple[list[Value], Value | None]:
        graph, made = call.graph, []
        hidden, cell = direction.hidden, direction.cell
        for step in steps:
            gates = _recurred(call, direction, step, hidden)
            parts = graph.split(gates, 1, [gates.shape[1] // 4] * 4)
            enter, leave, forget = (graph.unary("Sigmoid", each) for each in parts[:3])
            new = graph.times(enter, graph.unary("Tanh", parts[3]))
            cell = new if cell is None else graph.plus(graph.times(forget, cell), new)
            hidden = graph.times(leave, graph.unary("Tanh", cell))
            made.append(hidden)
        return made, cell

    return _layer(call, 4, run)


def gru(call: Call) -> Sequence[Value | None]:
    """GRU: gates in the order update, reset, hidden."""
    _refuse(call, ("Sigmoid", "Tanh"))
    is_linear_first = bool(call.node.attributes.get("linear_before_reset", 0))

    def run(direction: GateWeights, steps: Sequence[Value]) -> tuple[list[Value], Value | None]:
        graph, made = call.graph, []
        hidden = direction.hidden
        size = direction.recurrence.shape[1]
        matrices = graph.split(direction.recurrence, 0, [2 * size, size])
        biases: list[Value | None] = [None, None]
        if direction.hidden_bias is not None:
            biases = list(graph.split(direction.hidden_bias, 0, [2 * size, size]))
        for step in steps:
            early, own = graph.split(step, 1, [2 * size, size])
            gates = _plus(call, early, _product(call, hidden, matrices[0], biases[0]))
            update, reset = (
                graph.unary("Sigmoid", each) for each in graph.split(gates, 1, [size, size])
            )
            if is_linear_first:
                inner = _product(call, hidden, matrices[1], biases[1])
                turned = None if inner is None else graph.times(reset, inner)
            else:
                kept = None if hidden is None else graph.times(reset, hidden)
                turned = _product(call, kept, matrices[1], biases[1])
            new = graph.unary("Tanh", _plus(call, own, turned))
            # (1 - z) new + z h, with one product less
            if hidden is None:
                hidden = graph.minus(new, graph.times(update, new))
            else:
                hidden = graph.plus(new, graph.times(update, graph.minus(hidden, new)))
            made.append(hidden)
        return made, None

    return _layer(call, 3, run)


def rnn(call: Call) -> Sequence[Value | None]:
    """RNN with Tanh."""
    _refuse(call, ("Tanh",))

    def run(direction: GateWeights, steps: Sequence[Value]) -> tuple[list[Value], Value | None]:
        made, hidden = [], direction.hidden
        for step in steps:
            hidden = call.graph.unary("Tanh", _recurred(call, direction, step, hidden))
            made.append(hidden)
        return made, None

    return _layer(call, 1, run)


_Run = Callable[[GateWeights, Sequence[Value]], tuple[list[Value], Value | None]]

_LONGEST = 512
"""Longest supported sequence: each step becomes operators."""


def _refuse(call: Call, activations: tuple[str, ...], *, cell: bool = False) -> None:
    attributes = call.node.attributes
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    stated = attributes.get("activations", activations * directions)
    if tuple(str(each).lower() for each in stated) != tuple(
        each.lower() for each in activations * directions
    ):
        raise NotExpandedError(f"activations={', '.join(map(str, stated))} is unsupported")
    for name in ("clip", "input_forget", "layout"):
        if attributes.get(name):
            raise NotExpandedError(f"{name} is unsupported")
    if call.optional(4) is not None:
        raise NotExpandedError("sequence_lens is unsupported")
    if cell and call.optional(7) is not None:
        raise NotExpandedError("peepholes are unsupported")
    if call.input(0).shape[0] > _LONGEST:
        raise NotExpandedError(f"more than {_LONGEST} steps are unsupported")


def _layer(call: Call, num_gates: int, run: _Run) -> Sequence[Value | None]:
    graph, source = call.graph, call.input(0)
    length, batch, width = source.shape
    size = call.input(2).shape[2]
    ways = {"reverse": (True,), "bidirectional": (False, True)}
    reversals = ways.get(str(call.node.attributes.get("direction", "forward")), (False,))
    rows = graph.reshape(source, (length * batch, width))
    all_steps: list[list[Value]] = []
    ends: list[tuple[Value, Value | None]] = []
    for number, is_reversed in enumerate(reversals):
        direction = _direction(call, number, num_gates * size)
        gates = graph.gemm(rows, direction.weights, direction.input_bias, trans_b=True)
        wide = graph.reshape(gates, (length, batch, num_gates * size))
        steps = [
            graph.reshape(each, (batch, num_gates * size))
            for each in graph.split(wide, 0, [1] * length)
        ]
        made, cell = run(direction, steps[::-1] if is_reversed else steps)
        ends.append((made[-1], cell))
        all_steps.append(made[::-1] if is_reversed else made)
    shape = (1, 1, batch, size)
    whole = graph.concat(
        [
            graph.concat([graph.reshape(way[time], shape) for way in all_steps], 1)
            for time in range(length)
        ],
        0,
    ) if _is_read(call, 0) else None  # fmt: skip
    last = graph.concat([graph.reshape(end, shape[1:]) for end, _ in ends], 0)
    cells = [graph.reshape(cell, shape[1:]) for _, cell in ends if cell is not None]
    return whole, last, graph.concat(cells, 0) if cells else None


def _is_read(call: Call, position: int) -> bool:
    return position < len(call.outputs) and call.outputs[position] is not None


def _direction(call: Call, number: int, height: int) -> GateWeights:
    """Return the operands of one direction, cut out of those of all."""
    graph = call.graph

    def cut(position: int) -> Value | None:
        value = call.optional(position)
        if value is None:
            return None
        return graph.reshape(graph.slice(value, [0], [number], [number + 1]), value.shape[1:])

    weights, recurrence, bias = cut(1), cut(2), cut(3)
    assert weights is not None
    assert recurrence is not None
    biases: list[Value | None] = [None, None]
    if bias is not None:
        biases = list(graph.split(bias, 0, [height, height]))
    return GateWeights(weights, recurrence, biases[0], biases[1], cut(5), cut(6))


def _recurred(call: Call, direction: GateWeights, step: Value, hidden: Value | None) -> Value:
    """Return the gates: those of the inputs and those of the hidden state."""
    product = _product(call, hidden, direction.recurrence, direction.hidden_bias)
    return _plus(call, step, product)


def _product(call: Call, hidden: Value | None, matrix: Value, bias: Value | None) -> Value | None:
    """Return hidden times the transposed matrix plus bias; None where that is 0."""
    if hidden is None:
        return bias
    return call.graph.gemm(hidden, matrix, bias, trans_b=True)


def _plus(call: Call, one: Value, other: Value | None) -> Value:
    return one if other is None else call.graph.plus(one, other)


EXPANSIONS: Final[Mapping[str, Expansion]] = {
    "LSTM": lstm,
    "GRU": gru,
    "RNN": rnn,
    "LayerNormalization": layer_normalization,
    "InstanceNormalization": instance_normalization,
    "Gelu": gelu,
    "Mish": mish,
    "Pad": pad,
    "Slice": cut,
}
"""Expansions by operator of ONNX."""
