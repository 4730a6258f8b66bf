"""Operators that take elements by index."""

import math

import numpy as np

from arenite.planner.dtypes import DType
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Select
from arenite.runtime.operators.movement import Gather, ScatterAdd
from arenite.runtime.operators.reduction import Reduce, ReduceFunction, TopK

_MAX_DEPTH = 1 << 20
"""Of a one-hot code, whose indices become a constant."""


@translates("GATHER", int16=True)
def gather(t: Translation) -> None:
    """Translate GATHER."""
    data, indices = t.value(0), _indices(t, 1)
    if not data.shape:
        raise NotLoweredError("it takes slices of a scalar")
    batch_axes = t.integer("BatchDims", 0) % (len(indices.shape) + 1)
    operator = Gather(axis=t.integer("Axis", 0) % len(data.shape), batch_axes=batch_axes)
    t.finish(t.emit(operator, [data, indices]))


@translates("EMBEDDING_LOOKUP")
def embedding_lookup(t: Translation) -> None:
    """Translate EMBEDDING_LOOKUP; constant rows of integers become numbers."""
    data = t.weights(1) if t.builder.array(t.source(1)) is not None else t.value(1)
    t.finish(t.emit(Gather(axis=0), [data, _indices(t, 0)]))


@translates("GATHER_ND", int16=True)
def gather_nd(t: Translation) -> None:
    """Translate GATHER_ND: the axes that are indexed become one, and so do their indices."""
    data, indices = t.value(0), _indices(t, 1)
    if not indices.shape:
        raise NotLoweredError("its indices are a scalar")
    lengths = data.shape[: indices.shape[-1]]
    if len(lengths) != indices.shape[-1] or math.prod(lengths) == 0:
        raise NotLoweredError(f"it takes {indices.shape} of a tensor {data.shape}")
    rest = data.shape[len(lengths) :]
    rows = t.builder.reshaped(data, (math.prod(lengths), *rest), t.target)
    places = _joined(t, indices, lengths)
    shape = (*places.shape, *rest)
    t.finish(t.emit(Gather(axis=0), [rows, places], shape=shape))


@translates("SCATTER_ND")
def scatter_nd(t: Translation) -> None:
    """Translate SCATTER_ND: the axes that are indexed become one, and so do their indices."""
    indices, updates = _indices(t, 0), t.value(1)
    shape = t.integers(2)
    lengths = shape[: indices.shape[-1]] if indices.shape else ()
    if shape != t.shape or len(lengths) != indices.shape[-1] or math.prod(shape) == 0:
        raise NotLoweredError(f"it puts {indices.shape} into {shape}")
    rest = shape[len(lengths) :]
    places = _joined(t, indices, lengths)
    t.finish(t.emit(ScatterAdd(), [places, updates], shape=(math.prod(lengths), *rest)))


@translates("TOPK_V2")
def top_k(t: Translation) -> None:
    """Translate TOPK_V2 with a constant number."""
    value = t.value()
    (count,) = t.integers(1)
    shape = (*value.shape[:-1], count)
    if not value.shape or not 0 < count <= value.shape[-1]:
        raise NotLoweredError(f"it takes {count} of a tensor {value.shape}")
    tensors = t.builder.model.tensors
    names = t.step.outputs
    made = t.builder.emit(
        TopK(),
        [value],
        [(name, shape, as_written(len(shape))) for name in names],
        dtype=[tensors[name].dtype for name in names],
        step=t.step.name,
    )
    for name, result in zip(names, made, strict=True):
        t.builder.restate_shape(name, shape)
        t.builder.bind(name, result)


def _joined(t: Translation, indices: Value, lengths: tuple[int, ...]) -> Value:
    """Return indices of some axes as those of one, by their strides."""
    factors = np.array([math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))])
    shape = indices.shape[:-1]
    if len(lengths) == 1:
        return t.builder.reshaped(indices, shape, t.target)
    factors = factors.astype(indices.dtype.label)
    if indices.array is not None:
        # Of a constant the sum is one too. Negative indices are errors in TFLite.
        total = (indices.array * factors).sum(-1, dtype=factors.dtype)
        return t.builder.constant(np.asarray(total), t.source(1))
    order = as_written(len(indices.shape))
    (scaled,) = t.builder.emit(
        Binary(function=BinaryFunction.MULTIPLY),
        [indices, t.builder.constant(factors, f"{t.target}/strides")],
        [(f"{t.target}/scaled", indices.shape, order)],
    )
    (joined,) = t.builder.emit(
        Reduce(function=ReduceFunction.SUM, axes=(len(shape),)),
        [scaled],
        [(f"{t.target}/places", shape, as_written(len(shape)))],
    )
    return joined


@translates("ONE_HOT")
def one_hot(t: Translation) -> None:
    """Translate ONE_HOT: indices are compared with all there are."""
    indices = _indices(t, 0)
    rank = len(t.shape)
    axis = t.integer("Axis", -1) % rank
    depth = t.shape[axis]
    if depth > _MAX_DEPTH:
        raise NotLoweredError(f"it compares with {depth} indices, of at most {_MAX_DEPTH}")
    shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    all_indices = np.arange(depth, dtype=indices.dtype.label)
    all_indices = all_indices.reshape([depth if each == axis else 1 for each in range(rank)])
    (is_hot,) = t.builder.emit(
        Binary(function=BinaryFunction.EQUAL),
        [
            t.builder.reshaped(indices, shape, t.target),
            t.builder.constant(all_indices, f"{t.target}/all"),
        ],
        [(f"{t.target}/hot", t.shape, as_written(rank))],
        dtype=DType.BOOL,
    )
    values = [t.builder.reshaped(t.value(p), (1,) * rank, t.target) for p in (2, 3)]
    t.finish(t.emit(Select(), [is_hot, *values]))


def _indices(t: Translation, position: int) -> Value:
    indices = t.value(position)
    if indices.dtype not in (DType.INT32, DType.INT64):
        raise NotLoweredError(f"its indices are {indices.dtype.label}")
    return indices
