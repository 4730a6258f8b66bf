"""Put one operator in the place of the steps of attention.

Models write attention as products of queries and keys, a scale, masks, a softmax, and a product
with the values, with heads split and joined by transposed copies. Where all are found, the
operator reads queries, keys and values as their makers store them, and the scores are never
stored.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import Array, DType, Program, Step, TensorKind
from arenite.planner.sizes import depends, same
from arenite.runtime.operators.attention import LARGEST_HEAD, Attention
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.linear import FullyConnected, MatMul
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move
from arenite.runtime.rewrites.byte_scores import ByteMixing, ByteScoreFinder
from arenite.runtime.rewrites.drafting import ProgramDraft, Shape
from arenite.runtime.rewrites.masks import Masks
from arenite.runtime.rewrites.scores import Makers, Mixing, ScoreFinder
from arenite.runtime.rewrites.strided import Axis, Strided, fills_output, plain


def fuse_attention(program: Program) -> Program:
    """Return the program with attention as one step each, and the steps it replaces gone."""
    if not any(isinstance(step.operator, MatMul) for step in program.steps):
        return program
    makers = Makers(program)
    finder, of_bytes = ScoreFinder(makers), ByteScoreFinder(makers)
    found = {
        step.name: mixing
        for step in program.steps
        if (mixing := finder.mixing(step) or of_bytes.mixing(step)) is not None
    }
    draft = ProgramDraft(program)
    fusing = _Fusing(makers, draft)
    for step in program.steps:
        mixing = found.get(step.name)
        if mixing is None or not fusing.fuse(mixing):
            draft.keep(step)
    return draft.finished() if fusing.num_fused else program


@dataclass(frozen=True, slots=True)
class _Heads:
    """Queries, keys or values as the operator reads them.

    Attributes:
        batch: Number of batches.
        heads: Number of heads.
        count: Number of queries or keys.
        depth: Elements of one.
        factor: What they were multiplied by on the way.
        found: Where they are.
        is_by_heads: Whether a head's lie together.
        columns: Outputs of the step that makes them, where they are some of these; None: all.
        is_copied: Whether a step has to copy them first.
    """

    batch: int
    heads: int
    count: int
    depth: int
    factor: float
    found: Strided
    is_by_heads: bool = False
    columns: Array | None = None
    is_copied: bool = False


class _Fusing:
    """Puts attention in the place of what it finds.

    Attributes:
        num_fused: How often.
    """

    def __init__(self, makers: Makers, draft: ProgramDraft) -> None:
        self._makers = makers
        self._old = makers.program
        self._draft = draft
        self.num_fused = 0

    def fuse(self, mixing: Mixing | ByteMixing) -> bool:
        """Add the attention that a product of weights and values ends, if it is one."""
        if isinstance(mixing, ByteMixing):
            return self._fuse_bytes(mixing)
        product, scores = mixing.step, mixing.scores
        lead = self._old.tensors[product.outputs[0]].shape[:-2]
        scaled = scores.product
        assert isinstance(scaled.operator, MatMul)
        assert isinstance(product.operator, MatMul)
        chosen = _fitting(
            self._queries(scaled.inputs[0], lead, DType.FLOAT32),
            self._keys(
                scaled.inputs[1], lead, DType.FLOAT32, swaps=not scaled.operator.transpose_b
            ),
            self._keys(
                product.inputs[1],
                lead,
                DType.FLOAT32,
                swaps=product.operator.transpose_b,
                scales=False,
            ),
        )
        if chosen is None:
            return False
        query, key, value = chosen
        masks = Masks(self._makers, query.batch, query.heads, query.count, key.count, scores.shape)
        if max(query.depth, value.depth) > LARGEST_HEAD or not all(map(masks.add, scores.addends)):
            return False
        operator = Attention(
            heads=query.heads,
            key_heads=key.heads,
            scale=scores.scale * query.factor * key.factor,
            causal=masks.is_causal,
            softcap=scores.softcap,
        )
        name = f"{product.outputs[0]}/attention"
        keys, values = self._operand(key, name), self._operand(value, name)
        addend = masks.emitted(self._draft, name)
        queries = self._operand(query, name)
        self._draft.put_off(queries)
        inputs = (queries, keys, values, *((addend,) if addend else ()))
        self._emit(product, operator, inputs, query, value)
        self.num_fused += 1
        return True

    def _fuse_bytes(self, mixing: ByteMixing) -> bool:
        """Add attention of bytes."""
        scores, product = mixing.scores, mixing.product
        lead = self._old.tensors[mixing.step.outputs[0]].shape[:-2]
        chosen = _fitting(
            self._queries(scores.operands[0], lead, DType.INT8),
            self._keys(
                scores.operands[1], lead, DType.INT8, swaps=not scores.operator.transpose_b,
                scales=False,
            ),
            self._keys(
                product.operands[1], lead, DType.INT8, swaps=product.operator.transpose_b,
                scales=False,
            ),
        )  # fmt: skip
        if chosen is None:
            return False
        query, key, value = chosen
        if max(query.depth, value.depth) > LARGEST_HEAD:
            return False
        operator = Attention(heads=query.heads, key_heads=key.heads, scale=mixing.beta)
        name = f"{mixing.step.outputs[0]}/attention"
        keys, values, queries = (self._operand(each, name) for each in (key, value, query))
        self._draft.put_off(queries)
        inputs = [queries, keys, values, "", ""]
        inputs.append(
            self._draft.constant(np.array(mixing.roundings, np.float32), f"{name}/roundings")
        )
        if mixing.table is not None:
            inputs.append(self._draft.constant(mixing.table[0], f"{name}/table", mixing.table[1]))
        self._emit(mixing.step, operator, tuple(inputs), query, value)
        self.num_fused += 1
        return True

    def _queries(self, name: str, lead: Shape, dtype: DType) -> list[_Heads]:
        place = self._place(name)
        lengths = tuple(map(_length, place.axes))
        ways = list(self._ways(place, lengths, len(lead), is_key=False, scales=True))
        return self._of_type(dtype, [*reversed(ways), *_copied(place, lengths, len(lead))])

    def _keys(
        self, name: str, lead: Shape, dtype: DType, *, swaps: bool, scales: bool = True
    ) -> list[_Heads]:
        place = self._place(name)
        place = place.swapped(-1, -2) if swaps else place
        lengths = tuple(map(_length, place.axes))
        ways = list(self._ways(place, lengths, len(lead), is_key=True, scales=scales))
        return self._of_type(dtype, [*reversed(ways), *_copied(place, lengths, len(lead))])

    def _of_type(self, dtype: DType, ways: Sequence[_Heads]) -> list[_Heads]:
        """Return the ways that read elements of a type."""
        return [each for each in ways if self._old.tensors[each.found.tensor].dtype is dtype]

    def _place(self, name: str) -> Strided:
        tensor = self._old.tensors[name]
        root, offset = self._old.root(name)
        return Strided.contiguous(root, offset // (tensor.dtype.bits // 8), tensor.shape)

    def _ways(
        self, place: Strided, lengths: Shape, rank: int, *, is_key: bool, scales: bool
    ) -> Iterator[_Heads]:
        """Yield how the operator could read an operand: as it is, or before it was copied.

        Args:
            place: The operand, the axes of a matrix last.
            lengths: Lengths of its axes.
            rank: Axes before those of a matrix, of the product.
            is_key: Whether it may lie by heads and be shared by several.
            scales: Whether a factor may be left to the scores.
        """
        factor = 1.0
        while True:
            way = self._way(place, lengths, rank, factor, is_key=is_key)
            if way is not None:
                yield way
            before = self._before(place, scales=scales)
            if before is None:
                return
            place, more = before
            factor *= more

    def _before(self, place: Strided, *, scales: bool) -> tuple[Strided, float] | None:
        """Return where the elements were before the step that made them, and its factor."""
        maker = self._makers.maker(place.tensor)
        if maker is None:
            return None
        if isinstance(maker.operator, Copy):
            before = self._before_copy(place, maker, maker.operator)
            return None if before is None else (before, 1.0)
        is_converted = isinstance(maker.operator, Convert)
        scaled = (maker.inputs[0], 1.0) if is_converted else None
        if scales and not is_converted:
            scaled = self._makers.scaled(maker)
        if scaled is None:
            return None
        root, offset = self._old.root(scaled[0])
        tensor = self._old.tensors[root]
        if tensor.kind is TensorKind.STATE:
            return None
        start = place.start + offset // (tensor.dtype.bits // 8)
        return replace(place, tensor=root, start=start), scaled[1]

    def _before_copy(self, place: Strided, maker: Step, copy: Copy) -> Strided | None:
        output = maker.outputs.index(place.tensor)
        moves = [move for move in copy.moves if move.output == output]
        made = self._old.tensors[place.tensor].num_elements
        if len(moves) != 1 or not fills_output(moves[0]):
            return None
        if not same(math.prod(moves[0].shape), made):
            return None
        source, offset = self._old.root(maker.inputs[moves[0].input])
        if not same(offset, 0) or self._old.tensors[source].kind is TensorKind.STATE:
            return None
        return place.before(moves[0], source)

    def _way(
        self, place: Strided, lengths: Shape, rank: int, factor: float, *, is_key: bool
    ) -> _Heads | None:
        """Return how the operator reads elements at a place, None if it cannot."""
        *_, tokens, depth = place.axes
        batch, head = _split(place, rank)
        parts = tuple(part for part in head if part[1] != 0)
        is_shared = len(parts) < len(head)
        if is_shared and (not is_key or head[: len(parts)] != parts):
            return None
        axes = (batch, parts, tokens, depth)
        if any(len(axis) > 1 for axis in axes):
            return None
        heads, (count, size) = _length(parts), lengths[-2:]
        way = _Heads(_length(batch), heads, count, size, factor, place)
        if _has_strides(axes, (heads * size * count, size, heads * size, 1)):
            return way
        if is_key and _has_strides(axes, (heads * size * count, size * count, size, 1)):
            return replace(way, is_by_heads=True)
        columns = self._columns(way, axes)
        return None if columns is None else replace(way, columns=columns)

    def _columns(self, way: _Heads, axes: Sequence[Axis]) -> Array | None:
        """Return the outputs of a product with constant weights that are all of some heads.

        Nothing but copies reads the product, so that it can go.
        """
        place = way.found
        maker = self._makers.maker(place.tensor)
        if maker is None or not isinstance(maker.operator, FullyConnected):
            return None
        constants = [self._makers.array(name) for name in maker.inputs[1:] if name]
        weights = constants[0]
        are_floats = all(each is not None and each.dtype == np.float32 for each in constants)
        readers = self._makers.readers[place.tensor]
        if weights is None or not are_floats or len(maker.inputs) > 3:
            return None
        if not all(isinstance(each.operator, Copy) for each in readers):
            return None
        batch, head, tokens, depth = axes
        width = weights.shape[0]
        if not _has_strides((batch, tokens), (way.count * width, width)):
            return None
        strides = [axis[0][1] if axis else 0 for axis in (head, depth)]
        if any(map(depends, (place.start, *strides))):
            return None
        columns = (
            place.start
            + strides[0] * np.arange(way.heads)[:, None]
            + strides[1] * np.arange(way.depth)
        )
        return columns.reshape(-1) if columns.max() < width else None

    def _operand(self, way: _Heads, hint: str) -> str:
        """Return the tensor that the operator reads."""
        shape: Shape = (way.batch, way.count, way.heads * way.depth)
        if way.is_by_heads:
            shape = (way.batch, way.heads, way.count, way.depth)
        if way.columns is not None:
            return self._projected(way.found.tensor, way.columns, shape)
        if not way.is_copied:
            return self._draft.view(way.found.tensor, way.found.start, shape)
        batch, head = _split(way.found, len(way.found.axes) - 2)
        axes = [batch, way.found.axes[-2], head, way.found.axes[-1]]
        move = Move(
            shape=tuple(map(_length, axes)),
            input_start=way.found.start,
            input_strides=tuple(axis[0][1] if axis else 0 for axis in axes),
            output_strides=_strides(tuple(map(_length, axes))),
        )
        source = self._old.tensors[way.found.tensor]
        return self._draft.emit(
            Copy(moves=(move,)), (way.found.tensor,), f"{hint}/tokens", shape, source.dtype,
            source.quantisation,
        )  # fmt: skip

    def _projected(self, result: str, columns: Array, shape: Shape) -> str:
        """Return some outputs of a product with constant weights, made by a step of their own."""
        maker = self._makers.maker(result)
        assert maker is not None
        assert isinstance(maker.operator, FullyConnected)
        inputs = [maker.inputs[0]]
        for name in maker.inputs[1:]:
            array = self._makers.array(name) if name else None
            inputs.append("" if array is None else self._draft.constant(array[columns], name))
        made = (*self._old.tensors[inputs[0]].shape[:-1], len(columns))
        output = self._draft.emit(maker.operator, tuple(inputs), f"{result}/part", made)
        return self._draft.view(output, 0, shape)

    def _emit(
        self,
        product: Step,
        operator: Attention,
        inputs: tuple[str, ...],
        query: _Heads,
        value: _Heads,
    ) -> None:
        """Add the attention, and what brings its result into the order in which it is read."""
        result = product.outputs[0]
        shape = (query.batch, query.count, query.heads * value.depth)
        by_heads = (query.batch, query.heads, query.count, value.depth)
        joined = self._joined(result, by_heads)
        if joined is not None:
            self._draft.drop(joined.name)
            self._draft.emit_in_place(operator, inputs, joined.outputs[0], shape)
        elif same(query.count, 1) or same(query.heads, 1):
            self._draft.emit_in_place(operator, inputs, result, shape)
        else:
            of_result = self._old.tensors[result]
            made = self._draft.emit(
                operator, inputs, f"{result}/attention", shape, of_result.dtype,
                of_result.quantisation,
            )  # fmt: skip
            move = Move(
                shape=by_heads,
                input_strides=_by_tokens(by_heads),
                output_strides=_strides(by_heads),
            )
            self._draft.keep(replace(product, operator=Copy(moves=(move,)), inputs=(made,)))

    def _joined(self, result: str, by_heads: Shape) -> Step | None:
        """Return the copy that puts the heads of each token side by side, if that is all."""
        readers = self._makers.readers.get(result, [])
        if len(readers) != 1 or not self._makers.is_private(result):
            return None
        (step,) = readers
        if not isinstance(step.operator, Copy) or len(step.operator.moves) != 1:
            return None
        target = self._old.tensors[step.outputs[0]]
        if len(step.inputs) != 1 or target.alias is not None:
            return None
        if target.quantisation != self._old.tensors[result].quantisation:
            return None
        batch, heads, tokens, size = by_heads
        place = Strided.contiguous(target.name, 0, (batch, tokens, heads, size))
        if not same(math.prod(by_heads), target.num_elements):
            return None
        before = self._before_copy(place, step, step.operator)
        strides = _strides(by_heads)
        wanted = tuple(strides[axis] for axis in (0, 2, 1, 3))
        if before is None or before.start or not _has_strides(before.axes, wanted):
            return None
        return step


def _fitting(
    queries: Sequence[_Heads], keys: Sequence[_Heads], values: Sequence[_Heads]
) -> tuple[_Heads, _Heads, _Heads] | None:
    """Return the best ways to read queries, keys and values that agree."""
    for query in queries:
        for key in keys:
            for value in values:
                if (
                    same(query.batch, key.batch)
                    and same(key.batch, value.batch)
                    and same(key.heads, value.heads)
                    and same(key.count, value.count)
                    and same(query.depth, key.depth)
                    and not any(map(depends, (query.heads, key.heads, query.depth, value.depth)))
                    and min(query.heads, key.heads, query.depth, value.depth) > 0
                    and query.heads % key.heads == 0
                ):
                    return query, key, value
    return None


def _copied(place: Strided, lengths: Shape, rank: int) -> Iterator[_Heads]:
    """Yield how a step copies an operand so that it can be read."""
    batch, head = _split(place, rank)
    if max(map(len, (batch, head, *place.axes[-2:]))) < 2:
        count, depth = lengths[-2:]
        yield _Heads(_length(batch), _length(head), count, depth, 1.0, place, is_copied=True)


def _split(place: Strided, rank: int) -> tuple[Axis, Axis]:
    """Return the axes of batches and of heads that come before those of a matrix."""
    outer = place.axes[:-2]
    outer = ((),) * (rank - len(outer)) + outer
    if rank == 0:
        return (), ()
    if rank > 1:
        return outer[0], plain(tuple(part for axis in outer[1:] for part in axis))
    (axis,) = outer
    num_strided = sum(stride != 0 for _, stride in axis)
    cut = max(num_strided - 1, 0)
    return axis[:cut], axis[cut:]


def _length(axis: Axis) -> int:
    return math.prod(length for length, _ in axis)


def _has_strides(axes: Sequence[Axis], strides: Sequence[int]) -> bool:
    """Tell whether axes have these strides; one of a single element has any."""
    return all(
        len(axis) < 2 and all(same(part[1], stride) for part in axis)
        for axis, stride in zip(axes, strides, strict=True)
    )


def _strides(shape: Shape) -> Shape:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _by_tokens(by_heads: Shape) -> Shape:
    """Return the strides of batches, heads, tokens and elements where tokens are stored first."""
    batch, heads, tokens, size = by_heads
    strides = _strides((batch, tokens, heads, size))
    return tuple(strides[axis] for axis in (0, 2, 1, 3))
