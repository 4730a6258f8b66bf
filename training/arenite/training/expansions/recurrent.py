"""Recurrent networks over a short sequence, step after step.

A layer of T steps becomes one product for all inputs and one a step for the hidden state::

    X (T, N, I) -> Gemm by W -> (T, N, gates) -> Split -> step 0, step 1, ...
                                                          h_0 -> h_1 -> ...
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arenite.training.expansions.call import Call, NotExpandedError
from arenite.training.graph import Value


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a layer.

    Attributes:
        weights: Of the inputs, (gates H, I).
        recurrence: Of the hidden state, (gates H, H).
        input_bias: Bias of the inputs, (gates H); None if there is none.
        hidden_bias: Bias of the hidden state, (gates H).
        hidden: Hidden state at the start, (N, H); None for zeros.
        cell: The same of the cells, where there are any.
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

    def run(direction: Direction, steps: Sequence[Value]) -> tuple[list[Value], Value | None]:
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

    def run(direction: Direction, steps: Sequence[Value]) -> tuple[list[Value], Value | None]:
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

    def run(direction: Direction, steps: Sequence[Value]) -> tuple[list[Value], Value | None]:
        made, hidden = [], direction.hidden
        for step in steps:
            hidden = call.graph.unary("Tanh", _recurred(call, direction, step, hidden))
            made.append(hidden)
        return made, None

    return _layer(call, 1, run)


_Run = Callable[[Direction, Sequence[Value]], tuple[list[Value], Value | None]]

_LONGEST = 512
"""Most steps of a sequence that are written out."""


def _refuse(call: Call, activations: tuple[str, ...], *, cell: bool = False) -> None:
    attributes = call.node.attributes
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    stated = attributes.get("activations", activations * directions)
    if tuple(str(each).lower() for each in stated) != tuple(
        each.lower() for each in activations * directions
    ):
        raise NotExpandedError(f"its activations are {', '.join(map(str, stated))}")
    for name in ("clip", "input_forget", "layout"):
        if attributes.get(name):
            raise NotExpandedError(f"it states {name}")
    if call.optional(4) is not None:
        raise NotExpandedError("its sequences have lengths of their own")
    if cell and call.optional(7) is not None:
        raise NotExpandedError("it has peepholes")
    if call.input(0).shape[0] > _LONGEST:
        raise NotExpandedError(f"more than {_LONGEST} steps are not written out")


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


def _direction(call: Call, number: int, height: int) -> Direction:
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
    return Direction(weights, recurrence, biases[0], biases[1], cut(5), cut(6))


def _recurred(call: Call, direction: Direction, step: Value, hidden: Value | None) -> Value:
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
