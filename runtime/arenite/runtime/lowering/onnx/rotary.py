"""Rotary positions: ONNX's RotaryEmbedding and Microsoft's."""

import numpy as np

from arenite.planner import DType
from arenite.planner.sizes import depends, same
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.heads import TOKENS_FIRST, joined, rotated, split
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.operators.elementwise import BinaryFunction
from arenite.runtime.operators.movement import Gather

_MOST_PLACES = 1 << 20
"""Places behind a first one that become a constant."""


@translates("RotaryEmbedding")
def rotary_embedding(t: OnnxTranslation) -> None:
    """Translate ONNX's operator: angles by place, or one list for each sequence."""
    tables = [t.builder.as_written(t.value(position), t.target) for position in (1, 2)]
    if t.has(3):
        places = t.builder.as_written(t.value(3), t.target)
        angles = [gathered(t, table, places) for table in tables]
    else:
        angles = tables
    _rotate(t, angles[0], angles[1])


@translates("com.microsoft.RotaryEmbedding")
def microsoft_rotary_embedding(t: OnnxTranslation) -> None:
    """Translate Microsoft's operator: angles by place, or by the first place of a sequence."""
    for name in ("is_packed_batching",):
        if t.attribute(name, 0):
            raise unsupported(name, t.attribute(name, 0), 0)
    if t.attribute("scale", 1.0) != 1.0:
        raise unsupported("scale", t.attribute("scale", 1.0), 1)
    value = t.value(0)
    tokens = value.shape[2 if len(value.shape) == 4 else 1]
    places = t.builder.as_written(t.value(1), t.target)
    if len(places.shape) == 1:
        places = _places_behind(t, places, tokens)
    tables = [t.builder.as_written(t.value(position), t.target) for position in (2, 3)]
    angles = [gathered(t, table, places) for table in tables]
    _rotate(t, angles[0], angles[1])


def _places_behind(t: OnnxTranslation, first: StoredValue, tokens: int) -> StoredValue:
    """Return the places of tokens behind a first one."""
    require_type(first.dtype, DType.INT32, DType.INT64)
    if depends(tokens) or tokens > _MOST_PLACES:
        raise unsupported("number of tokens", tokens, f"a constant up to {_MOST_PLACES}")
    steps = np.arange(tokens, dtype=first.dtype.label)[None]
    counted = t.builder.constant(steps, f"{t.target}/steps")
    first = t.builder.reshaped(first, (1, 1), t.target)
    return combine(t, BinaryFunction.ADD, counted, first, f"{t.target}/places")


def gathered(t: OnnxTranslation, table: StoredValue, places: StoredValue) -> StoredValue:
    """Return the angles of places: batches, tokens and pairs."""
    require_type(places.dtype, DType.INT32, DType.INT64)
    if len(table.shape) != 2 or len(places.shape) != 2:
        raise unsupported("rank of angles and places", (len(table.shape), len(places.shape)), 2)
    shape = (*places.shape, table.shape[1])
    return t.emit(
        Gather(axis=0), [table, places], shape=shape, dtype=table.dtype, name=f"{t.target}/angles"
    )


def _rotate(t: OnnxTranslation, cosines: StoredValue, sines: StoredValue) -> None:
    value = t.value(0)
    require_type(value.dtype, DType.FLOAT32)
    if len(value.shape) == 3:
        heads = t.attribute("num_heads", 0)
        if not heads:  # of so many elements that all are rotated
            heads = value.shape[2] // (2 * cosines.shape[2])
        if depends(value.shape[2]) or heads < 1 or value.shape[2] % heads:
            raise NotLoweredError(f"{heads} heads do not divide {value.shape[2]} columns")
        value = t.builder.transposed(split(t, value, heads), TOKENS_FIRST)
    elif len(value.shape) != 4:
        raise unsupported("rank of the input", len(value.shape), 3, 4)
    stated = t.attribute("rotary_embedding_dim", 0)
    if stated and not same(stated, 2 * cosines.shape[-1]):
        raise unsupported("rotary_embedding_dim", stated, 2 * cosines.shape[-1])
    angles = (_of_batches(t, cosines), _of_batches(t, sines))
    made = rotated(
        t, value, angles, interleaved=bool(t.attribute("interleaved", 0)), hint="rotated"
    )
    t.finish(made if len(t.shape) == 4 else joined(t, made))


def _of_batches(t: OnnxTranslation, angles: StoredValue) -> StoredValue:
    """Return angles with an axis of batches."""
    if len(angles.shape) == 2:
        return t.builder.reshaped(angles, (1, *angles.shape), t.target)
    if len(angles.shape) != 3:
        raise unsupported("rank of angles", len(angles.shape), 2, 3)
    return angles
