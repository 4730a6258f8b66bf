"""Rotary positions that a model writes out as several operators."""

from dataclasses import dataclass

import numpy as np

from arenite.planner import Array, DType, Step
from arenite.planner.sizes import same
from arenite.runtime.lowering.layout import StoredValue
from arenite.runtime.lowering.moves import picked
from arenite.runtime.lowering.onnx.heads import TOKENS_FIRST, rotated
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, attributes_of
from arenite.runtime.operators.movement import Copy

_ELEMENT_BY_ELEMENT = frozenset({"Cast", "Cos", "Identity", "Sin"})
_AXES = {"Slice": 3, "Unsqueeze": 1}
"""The input of an operator that names the axes that it works on."""


@dataclass(frozen=True, slots=True)
class _Turned:
    """What a tensor is that has the elements of pairs swapped, and one of each negated.

    Attributes:
        source: The tensor whose elements they are.
        interleaved: Whether an element is paired with the next one, not one half a row later.
    """

    source: str
    interleaved: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """Half of the elements of each row: those from `start` on, `step` apart."""

    source: str
    start: int
    step: int


def translate_rotary(t: OnnxTranslation) -> bool:
    """Translate x * cos + turned(x) * sin, where both of a pair have the same angle."""
    if t.dtype is not DType.FLOAT32:
        return False
    for one, other in (t.step.inputs, t.step.inputs[::-1]):
        plain, product = _maker(t, one, "Mul"), _maker(t, other, "Mul")
        if plain is None or product is None:
            return False
        for name, sines in (product.inputs, product.inputs[::-1]):
            found = _turned(t, name)
            if found is None or found.source not in plain.inputs:
                continue
            position = plain.inputs.index(found.source)
            if _translate(t, found, plain.inputs[1 - position], sines):
                return True
    return False


def _translate(t: OnnxTranslation, found: _Turned, cosines: str, sines: str) -> bool:
    value = t.builder.value(found.source)
    names = (cosines, sines)
    if len(value.shape) != 4 or not all(_repeats(t, each, found.interleaved) for each in names):
        return False
    for axes in ((0, 1, 2, 3), TOKENS_FIRST):  # heads and tokens, or tokens and heads
        by_heads = t.builder.transposed(value, axes)
        if not all(_is_of_tokens(t.builder.value(each), axes, by_heads) for each in names):
            continue
        cosine, sine = (_of_pairs(t, each, axes, interleaved=found.interleaved) for each in names)
        made = rotated(t, by_heads, (cosine, sine), interleaved=found.interleaved, hint="rotated")
        t.finish(t.builder.transposed(made, axes))
        return True
    return False


def _is_of_tokens(angles: StoredValue, axes: tuple[int, ...], value: StoredValue) -> bool:
    """Tell whether angles are of the tokens of batches, heads, tokens and elements."""
    shape = angles.aligned(4).shape
    batch, heads, tokens, size = (shape[axis] for axis in axes)
    is_batch = same(batch, 1) or same(batch, value.shape[0])
    return (
        is_batch and same(heads, 1) and same(tokens, value.shape[2]) and same(size, value.shape[3])
    )


