"""Which subgraphs a TFLite operator enters, and which variable it means, by its options."""

from types import ModuleType
from typing import Any

_CONTROL: dict[str, tuple[str, str, dict[str, str]]] = {
    "IF": (
        "BuiltinOptions",
        "IfOptions",
        {"then": "ThenSubgraphIndex", "else": "ElseSubgraphIndex"},
    ),
    "WHILE": (
        "BuiltinOptions",
        "WhileOptions",
        {"cond": "CondSubgraphIndex", "body": "BodySubgraphIndex"},
    ),
    "CALL_ONCE": ("BuiltinOptions", "CallOnceOptions", {"init": "InitSubgraphIndex"}),
    "CALL": ("BuiltinOptions", "CallOptions", {"callee": "Subgraph"}),
    "STABLEHLO_WHILE": (
        "BuiltinOptions2",
        "StablehloWhileOptions",
        {"cond": "CondSubgraphIndex", "body": "BodySubgraphIndex"},
    ),
    "STABLEHLO_COMPOSITE": (
        "BuiltinOptions2",
        "StableHLOCompositeOptions",
        {"decomposition": "DecompositionSubgraphIndex"},
    ),
}
"""For each operator that enters subgraphs: the union its options lie in, their type, and
the field of each role."""


def entered_subgraphs(
    schema: ModuleType, operator: Any, op_type: str
) -> tuple[tuple[str, int], ...] | None:
    """Return the role and index of each subgraph, or None where the options are missing.

    Operators that apply a subgraph to single elements (as `STABLEHLO_SORT` does its
    comparator) enter none: their kernels find the memory for it.

    Args:
        schema: The schema package.
        operator: The schema's reader of the operator.
        op_type: Name of the built-in operator.
    """
    if op_type not in _CONTROL:
        return ()
    union, options_type, fields = _CONTROL[op_type]
    expected = getattr(getattr(schema, union), options_type)
    table = getattr(operator, union)()
    if getattr(operator, f"{union}Type")() != expected or table is None:
        return None
    options = getattr(schema, options_type)()
    options.Init(table.Bytes, table.Pos)
    return tuple((role, getattr(options, field)()) for role, field in fields.items())


def variable_options(schema: ModuleType, operator: Any, op_type: str) -> Any:
    """Return the options that name the variable of a `VAR_HANDLE`, or None.

    Args:
        schema: The schema package.
        operator: The schema's reader of the operator.
        op_type: Name of the built-in operator.
    """
    table = operator.BuiltinOptions() if op_type == "VAR_HANDLE" else None
    if table is None or operator.BuiltinOptionsType() != schema.BuiltinOptions.VarHandleOptions:
        return None
    options = schema.VarHandleOptions()
    options.Init(table.Bytes, table.Pos)
    return options
