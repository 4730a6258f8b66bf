"""Operators whose result holds the bytes of their operand, in another shape."""

from arenite.planner.graph import Graph, Operator, TensorKind

VIEWS = frozenset(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}
    | {"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BITCAST"}
)
"""Operators whose first output holds the bytes of the first input."""


def is_view(operator: Operator) -> bool:
    """Tell whether the first output holds the bytes of the first input."""
    operands = (*operator.inputs[:1], *operator.outputs[:1])
    return operator.op_type in VIEWS and len(operands) == 2 and all(operands)


def why_not_viewed(graph: Graph, operator: Operator) -> str | None:
    """Return what is against the result of a view lying in its operand."""
    source, result = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    kinds = {source.kind, graph.tensors[graph.root(source.name)[0]].kind}
    if TensorKind.CONSTANT in kinds:
        return "a constant has no storage in the arena"
    if TensorKind.STATE in kinds:
        return "the state's bytes may change under the view"
    if result.alias is not None:
        return "it lies in another storage already"
    if source.size != result.size:
        return "the sizes differ"
    return None
