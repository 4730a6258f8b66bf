"""Values of attention: by heads, by tokens, and rotated by their places."""

from arenite.planner import DType
from arenite.planner.sizes import depends, same
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue
from arenite.runtime.lowering.onnx.translation import OnnxTranslation
from arenite.runtime.operators.attention import Rotary

TOKENS_FIRST = (0, 2, 1, 3)
"""Batches, tokens, heads and elements among batches, heads, tokens and elements."""


def by_heads(t: OnnxTranslation, value: StoredValue, heads: int) -> StoredValue:
    """Return a value as batches, heads, tokens and elements; of three axes the last has heads."""
    if len(value.shape) == 4:
        return value
    if len(value.shape) != 3:
        raise unsupported("rank of queries, keys and values", len(value.shape), 3, 4)
    if heads < 1 or depends(value.shape[2]) or value.shape[2] % heads:
        raise NotLoweredError(f"{heads} heads do not divide {value.shape[2]} columns")
    return t.builder.transposed(split(t, value, heads), TOKENS_FIRST)


def split(t: OnnxTranslation, value: StoredValue, heads: int) -> StoredValue:
    """Return batches, tokens, heads and elements of a value whose last axis has the heads."""
    batch, tokens, columns = value.shape
    return t.builder.reshaped(value, (batch, tokens, heads, columns // heads), t.target)


def joined(t: OnnxTranslation, value: StoredValue) -> StoredValue:
    """Return batches, tokens and columns of batches, heads, tokens and elements."""
    batch, heads, tokens, size = value.shape
    by_tokens = t.builder.in_order(value, TOKENS_FIRST, t.target)
    by_tokens = t.builder.transposed(by_tokens, TOKENS_FIRST)
    return t.builder.reshaped(by_tokens, (batch, tokens, heads * size), t.target)


def rotated(
    t: OnnxTranslation,
    value: StoredValue,
    angles: tuple[StoredValue, StoredValue],
    *,
    interleaved: bool,
    hint: str,
) -> StoredValue:
    """Return a value of batches, heads, tokens and elements, rotated.

    Args:
        t: The operator.
        value: The value.
        angles: Cosines and sines of batches, tokens and pairs.
        interleaved: Whether an element is paired with the next one.
        hint: Name of the result, behind that of the operator's.
    """
    require_type(value.dtype, DType.FLOAT32)
    _, heads, tokens, size = value.shape
    cosines, sines = angles
    if depends(heads) or not same(cosines.shape[1], tokens) or cosines.shape[2] > size // 2:
        raise NotLoweredError(
            f"angles {list(cosines.shape)} do not fit tokens and elements {[tokens, size]}"
        )
    flat = joined(t, value)
    made = t.emit(
        Rotary(heads=int(heads), interleaved=interleaved), [flat, cosines, sines],
        shape=flat.shape, name=f"{t.target}/{hint}",
    )  # fmt: skip
    return t.builder.transposed(split(t, made, int(heads)), TOKENS_FIRST)
