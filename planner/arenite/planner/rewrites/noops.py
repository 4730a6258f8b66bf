"""Operators that change nothing cost no memory: their output lies in their input."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from arenite.planner.graph import Alias, Graph, Operator, Tensor, TensorKind

KEEPERS = frozenset(
    {"Cast", "CastLike", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Tile",
     "Unsqueeze"}
    | {"BROADCAST_TO", "CAST", "EXPAND_DIMS", "PAD", "PADV2", "RESHAPE", "SLICE", "SQUEEZE",
       "TILE"}
)  # fmt: skip
"""Operators that change nothing if input and output agree in type and shape."""

# Change nothing if, beside that, they have one operand.
_COMBINERS = frozenset({"Concat", "Max", "Mean", "Min", "Sum"})


def drop_noops(graph: Graph) -> Graph:
    """Return the graph with the outputs of no-ops marked as lying in their inputs.

    The operators stay in place. A copy that the run needs stays one: of a constant to a
    graph output, to or from a state, and out of a storage that something else writes too.

    Cost: O(tensors + operator operands).
    """
    num_writers = _num_writers(graph)
    tensors = dict(graph.tensors)
    for operator in graph.operators:
        if _changes_nothing(graph, operator):
            source, target = tensors[operator.inputs[0]], tensors[operator.outputs[0]]
            root = _root(tensors, source)
            overwritten = max(num_writers[root.name], num_writers[target.name]) > 1
            if not overwritten and _may_share(root, target):
                tensors[target.name] = replace(target, alias=Alias(source.name))
    return replace(graph, tensors=tensors)


def _num_writers(graph: Graph) -> Counter[str]:
    """Return how many write to each storage, the caller included."""
    names = [*graph.inputs, *(n for operator in graph.operators for n in operator.writes)]
    return Counter(graph.root(name)[0] for name in names)


def _root(tensors: Mapping[str, Tensor], tensor: Tensor) -> Tensor:
    while tensor.alias is not None:
        tensor = tensors[tensor.alias.tensor]
    return tensor


def _changes_nothing(graph: Graph, operator: Operator) -> bool:
    if not (operator.outputs and operator.outputs[0] and operator.inputs and operator.inputs[0]):
        return False
    source, target = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    if (source.dtype, source.shape) != (target.dtype, target.shape):
        return False
    op_type, attributes = operator.op_type, operator.attributes
    if op_type in _COMBINERS:
        return len(operator.reads) == 1 == len(operator.inputs)
    if op_type == "Transpose":
        rank = len(source.shape)
        return attributes.get("perm", tuple(reversed(range(rank)))) == tuple(range(rank))
    if op_type == "Pad":
        pads = attributes.get("pads")
        return isinstance(pads, tuple) and not any(pads)
    if op_type == "Slice":
        # Without steps, which may be negative, every element stays where it is.
        return len(operator.inputs) < 5
    return op_type in KEEPERS


def _may_share(root: Tensor, target: Tensor) -> bool:
    if target.alias is not None or TensorKind.STATE in (root.kind, target.kind):
        return False
    return not (root.kind is TensorKind.CONSTANT and target.kind is TensorKind.OUTPUT)
