"""Fused operators that ONNX Runtime's optimiser puts in place of the parts of a transformer.

Each becomes the steps that it was fused from. A bias goes into the product before it.
"""

import numpy as np

from arenite.planner import Array, DType
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.reduction import emit_layer_norm
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.lowering.translation import fold_channels
from arenite.runtime.operators.elementwise import (
    Binary,
    BinaryFunction,
    Convert,
    Unary,
    UnaryFunction,
)
from arenite.runtime.operators.movement import Gather
from arenite.runtime.operators.reduction import Reduce, ReduceFunction

_EPSILON = 1e-12
"""Default of the attribute of ONNX Runtime's own normalisations."""
_MOST_KEYS = 1 << 16
"""Keys of which the places become a constant, where a mask states how many count."""


@translates("com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.QuickGelu")
def gelu(t: OnnxTranslation) -> None:
    """Translate an activation of the input and an optional bias."""
    require_type(t.dtype, DType.FLOAT32)
    value = with_bias(t, t.value(), t.source(), 1, "biased")
    operator = {
        "BiasGelu": Unary(function=UnaryFunction.GELU),
        "FastGelu": Unary(function=UnaryFunction.GELU_TANH),
        "QuickGelu": Unary(function=UnaryFunction.SWISH, alpha=t.attribute("alpha", 1.702)),
    }[t.kind.rpartition(".")[2]]
    t.finish(t.emit(operator, [value], shape=value.shape, order=value.order))


def with_bias(
    t: OnnxTranslation, value: StoredValue, source: str, position: int, hint: str
) -> StoredValue:
    """Return a value plus the bias that an input holds, if it is given.

    Args:
        t: The operator.
        value: Where the value is.
        source: Its name in the model.
        position: Of the bias among the inputs.
        hint: Name of the sum, behind that of the operator's result.
    """
    if not t.has(position):
        return value
    bias = t.builder.array(t.source(position))
    if bias is not None and bias.ndim == 1:
        return with_vector(t, value, source, bias, hint)
    return combine(t, BinaryFunction.ADD, value, t.value(position), f"{t.target}/{hint}")


def with_vector(
    t: OnnxTranslation, value: StoredValue, source: str, bias: Array, hint: str
) -> StoredValue:
    """Return a value plus a constant for each index of the last axis.

    Args:
        t: The operator.
        value: Where the value is.
        source: Its name in the model.
        bias: The constants.
        hint: Name of the sum, behind that of the operator's result.
    """
    name = f"{t.target}/{hint}"
    is_last = value.order[-1:] == (len(value.shape) - 1,)
    if is_last and fold_channels(t.builder, source, name, None, bias):
        return t.builder.value(name)
    constant = t.builder.constant(np.asarray(bias, np.float32), name)
    return combine(t, BinaryFunction.ADD, value, constant, name)


@translates("com.microsoft.SkipLayerNormalization")
def skip_layer_normalisation(t: OnnxTranslation) -> None:
    """Translate the layer norm of a sum, and the sum if it is wanted too."""
    require_type(t.dtype, DType.FLOAT32)
    mean_and_deviation = t.step.outputs[1:3]
    if any(mean_and_deviation):
        raise NotLoweredError("outputs mean and inv_std_var are unsupported")
    value = with_bias(t, t.value(), t.source(), 4, "biased")
    value = combine(t, BinaryFunction.ADD, value, t.value(1), f"{t.target}/sum")
    if any(t.step.outputs[3:]):
        t.builder.bind(t.step.outputs[3], value)
    emit_layer_norm(t, value, (2, 3), len(value.shape) - 1, _EPSILON)


@translates("com.microsoft.SkipSimplifiedLayerNormalization")
def skip_rms_normalisation(t: OnnxTranslation) -> None:
    """Translate the norm by the root mean square of a sum, and the sum if it is wanted too."""
    require_type(t.dtype, DType.FLOAT32)
    if any(t.step.outputs[1:3]):
        raise NotLoweredError("outputs mean and inv_std_var are unsupported")
    value = with_bias(t, t.value(), t.source(), 3, "biased")
    value = combine(t, BinaryFunction.ADD, value, t.value(1), f"{t.target}/sum")
    if any(t.step.outputs[3:]):
        t.builder.bind(t.step.outputs[3], value)
    emit_layer_norm(t, value, (2,), len(value.shape) - 1, _EPSILON, centres=False)


@translates("SimplifiedLayerNormalization")
def rms_normalisation(t: OnnxTranslation) -> None:
    """Translate ONNX Runtime's norm by the root mean square, without its other output."""
    require_type(t.dtype, DType.FLOAT32)
    if any(t.step.outputs[1:]):
        raise NotLoweredError("output inv_std_var is unsupported")
    emit_layer_norm(t, t.value(), (1,), t.axis(-1, len(t.shape)), 1e-5, centres=False)


@translates("com.microsoft.EmbedLayerNormalization")
def embed_layer_normalisation(t: OnnxTranslation) -> None:
    """Translate the layer norm of the sum of embeddings, and how many words a mask leaves."""
    require_type(t.dtype, DType.FLOAT32)
    words = _embedded(t, 2, t.value(0), "words")
    if t.has(8):
        positions = t.value(8)
    else:
        places = np.arange(words.shape[1], dtype=np.int32)[None]
        shape = (1, words.shape[1])
        positions = t.builder.constant(places, f"{t.target}/positions", shape=shape)
    value = combine(
        t, BinaryFunction.ADD, words, _embedded(t, 3, positions, "places"), f"{t.target}/placed"
    )
    if t.has(1) and t.has(4):
        segments = _embedded(t, 4, t.value(1), "segments")
        value = combine(t, BinaryFunction.ADD, value, segments, f"{t.target}/sum")
    for name in t.step.outputs[2:3]:
        if name:
            t.builder.bind(name, value)
    for name in t.step.outputs[1:2]:
        if name:
            t.builder.bind(name, _num_unmasked(t, name))
    emit_layer_norm(t, value, (5, 6), len(value.shape) - 1, _EPSILON)


def _embedded(t: OnnxTranslation, table: int, indices: StoredValue, hint: str) -> StoredValue:
    where = t.builder.as_written(indices, t.target)
    require_type(where.dtype, DType.INT32, DType.INT64)
    data = t.builder.as_written(t.value(table), t.target)
    for name, value in (("indices", where), (f"input {table}", data)):
        if len(value.shape) != 2:
            raise unsupported(f"rank of {name}", len(value.shape), 2)
    shape = (*where.shape, data.shape[1])
    return t.emit(Gather(axis=0), [data, where], shape=shape, name=f"{t.target}/{hint}")


def _num_unmasked(t: OnnxTranslation, name: str) -> StoredValue:
    """Return how many elements of the mask are 1 in each sequence; zeros without a mask."""
    batch = t.value(0).shape[0]
    if not t.has(7):
        return t.builder.constant(np.zeros(batch, np.int32), name, shape=(batch,))
    mask = t.builder.as_written(t.value(7), t.target)
    one = t.builder.constant(np.ones((1, 1), np.int32), f"{name}/one")
    same = t.emit(
        Binary(function=BinaryFunction.EQUAL), [mask, one],
        shape=mask.shape, dtype=DType.BOOL, name=f"{name}/same",
    )  # fmt: skip
    numbers = t.emit(
        Convert(), [same], shape=mask.shape, dtype=DType.INT32, name=f"{name}/numbers"
    )
    total = Reduce(function=ReduceFunction.SUM, axes=(1,))
    return t.emit(total, [numbers], shape=(batch,), dtype=DType.INT32, name=name)
