"""What a graph has live at once, by the planner's own count."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from arenite.planner import AliasKind, Program, Step, Tensor, TensorKind, liveness
from arenite.planner.importers.onnx import Dialect, States, onnx_operator, placed
from arenite.planner.rewrites import share
from arenite.training.graph import Node, StepGraph

_SHARED = (AliasKind.VIEWS, AliasKind.IN_PLACE, AliasKind.SLICES)
_FORMER = {"Slice": ("starts", "ends", "axes", "steps"), "Pad": ("pads",)}
"""What the planner wants as attributes: inputs by position, from the second on."""


def loads(
    graph: StepGraph,
    nodes: Sequence[Node],
    inputs: Collection[str],
    states: Mapping[str, str],
    loss: str,
) -> dict[str, int]:
    """Return the bytes that are live at each node, states aside, by its name.

    Args:
        graph: The graph.
        nodes: Its nodes that run, in order.
        inputs: Names of the inputs that are no states.
        states: The value that replaces each state.
        loss: Name of the result.
    """
    names = {name for node in nodes for name in (*node.inputs, *node.outputs) if name}
    names.update(inputs)
    kinds = dict.fromkeys(inputs, TensorKind.INPUT)
    kinds.update(dict.fromkeys(graph.constants, TensorKind.CONSTANT))
    kinds.update(dict.fromkeys(states, TensorKind.STATE))
    kinds[loss] = TensorKind.OUTPUT
    flat = [
        Tensor(value.name, value.dtype, value.shape, kinds.get(value.name, TensorKind.ACTIVATION))
        for value in graph.values.values()
        if value.name in names
    ]
    given = [_step(graph, node) for node in nodes]
    tensors, steps = placed(States(states, {}), flat, given, Dialect(0, {}))
    program = Program.of("step", tensors, steps, list(inputs), [loss])
    found = liveness(share(program, _SHARED))
    change = np.zeros(len(steps) + 1, np.int64)
    for record in found.records:
        if record.name not in states:
            change[record.start] += record.size
            change[record.end] -= record.size
    return dict(zip(found.steps, np.cumsum(change).tolist(), strict=False))


def _step(graph: StepGraph, node: Node) -> Step:
    attributes = dict(node.attributes)
    for position, name in enumerate(_FORMER.get(node.op_type, ()), 1):
        if position < len(node.inputs) and node.inputs[position] in graph.constants:
            numbers = graph.constants[node.inputs[position]]
            attributes[name] = tuple(int(each) for each in numbers.reshape(-1))
    return Step(node.name, onnx_operator(node.op_type, attributes), node.inputs, node.outputs)
