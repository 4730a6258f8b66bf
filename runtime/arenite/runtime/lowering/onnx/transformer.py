"""Fused operators that ONNX Runtime's optimiser puts in place of the parts of a transformer.

Each becomes the steps that it was fused from. A bias goes into the product before it.
"""

import math

import numpy as np

from arenite.planner import DType
from arenite.planner.sizes import bounds, depends, same_lengths
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Shape, StoredValue, as_written, strides
from arenite.runtime.lowering.moves import picked
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.reduction import emit_layer_norm
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.lowering.translation import fold_channels
from arenite.runtime.operators.elementwise import (
    Binary,
    BinaryFunction,
    Convert,
    Select,
    Unary,
    UnaryFunction,
)
from arenite.runtime.operators.linear import FullyConnected, MatMul
from arenite.runtime.operators.movement import Copy, Gather
from arenite.runtime.operators.moves import Move
from arenite.runtime.operators.normalisation import Softmax
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
    name = f"{t.target}/{hint}"
    bias = t.builder.array(t.source(position))
    is_vector = bias is not None and bias.ndim == 1 and value.order[-1:] == (len(value.shape) - 1,)
    if is_vector and fold_channels(t.builder, source, name, None, bias):
        return t.builder.value(name)
    return combine(t, BinaryFunction.ADD, value, t.value(position), name)


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


@translates("com.microsoft.Attention")
def attention(t: OnnxTranslation) -> None:
    """Translate attention of a sequence to itself, its projections included."""
    require_type(t.dtype, DType.FLOAT32)
    weights = t.array(1)
    bias = t.optional_array(2)
    source = t.builder.as_written(t.value(0), t.target)
    if len(source.shape) != 3 or weights.ndim != 2 or weights.shape[0] != source.shape[2]:
        raise NotLoweredError(f"weights {weights.shape} do not fit an input {source.shape}")
    if bias is not None and bias.shape != weights.shape[1:]:
        raise NotLoweredError(f"bias {bias.shape} does not fit weights {weights.shape}")
    projected = t.emit(
        FullyConnected(),
        [
            source,
            t.builder.constant(weights.T, t.source(1)),
            None if bias is None else t.builder.constant(bias, t.source(2)),
        ],
        shape=(*source.shape[:2], weights.shape[1]),
        name=f"{t.target}/projected",
    )
    attend(t, projected, mask=3, past=4, bias=5)


def attend(
    t: OnnxTranslation, projected: StoredValue, *, mask: int, past: int, bias: int | None
) -> None:
    """Translate attention behind its projections.

    Args:
        t: The operator.
        projected: Queries, keys and values side by side.
        mask: Position of the mask among the inputs.
        past: Position of the keys and values of earlier words.
        bias: Position of the addend of the scores; None for operators without one.
    """
    batch, num_queries, width = projected.shape
    heads = t.attribute("num_heads", 0)
    _require_supported(t, heads, width)
    size = width // 3 // heads
    shape = (batch, heads, num_queries, size)
    queries, keys, values = _heads(t, projected, shape, past)
    scale = t.attribute("scale", 0.0) or 1 / math.sqrt(size)
    factor = t.builder.constant(np.float32(scale).reshape(1), f"{t.target}/scale")
    queries = combine(t, BinaryFunction.MULTIPLY, queries, factor, f"{t.target}/scaled")
    scores = t.emit(
        MatMul(transpose_b=True), [queries, keys],
        shape=(*shape[:3], keys.shape[2]), name=f"{t.target}/scores",
    )  # fmt: skip
    if bias is not None and t.has(bias):
        scores = combine(t, BinaryFunction.ADD, scores, t.value(bias), f"{t.target}/biased")
    if t.has(mask):
        masked = _masked(t, mask, scores.shape)
        scores = combine(t, BinaryFunction.ADD, scores, masked, f"{t.target}/masked")
    if t.attribute("unidirectional", 0):
        causal = _causal(t, num_queries, keys.shape[2])
        scores = combine(t, BinaryFunction.ADD, scores, causal, f"{t.target}/causal")
    weights = t.emit(Softmax(), [scores], shape=scores.shape, name=f"{t.target}/weights")
    mixed = t.emit(MatMul(), [weights, values], shape=shape, name=f"{t.target}/mixed")
    t.finish(t.builder.reshaped(t.builder.transposed(mixed, (0, 2, 1, 3)), t.shape, t.target))


def _require_supported(t: OnnxTranslation, heads: int, width: int) -> None:
    if heads < 1 or width % (3 * heads):
        raise NotLoweredError(
            f"num_heads={heads} does not divide queries, keys and values of {width} columns"
        )
    sizes = t.integers("qkv_hidden_sizes")
    if len(set(sizes)) > 1:
        raise unsupported("qkv_hidden_sizes", list(sizes), "three equal numbers")
    for name in ("do_rotary", "past_present_share_buffer"):
        if t.attribute(name, 0):
            raise unsupported(name, t.attribute(name, 0), 0)


