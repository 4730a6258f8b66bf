"""Microsoft's Attention, MultiHeadAttention and GroupQueryAttention."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.sizes import depends, same, same_lengths
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Shape, StoredValue, as_written, strides, without_axes
from arenite.runtime.lowering.moves import joined, picked
from arenite.runtime.lowering.onnx.attention import Form, attend, hidden, is_cache, with_past
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.heads import by_heads, rotated
from arenite.runtime.lowering.onnx.transformer import with_vector
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move

_MOST_KEYS = 1 << 16
"""Keys of which the places become a constant, where a mask states how many count."""
_MASKED = -10000.0
"""Default score of masked keys."""


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

    def projected(columns: slice, name: str) -> StoredValue:
        part = weights[:, columns]
        inputs = [source, t.builder.constant(part.T, f"{t.source(1)}/{name}")]
        if bias is not None:
            inputs.append(t.builder.constant(bias[columns], f"{t.source(2)}/{name}"))
        shape = (*source.shape[:2], part.shape[1])
        padding = [None] * (3 - len(inputs))
        return t.emit(
            FullyConnected(), [*inputs, *padding], shape=shape, name=f"{t.target}/{name}"
        )

    attend_to_itself(t, projected, weights.shape[1], mask=3, past=4, bias=5)


def attend_to_itself(
    t: OnnxTranslation,
    projected: Callable[[slice, str], StoredValue],
    width: int,
    *,
    mask: int,
    past: int,
    bias: int | None,
) -> None:
    """Translate attention of a sequence to itself, behind its projections.

    Args:
        t: The operator.
        projected: Adds the step that makes some columns of the projections, and its name.
        width: Columns of queries, keys and values together.
        mask: Position of the mask among the inputs.
        past: Position of the keys and values of earlier words.
        bias: Position of the addend of the scores; None for operators without one.
    """
    _require_zero(t, "do_rotary", "past_present_share_buffer")
    heads = t.attribute("num_heads", 0)
    sizes = t.integers("qkv_hidden_sizes") or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width or sizes[0] != sizes[1]:
        raise unsupported("qkv_hidden_sizes", list(sizes), f"three of {width} columns together")
    if heads < 1 or any(size % heads for size in sizes):
        raise NotLoweredError(
            f"num_heads={heads} does not divide queries, keys and values of {width} columns"
        )
    ends = np.cumsum(sizes)
    query, key, value = (
        by_heads(t, projected(slice(end - size, end), name), heads)
        for name, size, end in zip(("queries", "keys", "values"), sizes, ends, strict=True)
    )
    key, value = _with_past_in_one(t, key, value, past)
    addend = _masks(t, mask, bias, (query.shape[0], heads, query.shape[2], key.shape[2]))
    form = Form(
        scale=t.attribute("scale", 0.0) or None, causal=bool(t.attribute("unidirectional", 0))
    )
    t.finish(attend(t, (query, key, value), form, addend=addend))


def _with_past_in_one(
    t: OnnxTranslation, key: StoredValue, value: StoredValue, past: int
) -> tuple[StoredValue, StoredValue]:
    """Return keys and values behind those of earlier tokens, which are one tensor."""
    present = t.step.outputs[1] if len(t.step.outputs) > 1 else ""
    is_kept = is_cache(t, past)
    earlier = t.value(past) if t.has(past) else None
    if earlier is not None and not is_kept:
        earlier = t.builder.as_written(earlier, t.target)
    if not present and earlier is None:
        return key, value
    batch, heads, tokens, size = key.shape
    if not same(size, value.shape[3]):
        raise unsupported("elements of a value", value.shape[3], size)
    num_earlier = 0
    if earlier is not None:
        num_earlier = earlier.shape[3] if len(earlier.shape) == 5 else 0
        wanted = (2, batch, heads, num_earlier, size)
        if not same_lengths(earlier.shape, wanted):
            raise unsupported("shape of past", earlier.shape, wanted)
    whole = (batch, heads, num_earlier + tokens, size)
    if earlier is not None and is_kept:
        return _kept_in_one(t, (key, value), earlier, whole, present)
    to = strides(whole, as_written(4))
    length = math.prod(whole)
    moves: list[Move] = []
    for each, added in enumerate((key, value)):
        moves.append(
            Move(
                input=each, shape=added.shape, input_strides=strides(added.shape, added.order),
                output_start=each * length + num_earlier * size, output_strides=to,
            )
        )  # fmt: skip
        if earlier is not None and not same(num_earlier, 0):
            old = (batch, heads, num_earlier, size)
            moves.append(
                Move(
                    input=2, shape=old, input_start=each * math.prod(old),
                    input_strides=strides(old, as_written(4)), output_start=each * length,
                    output_strides=to,
                )
            )  # fmt: skip
    inputs = [key, value] if earlier is None else [key, value, earlier]
    both = t.emit(
        Copy(moves=tuple(moves)), inputs, shape=(2, *whole), name=present or f"{t.target}/present"
    )
    if present:
        t.builder.bind(present, both)
    keys, values = (
        StoredValue(both.tensor, both.dtype, whole, as_written(4), each * length * 4)
        for each in range(2)
    )
    return keys, values


def _kept_in_one(
    t: OnnxTranslation,
    added: tuple[StoredValue, StoredValue],
    earlier: StoredValue,
    whole: Shape,
    present: str,
) -> tuple[StoredValue, StoredValue]:
    """Return copies of keys and of values of a state that grows, each of whose rows has both.

    Args:
        t: The operator.
        added: New keys and values.
        earlier: Those of earlier tokens.
        whole: Shape of all keys, or of all values.
        present: Output that has both, "" if there is none.
    """
    order = earlier.order
    pair = [each.aligned(5) for each in added]
    shape = (2, *added[0].shape)
    new = t.emit(joined(pair, shape, order, 0), pair, shape=shape, order=order,
                 name=f"{t.target}/new")  # fmt: skip
    parts, shape = [earlier, new], (2, *whole)
    both = t.emit(joined(parts, shape, order, 3), parts, shape=shape, order=order,
                  name=present or f"{t.target}/present")  # fmt: skip
    if present:
        t.builder.bind(present, both)
    copies: list[StoredValue] = []
    for each, hint in enumerate(("keys", "values")):
        move = picked(both, (1, *whole), (each, 0, 0, 0, 0), (1,) * 5)
        copy = t.emit(Copy(moves=(move,)), [both], shape=(1, *whole), order=order,
                      name=f"{t.target}/all_{hint}")  # fmt: skip
        copies.append(replace(copy, shape=whole, order=without_axes(order, (0,))))
    return copies[0], copies[1]


@translates("com.microsoft.MultiHeadAttention")
def multi_head_attention(t: OnnxTranslation) -> None:
    """Translate attention of projected queries to projected keys and values."""
    require_type(t.dtype, DType.FLOAT32)
    for position in (8, 9):
        if t.has(position):
            raise NotLoweredError(f"input {position} is unsupported")
    if any(t.step.outputs[3:]):
        raise NotLoweredError("output qk is unsupported")
    heads = t.attribute("num_heads", 0)
    query, key, value = _operands(t, heads)
    key, value = with_past(t, (key, value), (6, 7))
    addend = _masks(t, 4, 5, (query.shape[0], heads, query.shape[2], key.shape[2]))
    form = Form(
        scale=t.attribute("scale", 0.0) or None, causal=bool(t.attribute("unidirectional", 0))
    )
    t.finish(attend(t, (query, key, value), form, addend=addend))


def _operands(t: OnnxTranslation, heads: int) -> tuple[StoredValue, StoredValue, StoredValue]:
    """Return queries, keys and values by heads, with their biases."""
    if not t.has(1) or not t.has(2):
        raise NotLoweredError("queries, keys and values in one tensor are unsupported")
    bias = t.optional_array(3)
    found = [t.value(position) for position in range(3)]
    if bias is not None:
        found = _biased(t, found, bias)
    query, key, value = (by_heads(t, each, heads) for each in found)
    return query, key, value


def _biased(t: OnnxTranslation, found: list[StoredValue], bias: Array) -> list[StoredValue]:
    """Return queries, keys and values plus their parts of a bias."""
    sizes = [each.shape[2] if len(each.shape) == 3 else 0 for each in found]
    if any(map(depends, sizes)) or sum(sizes) != bias.size or 0 in sizes:
        raise NotLoweredError(f"bias {bias.shape} does not fit columns {sizes}")
    names, ends = ("queries", "keys", "values"), np.cumsum(sizes)
    return [
        with_vector(t, each, t.source(position), bias[end - size : end], names[position])
        for position, (each, size, end) in enumerate(zip(found, sizes, ends, strict=True))
    ]


@translates("com.microsoft.GroupQueryAttention")
def group_query_attention(t: OnnxTranslation) -> None:
    """Translate causal attention of grouped heads, behind the keys and values of earlier tokens.

    The numbers of earlier tokens of all sequences are the length of what is given of them.
    """
    require_type(t.dtype, DType.FLOAT32)
    _require_zero(t, "smooth_softmax", "qk_output")
    for position in range(11, len(t.step.inputs)):
        if t.has(position):
            raise NotLoweredError(f"input {position} is unsupported")
    heads, key_heads = t.attribute("num_heads", 0), t.attribute("kv_num_heads", 0)
    query, key, value = _grouped(t, heads, key_heads)
    past = t.value(3).shape[2] if t.has(3) else 0
    tokens = query.shape[2]
    present = t.step.outputs[1] if len(t.step.outputs) > 1 else ""
    if present and not same(t.builder.shape(present)[2], past + tokens):
        raise unsupported(
            "keys of the output", t.builder.shape(present)[2], f"{past + tokens}, all there are"
        )
    if not same(query.shape[0], 1) and not same(past, 0):
        raise unsupported("batches with earlier tokens", query.shape[0], 1)
    if t.attribute("do_rotary", 0):
        query, key = _rotated(t, query, key, past)
    key, value = with_past(t, (key, value), (3, 4))
    addend = None
    if t.has(10):
        addend = t.builder.as_written(t.value(10), t.target).aligned(4)
    window = t.attribute("local_window_size", -1)
    form = Form(
        scale=t.attribute("scale", 0.0) or None, causal=True, window=max(window, 0),
        softcap=t.attribute("softcap", 0.0),
    )  # fmt: skip
    t.finish(attend(t, (query, key, value), form, addend=addend))


def _grouped(
    t: OnnxTranslation, heads: int, key_heads: int
) -> tuple[StoredValue, StoredValue, StoredValue]:
    query = t.builder.as_written(t.value(0), t.target)
    if t.has(1) and t.has(2):
        key, value = (by_heads(t, t.value(position), key_heads) for position in (1, 2))
        return by_heads(t, query, heads), key, value
    columns = query.shape[2]
    parts = heads + 2 * key_heads
    if depends(columns) or parts < 1 or columns % parts:
        raise NotLoweredError(f"{parts} heads do not divide {columns} columns")
    size = columns // parts
    made: list[StoredValue] = []
    for name, first, count in (
        ("queries", 0, heads),
        ("keys", heads, key_heads),
        ("values", heads + key_heads, key_heads),
    ):
        shape = (*query.shape[:2], count * size)
        move = picked(query, shape, (0, 0, first * size), (1, 1, 1))
        part = t.emit(Copy(moves=(move,)), [query], shape=shape, name=f"{t.target}/{name}")
        made.append(by_heads(t, part, count))
    return made[0], made[1], made[2]


def _rotated(
    t: OnnxTranslation, query: StoredValue, key: StoredValue, past: int
) -> tuple[StoredValue, StoredValue]:
    """Return queries and keys rotated by the angles of their places."""
    if t.has(9):
        raise NotLoweredError("position_ids are unsupported")
    tokens = query.shape[2]
    angles: list[StoredValue] = []
    for position, hint in ((7, "cosines"), (8, "sines")):
        table = t.builder.as_written(t.value(position), t.target)
        shape = (1, tokens, table.shape[1])
        whole = t.builder.reshaped(table, (1, *table.shape), t.target)
        move = picked(whole, shape, (0, past, 0), (1, 1, 1))
        angles.append(t.emit(Copy(moves=(move,)), [whole], shape=shape, name=f"{t.target}/{hint}"))
    interleaved = bool(t.attribute("rotary_interleaved", 0))
    turned = [
        rotated(t, each, (angles[0], angles[1]), interleaved=interleaved, hint=f"rotated_{hint}")
        for each, hint in ((query, "queries"), (key, "keys"))
    ]
    return turned[0], turned[1]


def _require_zero(t: OnnxTranslation, *names: str) -> None:
    for name in names:
        if t.attribute(name, 0):
            raise unsupported(name, t.attribute(name, 0), 0)


def _masks(t: OnnxTranslation, mask: int, bias: int | None, scores: Shape) -> StoredValue | None:
    """Return the addend of the scores that a mask and a bias among the inputs are together.

    Args:
        t: The operator.
        mask: Position of the mask.
        bias: Position of the addend; None if there is none.
        scores: Batches, heads, queries and keys.
    """
    addend = None
    if bias is not None and t.has(bias):
        addend = t.builder.as_written(t.value(bias), t.target).aligned(4)
        require_type(addend.dtype, DType.FLOAT32)
    if not t.has(mask):
        return addend
    masked = _masked(t, mask, scores)
    if addend is None:
        return masked
    return combine(t, BinaryFunction.ADD, addend, masked, f"{t.target}/masks")


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
    return hidden(t, counts, t.attribute("mask_filter_value", _MASKED))
