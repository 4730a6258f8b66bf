"""Attention and rotary positions of floats."""

from arenite.planner import Tensor
from arenite.planner.operators import Operands
from arenite.runtime.cexport.steps.writer import StepWriter, writes
from arenite.runtime.operators.attention import Attention, Rotary


class AttentionApart(Attention):
    """Attention whose kernel reads a query while it writes its result."""

    __slots__ = ()

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return nothing: the result is the sum so far."""
        return ()


@writes(AttentionApart)
def attention(t: StepWriter) -> None:
    """Write attention of floats, row by row of its queries."""
    operator = t.operator
    assert isinstance(operator, Attention)
    t.types("float32")
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
