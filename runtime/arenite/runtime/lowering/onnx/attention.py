"""ONNX's Attention and its kin, which become our operator of attention."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import DType
from arenite.planner.sizes import depends, same
from arenite.runtime.lowering import moves
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue, as_written, same_bytes, strides
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.heads import TOKENS_FIRST, by_heads, joined, split
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.operators.attention import LARGEST_HEAD, Attention
from arenite.runtime.operators.elementwise import BinaryFunction, Convert, Select
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move


@dataclass(frozen=True, slots=True)
class Form:
    """What attention does beside its operands.

    Attributes:
        scale: Factor of the scores; None: the usual one.
        causal: Whether a query sees only the keys up to its own place.
        window: How many of them at most; 0: all.
        softcap: Bound of the scores; 0: none.
    """

    scale: float | None = None
    causal: bool = False
    window: int = 0
    softcap: float = 0.0


@translates("Attention")
def attention(t: OnnxTranslation) -> None:
    """Translate ONNX's Attention, without the output of its scores."""
    require_type(t.dtype, DType.FLOAT32)
    if len(t.step.outputs) > 3 and t.step.outputs[3]:
        raise NotLoweredError("output qk_matmul_output is unsupported")
    if t.attribute("softmax_precision", 1) not in (0, 1):
        raise unsupported("softmax_precision", t.attribute("softmax_precision", 1), 1)
    right = t.attribute("right_window_size", -1)
    left = t.attribute("left_window_size", -1)
    causal = bool(t.attribute("is_causal", 0))
    if right not in (-1, 0) or (left != -1 and not (causal or right == 0)):
        raise unsupported("right_window_size", right, "0, or -1 without left_window_size")
    query, key, value = (
        by_heads(t, t.value(position), t.attribute(name, 0))
        for position, name in enumerate(("q_num_heads", "kv_num_heads", "kv_num_heads"))
    )
    given = t.attributes.get("scale")
    form = Form(
        scale=float(given) if isinstance(given, int | float) else None,
        causal=causal or right == 0,
        window=0 if left == -1 else left + 1,
        softcap=t.attribute("softcap", 0.0),
    )
    num_new = key.shape[2]
    key, value = with_past(t, (key, value), (4, 5))
    addend = _addend(t, query, key) if t.has(3) else None
    lengths = None
    if t.has(6):
        lengths = as_int32(t, t.value(6), "lengths")
    elif form.causal:
        num_before = key.shape[2] - num_new
        form, lengths, addend = _placed(t, query, key, num_before, form, addend)
    mixed = attend(t, (query, key, value), form, addend=addend, lengths=lengths)
    if len(t.shape) == 4:
        mixed = t.builder.transposed(split(t, mixed, query.shape[1]), TOKENS_FIRST)
    t.finish(mixed)


def _placed(
    t: OnnxTranslation,
    query: StoredValue,
    key: StoredValue,
    num_before: int,
    form: Form,
    addend: StoredValue | None,
) -> tuple[Form, StoredValue | None, StoredValue | None]:
    """Return form, lengths and addend of causal attention whose first query has a stated place.

    The operator puts the last query at the last key that counts.

    Args:
        num_before: Keys before the first query.
    """
    (batch, _, num_queries, _), num_keys = query.shape, key.shape[2]
    end = num_before + num_queries
    if same(end, num_keys):
        return form, None, addend
    if any(map(depends, (batch, end, num_queries, num_keys))):
        raise NotLoweredError(
            f"causal attention of {num_queries} queries to {num_keys} keys, of sizes of a run, is "
            "unsupported"
        )
    if end < num_keys:
        lengths = np.full(batch, end, np.int32)
        return form, t.builder.constant(lengths, f"{t.target}/lengths"), addend
    behind = num_before + np.arange(num_queries)[:, None] - np.arange(num_keys)
    seen = (behind >= 0) & ((behind < form.window) | (form.window == 0))
    later = np.where(seen, np.float32(0), np.float32(-np.inf))[None, None]
    mask = t.builder.constant(later, f"{t.target}/later")
    if addend is not None:
        mask = combine(t, BinaryFunction.ADD, addend, mask, f"{t.target}/masks")
    return replace(form, causal=False, window=0), None, mask


def with_past(
    t: OnnxTranslation,
    added: tuple[StoredValue, StoredValue],
    past: tuple[int, int],
    present: tuple[int, int] = (1, 2),
) -> tuple[StoredValue, StoredValue]:
    """Return keys and values behind those of earlier tokens, and make outputs of them.

    Args:
        t: The operator.
        added: Keys and values, by heads.
        past: Positions of the earlier ones among the inputs; states that grow stay by tokens.
        present: Positions of all of them among the outputs.
    """
    made: list[StoredValue] = []
    for value, before, after in zip(added, past, present, strict=True):
        name = t.step.outputs[after] if after < len(t.step.outputs) else ""
        whole = _behind(t, value, before, name) if t.has(before) else value
        if name:
            if not is_cache(t, before):
                whole = t.builder.as_written(whole, name)
            t.builder.bind(name, whole)
        made.append(whole)
    return made[0], made[1]


def is_cache(t: OnnxTranslation, position: int) -> bool:
    """Tell whether an input is a state that grows."""
    return t.has(position) and t.source(position) in t.builder.model.caches