def _heads(
    t: OnnxTranslation, projected: StoredValue, shape: Shape, past: int
) -> tuple[StoredValue, StoredValue, StoredValue]:
    """Return queries, keys and values by heads; keys and values behind those of earlier words."""
    batch, heads, num_queries, size = shape
    columns = heads * size
    row = 3 * columns
    source = (num_queries * row, size, row, 1)

    def part(position: int, output: int, start: int, to: tuple[int, ...]) -> Move:
        return Move(
            output=output, shape=shape, input_start=position * columns, input_strides=source,
            output_start=start, output_strides=to,
        )  # fmt: skip

    def emitted(names: list[str], shapes: list[Shape], moves: list[Move]) -> list[StoredValue]:
        inputs = [projected] if earlier is None else [projected, earlier]
        outputs = [
            (f"{t.target}/{name}", each, as_written(len(each)))
            for name, each in zip(names, shapes, strict=True)
        ]
        return t.builder.emit(Copy(moves=tuple(moves)), inputs, outputs)

    plain = strides(shape, as_written(4))
    present = t.step.outputs[1] if len(t.step.outputs) > 1 else ""
    earlier = t.builder.as_written(t.value(past), t.target) if t.has(past) else None
    if not present and earlier is None:
        moves = [part(each, each, 0, plain) for each in range(3)]
        queries, keys, values = emitted(["queries", "keys", "values"], [shape] * 3, moves)
        return queries, keys, values
    num_earlier = 0
    if earlier is not None:
        num_earlier = earlier.shape[3] if len(earlier.shape) == 5 else 0
        wanted = (2, batch, heads, num_earlier, size)
        if not same_lengths(earlier.shape, wanted):
            raise unsupported("shape of past", earlier.shape, wanted)
    whole = (batch, heads, num_earlier + num_queries, size)
    to = strides(whole, as_written(4))
    length = math.prod(whole)
    moves = [part(0, 0, 0, plain)]
    for each in range(2):
        start = each * length
        moves.append(part(1 + each, 1, start + num_earlier * size, to))
        if earlier is not None and num_earlier:
            old = (batch, heads, num_earlier, size)
            moves.append(
                Move(
                    input=1, output=1, shape=old, input_start=each * math.prod(old),
                    input_strides=strides(old, as_written(4)), output_start=start,
                    output_strides=to,
                )
            )  # fmt: skip
    queries, both = emitted(["queries", "present"], [shape, (2, *whole)], moves)
    if present:
        t.builder.bind(present, both)
    keys, values = (
        StoredValue(both.tensor, both.dtype, whole, as_written(4), each * length * 4)
        for each in range(2)
    )
    return queries, keys, values


def _masked(t: OnnxTranslation, position: int, scores: Shape) -> StoredValue:
    """Return the addend of the scores that excludes masked keys."""
    mask = t.builder.as_written(t.value(position), t.target)
    require_type(mask.dtype, DType.INT32)
    batch, _, num_queries, num_keys = scores
    name = f"{t.target}/mask"
    if same_lengths(mask.shape, (batch,)):
        if num_keys > _MOST_KEYS:
            raise unsupported("number of keys", num_keys, f"up to {_MOST_KEYS}")
        shape: Shape = (batch, 1, 1, num_keys)
        numbers = t.builder.reshaped(mask, (batch, 1, 1, 1), t.target)
        places = t.builder.constant(
            np.arange(num_keys, dtype=np.int32).reshape(1, 1, 1, -1),
            f"{name}/places",
            shape=(1, 1, 1, num_keys),
        )
        function, operands = BinaryFunction.LESS, [places, numbers]
    else:
        forms: dict[Shape, Shape] = {
            (batch, num_keys): (batch, 1, 1, num_keys),
            (batch, num_queries, num_keys): (batch, 1, num_queries, num_keys),
        }
        fitting = [form for form in forms if same_lengths(mask.shape, form)]
        if not fitting:
            raise unsupported("shape of mask_index", mask.shape, (batch,), *forms)
        shape = forms[fitting[0]]
        zero = t.builder.constant(np.zeros((1, 1, 1, 1), np.int32), f"{name}/zero")
        function, operands = (
            BinaryFunction.GREATER, [t.builder.reshaped(mask, shape, t.target), zero],
        )  # fmt: skip
    counts = t.emit(
        Binary(function=function), operands,
        shape=shape, dtype=DType.BOOL, name=f"{name}/counts",
    )  # fmt: skip
    kept, lost = (
        t.builder.constant(np.full((1, 1, 1, 1), number, np.float32), f"{name}/{hint}")
        for hint, number in (("kept", 0.0), ("lost", _masked_score(t)))
    )
    return t.emit(Select(), [counts, kept, lost], shape=shape, name=name)


def _masked_score(t: OnnxTranslation) -> float:
    return t.attribute("mask_filter_value", -10000.0)


def _causal(t: OnnxTranslation, num_queries: int, num_keys: int) -> StoredValue:
    """Return the addend of the scores that hides later keys from a query."""
    past = num_keys - num_queries
    least, most = bounds(past, t.builder.model.dimensions)
    if least < 0:
        raise unsupported("number of keys", least, "at least that of queries")
    rows, columns = int(num_queries), most + int(num_queries)
    if rows * columns > _MOST_KEYS**2 // 256:
        raise unsupported("queries * keys", rows * columns, _MOST_KEYS**2 // 256)
    later = np.triu(np.ones((rows, columns), np.float32), most + 1)
    shape = (num_queries, num_keys)
    if not later.any():  # a last query alone hides no key, however many there are
        return t.builder.constant(later, f"{t.target}/later", shape=shape)
    table = t.builder.constant(later * np.float32(_masked_score(t)), f"{t.target}/later")
    if not depends(num_queries) and not depends(num_keys):
        return table
    # With fewer earlier keys, the columns of the table that come later.
    move = picked(table, shape, (0, most - past), (1, 1))
    return t.emit(Copy(moves=(move,)), [table], shape=shape, order=table.order,
                  dtype=table.dtype, name=f"{t.target}/hidden")  # fmt: skip
