"""The lengths of the results of attention, with the keys and values that it saves."""

from collections.abc import Mapping

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.call import Call, Rule, Shape


def _attention(call: Call) -> list[Shape]:
    """Of ONNX's Attention: by heads if its queries are, else by tokens."""
    query = _by_heads(call, 0, "q_num_heads")
    key, value = (_by_heads(call, position, "kv_num_heads") for position in (1, 2))
    saved = [_behind(call, key, 4), _behind(call, value, 5)]
    mixed: Shape = (*query[:3], value[3])
    if len(call.shape()) == 3:
        mixed = (query[0], query[2], query[1] * value[3])
    scores = (*query[:3], saved[0][2])
    return [mixed, *saved, scores][: len(call.made)]


def _microsofts(call: Call) -> list[Shape]:
    """Of Attention of com.microsoft, with the keys and values that it saves."""
    batch, rows, _ = _of_rank(call, 0, 3)
    heads = _heads(call, "num_heads")
    sizes = call.integers("qkv_hidden_sizes")
    hidden = sizes[2] if sizes else call.shape(2)[0] // 3
    total = rows
    if call.has(4):
        past = _of_rank(call, 4, 5)
        total += past[3]
        call.require_same(past[1], batch, "lengths")
    if call.has(3) and len(call.shape(3)) == 2:
        call.require_same(call.shape(3)[1], total, "lengths")
    saved = (2, batch, heads, total, hidden // heads)
    return [(batch, rows, hidden), saved][: len(call.made)]


def _many_headed(call: Call) -> list[Shape]:
    if len(call.shape()) != 3 or not call.has(1) or not call.has(2):
        raise SizeError("packed operands are unsupported for a range; separate query, key, value")
    batch, rows, columns = call.shape()
    heads = _heads(call, "num_heads")
    value = _by_heads(call, 2, "num_heads")
    key = (batch, heads, value[2], columns // heads)
    saved = [_behind(call, key, 6), _behind(call, (batch, *value[1:]), 7)]
    return [(batch, rows, heads * value[3]), *saved][: len(call.made)]


def _grouped(call: Call) -> list[Shape]:
    """Of GroupQueryAttention: what it saves has a row for each token so far."""
    batch, rows, columns = _of_rank(call, 0, 3)
    heads, key_heads = _heads(call, "num_heads"), _heads(call, "kv_num_heads")
    width = columns // (heads if call.has(1) else heads + 2 * key_heads)
    saved = [_behind(call, (batch, key_heads, rows, width), position) for position in (3, 4)]
    total = call.value(6) if call.has(6) else None
    if total is not None and total.size == 1:
        call.require_same(total.item(), saved[0][2], "total_sequence_length and tokens")
    return [(batch, rows, heads * width), *saved][: len(call.made)]


def _heads(call: Call, name: str) -> int:
    heads = call.integer(name, 0)
    if heads < 1:
        raise SizeError(f"{name} is {heads}, expected 1 or more")
    return heads


def _of_rank(call: Call, position: int, *ranks: int) -> Shape:
    shape = call.shape(position)
    if len(shape) not in ranks:
        raise SizeError(
            f"input {position} has {len(shape)} axes, expected {' or '.join(map(str, ranks))}"
        )
    return shape


def _by_heads(call: Call, position: int, name: str) -> Shape:
    """Return batches, heads, tokens and elements of an operand."""
    shape = _of_rank(call, position, 3, 4)
    if len(shape) == 4:
        return shape
    heads = _heads(call, name)
    return (shape[0], heads, shape[1], shape[2] // heads)


def _behind(call: Call, new: Shape, position: int) -> Shape:
    """Return the shape of what new tokens are together with those of an input, if it is given."""
    if not call.has(position):
        return new
    past = _of_rank(call, position, 4)
    call.require_same(past[0], new[0], "lengths")
    return (*new[:2], past[2] + new[2], new[3])


ATTENTION_RULES: Mapping[str, Rule] = {
    "Attention": _attention,
    "com.microsoft.Attention": _microsofts,
    "MultiHeadAttention": _many_headed,
    "GroupQueryAttention": _grouped,
}
"""The rule of each operator, to join those of others."""