def _behind(t: OnnxTranslation, value: StoredValue, position: int, name: str) -> StoredValue:
    """Return one tensor of earlier tokens and those that are added to them."""
    earlier = t.value(position)
    if not is_cache(t, position):  # which stays where it is
        earlier = t.builder.as_written(earlier, t.target)
    if len(earlier.shape) != 4 or not t.builder.agree(
        (*earlier.shape[:2], earlier.shape[3]), (*value.shape[:2], value.shape[3])
    ):
        raise NotLoweredError(
            f"earlier keys or values {list(earlier.shape)} do not fit {list(value.shape)}"
        )
    batch, heads, tokens, size = value.shape
    whole = (batch, heads, earlier.shape[2] + tokens, size)
    both = [earlier, value]
    return t.emit(
        moves.joined(both, whole, earlier.order, 2), both, shape=whole, order=earlier.order,
        name=name or f"{t.target}/whole",
    )  # fmt: skip


def _addend(t: OnnxTranslation, query: StoredValue, key: StoredValue) -> StoredValue:
    """Return the mask of ONNX's Attention as an addend, keys beyond its own hidden."""
    mask = t.builder.as_written(t.value(3), t.target)
    num_keys = key.shape[2]
    if len(mask.shape) not in (1, 2, 3, 4):
        raise unsupported("rank of attn_mask", len(mask.shape), 1, 2, 3, 4)
    if mask.dtype is DType.BOOL:
        mask = hidden(t, mask, -math.inf)
    require_type(mask.dtype, DType.FLOAT32)
    mask = mask.aligned(4)
    if same(mask.shape[3], num_keys):
        return mask
    if depends(mask.shape[3]) or depends(num_keys) or mask.shape[3] > num_keys:
        raise unsupported("keys of attn_mask", mask.shape[3], num_keys)
    shape = (*mask.shape[:3], num_keys)
    move = Move(shape=mask.shape, input_strides=strides(mask.shape, mask.order),
                output_strides=strides(shape, as_written(4)))  # fmt: skip
    fill = np.float32(-np.inf).tobytes()
    return t.emit(Copy(moves=(move,), fill=fill), [mask], shape=shape, name=f"{t.target}/all_keys")


def hidden(t: OnnxTranslation, seen: StoredValue, score: float) -> StoredValue:
    """Return the addend of scores that hides keys unless a condition tells that they are seen."""
    rank = len(seen.shape)
    none, low = (
        t.builder.constant(np.full((1,) * rank, each, np.float32), f"{t.target}/{hint}")
        for hint, each in (("seen", 0.0), ("hidden", score))
    )
    return t.emit(Select(), [seen, none, low], shape=seen.shape, order=seen.order,
                  dtype=DType.FLOAT32, name=f"{t.target}/mask")  # fmt: skip


def as_int32(t: OnnxTranslation, value: StoredValue, hint: str) -> StoredValue:
    """Return integers as those of 32 bits."""
    require_type(value.dtype, DType.INT32, DType.INT64)
    if value.dtype is DType.INT32:
        return value
    return t.emit(
        Convert(), [value], shape=value.shape, dtype=DType.INT32, name=f"{t.target}/{hint}"
    )


def attend(
    t: OnnxTranslation,
    operands: Sequence[StoredValue],
    form: Form,
    *,
    addend: StoredValue | None = None,
    lengths: StoredValue | None = None,
) -> StoredValue:
    """Add the step of attention; return its result as batches, tokens and columns.

    Args:
        t: The operator.
        operands: Queries, keys and values by batches, heads, tokens and elements.
        form: What it does beside.
        addend: Of the scores, by batches, heads, queries and keys.
        lengths: How many keys of each batch count.
    """
    query, key, value = operands
    heads, key_heads, depth, width = query.shape[1], key.shape[1], query.shape[3], value.shape[3]
    sizes = (heads, key_heads, depth, width)
    if any(map(depends, sizes)) or min(sizes) < 1 or heads % key_heads:
        raise NotLoweredError(f"{heads} heads of queries do not share {key_heads} heads of keys")
    if max(depth, width) > LARGEST_HEAD:
        raise unsupported("elements of a head", max(depth, width), f"up to {LARGEST_HEAD}")
    if not t.builder.agree(key.shape[:3], value.shape[:3]) or not same(depth, key.shape[3]):
        raise NotLoweredError(
            f"keys {list(key.shape)} fit neither queries {list(query.shape)} nor values "
            f"{list(value.shape)}"
        )
    scale = 1 / math.sqrt(depth) if form.scale is None else form.scale
    operator = Attention(
        heads=int(heads), key_heads=int(key_heads), scale=scale, causal=form.causal,
        window=form.window, softcap=form.softcap,
    )  # fmt: skip
    inputs: list[StoredValue | None] = [
        joined(t, query),
        _as_stored(t, key),
        _as_stored(t, value),
        None if addend is None else _by_tokens(t, addend),
        lengths,
    ]
    while inputs[-1] is None:
        inputs.pop()
    shape = (query.shape[0], query.shape[2], heads * width)
    return t.emit(operator, inputs, shape=shape, name=f"{t.target}/mixed")


def _as_stored(t: OnnxTranslation, value: StoredValue) -> StoredValue:
    """Return keys or values as they lie: by tokens, or by heads."""
    if same_bytes(value.shape, value.order, TOKENS_FIRST):
        return joined(t, value)
    return t.builder.as_written(value, t.target)


def _by_tokens(t: OnnxTranslation, addend: StoredValue) -> StoredValue:
    """Return an addend as batches, queries, heads and keys."""
    stored = t.builder.in_order(addend, TOKENS_FIRST, t.target)
    return t.builder.transposed(stored, TOKENS_FIRST)
