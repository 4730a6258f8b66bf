"""Attention of floats and of bytes, and rotary positions."""

from dataclasses import replace

import numpy as np

from arenite.planner import Quantisation, Tensor
from arenite.planner.operators import Operands
from arenite.planner.sizes import bounds
from arenite.runtime.cexport.base.fixed_point import quantised_multiplier, scale_of, zero_of
from arenite.runtime.cexport.steps.reduction import byte_softmax
from arenite.runtime.cexport.steps.writer import StepWriter, writes
from arenite.runtime.operators.attention import Attention, Rotary, num_byte_scores


class AttentionApart(Attention):
    """Attention whose kernel reads a query while it writes its result."""

    __slots__ = ()

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the queries of bytes; of floats nothing: the result is the sum so far."""
        return super().overwritable(operands) if num_byte_scores(operands) else ()

    def scratch(self, operands: Operands) -> int:
        """Return 0: scores of bytes are on the stack."""
        return 0

    def row_scratch(self, operands: Operands) -> int:
        return 0


@writes(AttentionApart)
def attention(t: StepWriter) -> None:
    """Write attention, row by row of its queries."""
    operator = t.operator
    assert isinstance(operator, Attention)
    if t.types("float32", "int8") == "int8":
        _attention_of_bytes(t, operator)
        return
    queries, keys, values, result = t.input(0), t.input(1), t.input(2), t.output()
    batches, rows = queries.shape[:2]
    count, depth, *key_strides = _strides(keys, operator.key_heads)
    _, width, *value_strides = _strides(values, operator.key_heads)
    addend_strides = (0, 0, 0)
    if t.has(operator.ADDEND):
        addend = t.input(operator.ADDEND).shape
        batch, row = addend[1] * addend[2] * addend[3], addend[2] * addend[3]
        addend_strides = (
            0 if addend[0] == 1 else batch,
            0 if addend[1] == 1 else row,
            0 if addend[2] == 1 else addend[3],
        )
    layer = t.layer(
        "attention_layer", rows=rows, heads=operator.heads,
        group=operator.heads // operator.key_heads, depth=depth, width=width, count=count,
        causal=int(operator.causal), window=operator.window,
        key_batch=key_strides[0], key_head=key_strides[1], key_stride=key_strides[2],
        value_batch=value_strides[0], value_head=value_strides[1], value_stride=value_strides[2],
        addend_batch=addend_strides[0], addend_row=addend_strides[1],
        addend_head=addend_strides[2], scale=float(operator.scale),
        softcap=float(operator.softcap),
    )  # fmt: skip
    more = (
        t.address(t.input(position)) if t.has(position) else "NULL"
        for position in (operator.ADDEND, operator.LENGTHS)
    )
    t.call(
        "attention_f32", layer, t.address(keys), t.address(values), *more,
        t.rows_of(queries, 4 * queries.shape[2]), t.rows_to(result, 4 * result.shape[2]),
        0, batches * rows,
    )  # fmt: skip


def _attention_of_bytes(t: StepWriter, operator: Attention) -> None:
    queries, keys, values, result = t.input(0), t.input(1), t.input(2), t.output()
    batches, rows = queries.shape[:2]
    count, depth, *key_strides = _strides(keys, operator.key_heads)
    _, width, *value_strides = _strides(values, operator.key_heads)
    numbers = t.array(operator.ROUNDINGS).tolist()
    scores, weights = (
        replace(
            keys, shape=(count,), quantisation=Quantisation((numbers[at],), int(numbers[at + 1]))
        )
        for at in (0, 2)
    )
    has_table = t.has(operator.TABLE)
    softmax = byte_softmax(
        t, replace(scores, quantisation=t.input(operator.TABLE).quantisation)
        if has_table else scores, weights, operator.scale,
    )  # fmt: skip
    score_factor, score_shift = _multiplier(t, queries, keys, scores)
    factor, shift = _multiplier(t, weights, values, result)
    layer = t.layer(
        "attention_layer_s8", rows=rows, heads=operator.heads,
        group=operator.heads // operator.key_heads, depth=depth, width=width, count=count,
        key_batch=key_strides[0], key_head=key_strides[1], key_stride=key_strides[2],
        value_batch=value_strides[0], value_head=value_strides[1], value_stride=value_strides[2],
        query_offset=-zero_of(queries), key_offset=-zero_of(keys), weight_offset=-zero_of(weights),
        value_offset=-zero_of(values), score_factor=score_factor, score_shift=score_shift,
        score_zero=zero_of(scores), factor=factor, shift=shift, out_zero=zero_of(result),
        table=t.constant(t.array(operator.TABLE), "table") if has_table else "NULL",
    )  # fmt: skip
    _, most = bounds(count, t.layout.program.dimensions)
    t.call(
        f"attention_{'even_' if t.is_even else ''}s8", layer, softmax, t.address(keys),
        t.address(values), t.local("scores", f"int8_t scores[{most}];"),
        t.rows_of(queries, queries.shape[2]), t.rows_to(result, result.shape[2]), 0,
        batches * rows,
    )  # fmt: skip


def _multiplier(t: StepWriter, one: Tensor, other: Tensor, result: Tensor) -> tuple[int, int]:
    """Return factor and shift of sums of products; the bits of a float, where halves are even."""
    if not t.is_even:
        return quantised_multiplier(scale_of(one) * scale_of(other) / scale_of(result))
    product = np.float32(scale_of(one)) * np.float32(scale_of(other))
    return int((product / np.float32(scale_of(result))).view(np.int32)), 0


def _strides(tensor: Tensor, heads: int) -> tuple[int, int, int, int, int]:
    """Return keys, elements of one, and elements between batches, heads and keys."""
    if len(tensor.shape) == 4:
        _, _, count, size = tensor.shape
        return count, size, heads * count * size, count * size, size
    _, count, columns = tensor.shape
    return count, columns // heads, count * columns, columns // heads, columns


@writes(Rotary)
def rotary(t: StepWriter) -> None:
    """Write the rotation of pairs of floats."""
    operator = t.operator
    assert isinstance(operator, Rotary)
    t.types("float32")
    source, cosines, sines, result = t.input(0), t.input(1), t.input(2), t.output()
    batches, rows, columns = source.shape
    t.call(
        "rotary_f32", operator.heads, columns // operator.heads, cosines.shape[2],
        int(operator.interleaved), rows if cosines.shape[0] == 1 else batches * rows,
        t.address(cosines), t.address(sines),
        t.rows_of(source, 4 * columns), t.rows_to(result, 4 * columns), 0, batches * rows,
    )  # fmt: skip
