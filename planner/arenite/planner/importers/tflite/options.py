"""Options of TFLite operators: windows, subgraphs, variables, custom options."""

import struct
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from arenite.planner.operators.imported import AttributeValue
from arenite.planner.operators.windows import AutoPad

_OPTIONS = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
}


def window_attributes(
    schema: ModuleType, operator: Any, op_type: str
) -> Mapping[str, AttributeValue]:
    """Return `auto_pad`, strides, dilations and kernel shape, height first, where stated."""
    options_type = _OPTIONS.get(op_type)
    table = operator.BuiltinOptions() if options_type else None
    if options_type is None or table is None:
        return {}
    if operator.BuiltinOptionsType() != getattr(schema.BuiltinOptions, options_type):
        return {}
    options = getattr(schema, options_type)()
    options.Init(table.Bytes, table.Pos)
    found: dict[str, AttributeValue] = {
        "auto_pad": (
            AutoPad.VALID if options.Padding() == schema.Padding.VALID else AutoPad.SAME_UPPER
        ),
        "strides": (options.StrideH(), options.StrideW()),
    }
    if options_type == "Pool2DOptions":
        found["kernel_shape"] = (options.FilterHeight(), options.FilterWidth())
    else:
        found["dilations"] = (options.DilationHFactor(), options.DilationWFactor())
    return found


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
    """Return the options that name the variable of a `VAR_HANDLE`, or None."""
    table = operator.BuiltinOptions() if op_type == "VAR_HANDLE" else None
    if table is None or operator.BuiltinOptionsType() != schema.BuiltinOptions.VarHandleOptions:
        return None
    options = schema.VarHandleOptions()
    options.Init(table.Bytes, table.Pos)
    return options


_DAMAGE = (
    struct.error, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""Exceptions of the reader of FlexBuffers for bytes that are damaged, or no FlexBuffer."""
_MAX_OPTIONS = 64
_MAX_NAME = 64
_MAX_LENGTH = 4096


_STRUCTS = {"Convolution2DTransposeBias": ("Padding", "StrideW", "StrideH")}
"""Custom operators whose options are 32-bit integers, and the names of these in their order.

Source: MediaPipe, util/tflite/operations/transpose_conv_bias.cc, which reads TFLite's
`TfLiteTransposeConvParams`.
"""


def custom_options(data: bytes, name: str = "") -> dict[str, int | float | bool | tuple[int, ...]]:
    """Return options that are numbers or lists of integers; none if the bytes hold no map of them.

    A custom operator and its kernel agree on the format, so bytes of another format are no damage.

    Args:
        data: The bytes that the operator has in the file.
    """
    if name in _STRUCTS:
        names = _STRUCTS[name]
        values = struct.unpack_from(f"<{len(names)}i", data.ljust(4 * len(names), b"\0"))
        return dict(zip(names, values, strict=True))
    from flatbuffers import flexbuffers

    found: dict[str, int | float | bool | tuple[int, ...]] = {}
    try:
        root = flexbuffers.GetRoot(data)
        if not root.IsMap or len(root.AsMap) > _MAX_OPTIONS:
            return {}
        options = root.AsMap
        for key, value in zip(options.Keys, options.Values, strict=True):
            name = key.AsKey
            if len(name) > _MAX_NAME:
                return {}
            if value.IsBool or value.IsInt or value.IsFloat:
                found[str(name)] = value.Value
            elif value.IsTypedVector and len(value.AsTypedVector) <= _MAX_LENGTH:
                elements = tuple(value.AsTypedVector.Value)
                if all(isinstance(each, int) for each in elements):
                    found[str(name)] = elements
    except _DAMAGE:
        return {}
    return found