def _of_pairs(
    t: OnnxTranslation, name: str, axes: tuple[int, ...], *, interleaved: bool
) -> StoredValue:
    """Return one angle for each pair: batches, tokens and pairs. All layers share it."""

    def made() -> StoredValue:
        value = t.builder.as_written(t.builder.value(name).aligned(4), name)
        batch, _, tokens, size = (value.shape[axis] for axis in axes)
        shape = (*value.shape[:3], size // 2)
        move = picked(value, shape, (0, 0, 0, 0), (1, 1, 1, 2 if interleaved else 1))
        angles = t.builder.emit_one(Copy(moves=(move,)), [value], f"{name}/pairs", shape)
        return t.builder.reshaped(angles, (batch, tokens, size // 2), name)

    return t.builder.made_once(f"{name}/pairs", made)


def _turned(t: OnnxTranslation, name: str) -> _Turned | None:
    """Return what a tensor has the turned pairs of, None if it has not."""
    inner = _maker(t, name, "Reshape")
    interleaved = inner is not None
    if inner is not None:
        name = inner.inputs[0]
    joined = _maker(t, name, "Concat")
    if joined is None or len(joined.inputs) != 2 or not _is_last(t, joined, name):
        return None
    minus, plus = joined.inputs
    if interleaved:
        heads = [_unsqueezed(t, each) for each in (minus, plus)]
        if heads[0] is None or heads[1] is None:
            return None
        minus, plus = heads[0], heads[1]
    negated = _maker(t, minus, "Neg")
    if negated is None:
        return None
    second, first = _part(t, negated.inputs[0]), _part(t, plus)
    if first is None or second is None or first.source != second.source:
        return None
    size = t.builder.shape(first.source)[-1]
    stated = ((0, 2), (1, 2)) if interleaved else ((0, 1), (size // 2, 1))
    if ((first.start, first.step), (second.start, second.step)) != stated:
        return None
    halves = [t.builder.shape(each)[-1] for each in (negated.inputs[0], plus)]
    if not all(same(2 * each, size) for each in halves):
        return None
    return _Turned(first.source, interleaved)


def _part(t: OnnxTranslation, name: str) -> _Part | None:
    """Return what a tensor is a part of, along the last axis."""
    step = t.producers.get(name)
    if step is None:
        return None
    source = step.inputs[0]
    rank = len(t.builder.shape(source))
    if step.operator.label == "Split":
        if attributes_of(step).get("axis", 0) not in (-1, rank - 1) or len(step.outputs) != 2:
            return None
        before = t.builder.shape(step.outputs[0])[-1] if step.outputs.index(name) else 0
        return _Part(source, before, 1)
    if step.operator.label != "Slice" or len(step.inputs) < 4:
        return None
    numbers = [t.builder.integers(each) if each else (1,) for each in step.inputs[1:]]
    starts, _, axes, *steps = numbers
    if starts is None or len(starts) != 1 or axes not in ((-1,), (rank - 1,)):
        return None
    distance = steps[0] if steps else (1,)
    if distance is None or starts[0] < 0:
        return None
    return _Part(source, starts[0], distance[0])


def _repeats(t: OnnxTranslation, name: str, interleaved: bool) -> bool:
    """Tell whether both elements of each pair of the last axis are equal."""
    array = t.builder.array(name)
    if array is not None:
        return _has_equal_pairs(array, interleaved)
    step = t.producers.get(name)
    if step is None:
        return False
    label = step.operator.label
    if label in _ELEMENT_BY_ELEMENT:
        return _repeats(t, step.inputs[0], interleaved)
    if label == "Mul":
        numbers = [t.builder.array(each) for each in step.inputs]
        others = [
            each
            for each, number in zip(step.inputs, reversed(numbers), strict=True)
            if number is not None and number.size == 1
        ]
        return bool(others) and _repeats(t, others[0], interleaved)
    if label in (*_AXES, "Gather"):
        kept = t.builder.shape(name)[-1:], t.builder.shape(step.inputs[0])[-1:]
        return (
            _leaves_last(t, step)
            and kept[0] == kept[1]
            and _repeats(t, step.inputs[0], interleaved)
        )
    if label == "Concat" and not interleaved:
        return (
            len(step.inputs) == 2 and step.inputs[0] == step.inputs[1] and _is_last(t, step, name)
        )
    if label == "Reshape" and interleaved:
        return _is_repeated_pair(t, step)
    return False


def _has_equal_pairs(array: Array, interleaved: bool) -> bool:
    if not array.ndim or array.shape[-1] % 2:
        return False
    half = array.shape[-1] // 2
    one, other = (
        (array[..., 0::2], array[..., 1::2])
        if interleaved
        else (array[..., :half], array[..., half:])
    )
    return bool(np.array_equal(one, other))


def _leaves_last(t: OnnxTranslation, step: Step) -> bool:
    """Tell whether an operator works on other axes than the last."""
    label = step.operator.label
    if label == "Gather":
        axis, rank = attributes_of(step).get("axis", 0), len(t.builder.shape(step.inputs[0]))
        return axis not in (-1, rank - 1)
    position = _AXES[label]
    axes = t.builder.integers(step.inputs[position]) if len(step.inputs) > position else None
    last = len(t.builder.shape(step.outputs[0])) - 1
    return axes is not None and not any(each in (-1, last) for each in axes)


def _is_repeated_pair(t: OnnxTranslation, step: Step) -> bool:
    """Tell whether a Reshape joins two equal elements of the last axis to each."""
    shape = t.builder.shape(step.inputs[0])
    made = t.builder.shape(step.outputs[0])
    if not shape or not same(shape[-1], 2) or not same(made[-1], 2 * shape[-2]):
        return False
    before = t.producers.get(step.inputs[0])
    if before is None:
        return False
    if before.operator.label in ("Expand", "Tile"):
        return same(t.builder.shape(before.inputs[0])[-1], 1)
    return before.operator.label == "Concat" and len(set(before.inputs)) == 1


def _unsqueezed(t: OnnxTranslation, name: str) -> str | None:
    """Return the tensor that has no last axis of one element yet."""
    step = _maker(t, name, "Unsqueeze")
    if step is None or not same(t.builder.shape(name)[-1], 1):
        return None
    source = step.inputs[0]
    return source if t.builder.shape(name)[:-1] == t.builder.shape(source) else None


def _is_last(t: OnnxTranslation, step: Step, name: str) -> bool:
    return attributes_of(step).get("axis") in (-1, len(t.builder.shape(name)) - 1)


def _maker(t: OnnxTranslation, name: str, label: str) -> Step | None:
    """Return the step that makes a tensor, if it is of this operator."""
    step = t.producers.get(name)
    return step if step is not None and step.operator.label == label else None
