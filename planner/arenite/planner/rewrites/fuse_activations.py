"""Fuse an activation into the operator that feeds it: the tensor between them is gone."""

from collections import Counter
from dataclasses import replace

from arenite.planner.graph import Graph, Operator, TensorKind

PRODUCERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul"})
"""Operators whose kernels clamp their result as they write it."""

ACTIVATIONS = frozenset({"Relu", "Clip"})
"""Clamps that those kernels take: what TFLite and XNNPACK fuse."""


def fuse_activations(graph: Graph) -> Graph:
    """Return `graph` with each clamp fused into the only operator that feeds it.

    The operator keeps its name, type and place and writes what the clamp wrote. It gains
    the attributes `activation`, the clamp's type; `activation_inputs`, the names of the
    constant bounds if they are tensors; and the clamp's own attributes, each prefixed with
    `activation_`. Operators of ONNX's default domain only.

    A clamp stays where its bounds are not constants, where its input is read by others,
    is a graph output or shares storage, or where its producer has one already.

    Cost: O(tensors + operator operands).
    """
    producers = {name: operator for operator in graph.operators for name in operator.writes}
    num_readers = Counter(name for operator in graph.operators for name in operator.reads)
    shared = _sharing_storage(graph)
    clamps: dict[str, Operator] = {}
    for operator in graph.operators:
        if not _is_clamp(graph, operator):
            continue
        between = operator.inputs[0]
        producer = producers.get(between)
        if (
            producer is not None
            and producer.op_type in PRODUCERS
            and "activation" not in producer.attributes
            and num_readers[between] == 1
            and graph.tensors[between].kind is TensorKind.ACTIVATION
            and between not in graph.outputs
            and shared.isdisjoint((between, operator.outputs[0]))
        ):
            clamps[producer.name] = operator
    return _without(graph, clamps)


def _is_clamp(graph: Graph, operator: Operator) -> bool:
    return operator.op_type in ACTIVATIONS and all(
        graph.tensors[name].kind is TensorKind.CONSTANT for name in operator.inputs[1:] if name
    )


def _sharing_storage(graph: Graph) -> set[str]:
    """Return the tensors that lie in another, and those in which another lies."""
    sharing: set[str] = set()
    for tensor in graph.tensors.values():
        if tensor.alias is not None:
            sharing.update((tensor.name, tensor.alias.tensor))
    return sharing


def _without(graph: Graph, clamps: dict[str, Operator]) -> Graph:
    """Return `graph` with each clamp inside the operator of the name it is under."""
    gone = {clamp.name for clamp in clamps.values()}
    between = {clamp.inputs[0] for clamp in clamps.values()}
    operators = tuple(
        _fused(operator, clamps[operator.name]) if operator.name in clamps else operator
        for operator in graph.operators
        if operator.name not in gone
    )
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in between}
    return replace(graph, tensors=tensors, operators=operators)


def _fused(operator: Operator, clamp: Operator) -> Operator:
    attributes = dict(operator.attributes)
    attributes["activation"] = clamp.op_type
    if clamp.inputs[1:]:
        attributes["activation_inputs"] = clamp.inputs[1:]
    for name, value in clamp.attributes.items():
        attributes[f"activation_{name}"] = value
    return replace(operator, outputs=clamp.outputs, attributes=attributes)
