"""Operators that change nothing cost no memory: their output lies in their input."""

from collections import Counter
from dataclasses import replace

from arenite.planner.graph import Alias, Graph, Operator, Tensor, TensorKind

# Change nothing if input and output agree in type and shape.
_KEEPERS = frozenset(
    {"Cast", "CastLike", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Tile",
     "Unsqueeze"}
    | {"BROADCAST_TO", "CAST", "EXPAND_DIMS", "PAD", "PADV2", "RESHAPE", "SLICE", "SQUEEZE",
       "TILE"}
)  # fmt: skip
# Change nothing if, beside that, they have one operand.
_COMBINERS = frozenset({"Concat", "Max", "Mean", "Min", "Sum"})


def drop_noops(graph: Graph) -> Graph:
    """Return the graph with the outputs of no-ops marked as lying in their inputs.

    The operators stay in place. A copy that the run needs stays one: of a constant to a
    graph output, to or from a state, and out of a storage that something else writes too.

    Cost: O(tensors + operator operands).
    """
    writers = Counter(name for operator in graph.operators for name in operator.writes)
    writers.update(graph.inputs)
    num_writers: Counter[str] = Counter()
    for name, count in writers.items():
        num_writers[graph.root(name)[0]] += count
    tensors = dict(graph.tensors)
    for operator in graph.operators:
        if not _changes_nothing(graph, operator):
            continue
        source, target = tensors[operator.inputs[0]], tensors[operator.outputs[0]]
        root = graph.tensors[graph.root(source.name)[0]]
        if _may_share(root, target) and num_writers[root.name] <= 1:
            tensors[target.name] = replace(target, alias=Alias(source.name))
    return replace(graph, tensors=tensors)


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
    return op_type in _KEEPERS


def _may_share(root: Tensor, target: Tensor) -> bool:
    if target.alias is not None or TensorKind.STATE in (root.kind, target.kind):
        return False
    return not (root.kind is TensorKind.CONSTANT and target.kind is TensorKind.OUTPUT)
