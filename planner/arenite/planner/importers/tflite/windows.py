"""Parameters of sliding windows, from the options of convolutions and pools."""

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
    """Return `auto_pad`, strides, dilations and kernel shape, height first, where stated.

    Args:
        schema: The schema package.
        operator: The schema's reader of the operator.
        op_type: Name of the built-in operator.
    """
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
