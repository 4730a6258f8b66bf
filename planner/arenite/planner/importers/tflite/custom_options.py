"""Options of custom operators, which their makers store as a FlexBuffer of their own."""

import struct

_DAMAGE = (
    struct.error, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""What the reader of FlexBuffers raises when the bytes are none, or damaged."""
_MAX_OPTIONS = 64
_MAX_NAME = 64


def custom_options(data: bytes) -> dict[str, int | float | bool]:
    """Return the options that are numbers; none if the bytes hold no map of names to them.

    What the bytes mean is between a custom operator and its kernel, so bytes that cannot be read
    are no damage to the model.

    Args:
        data: The bytes that the operator has in the file.
    """
    from flatbuffers import flexbuffers

    found: dict[str, int | float | bool] = {}
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
    except _DAMAGE:
        return {}
    return found
