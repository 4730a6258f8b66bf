"""SPACE_TO_BATCH_ND and its inverse."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from arenite.planner.program import Array
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Shape, strides
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.operators.movement import Copy, Move

_MAX_PLACES = 4_096
"""Of a block; each is a move of its own."""


@translates("SPACE_TO_BATCH_ND", int16=True)
def space_to_batch(t: Translation) -> None:
    """Translate SPACE_TO_BATCH_ND."""
    value = t.value()
    blocks, paddings = _blocks(t, value.shape)
    source, target = strides(value.shape, value.order), strides(t.shape, value.order)
    moves = [
        Move(
            shape=shape, input_start=inside, input_strides=_stepped(blocks, source),
            output_start=batched, output_strides=target,
        )
        for shape, inside, batched in _phases(blocks, paddings, value.shape, source, target)
    ]  # fmt: skip
    quantisation = t.builder.stated_quantisation(t.target)
    zero = quantisation.zero_point if quantisation is not None else 0
    fill = np.array(zero, t.numpy_dtype).tobytes()
    t.finish(t.emit(Copy(moves=tuple(moves), fill=fill), [value]))


def batch_to_space(t: Translation) -> None:
    """Translate BATCH_TO_SPACE_ND."""
    value = t.value()
    blocks, crops = _blocks(t, value.shape)
    source, target = strides(value.shape, value.order), strides(t.shape, value.order)
    moves = [
        Move(
            shape=shape, input_start=batched, input_strides=source,
            output_start=inside, output_strides=_stepped(blocks, target),
        )
        for shape, inside, batched in _phases(blocks, crops, t.shape, target, source)
    ]  # fmt: skip
    t.finish(t.emit(Copy(moves=tuple(moves)), [value]))


def _phases(
    blocks: Sequence[int], margins: Array, image: Shape, inside: Shape, batched: Shape
) -> Iterator[tuple[Shape, int, int]]:
    """Yield of each place of a block its elements' shape, and their starts on both sides.

    Args:
        blocks: Lengths of a block.
        margins: Places around the image, before and after.
        image: Batch, the lengths of the axes, and others.
        inside: Strides of the image.
        batched: Strides of what has a batch for each place.
    """
    for place, phase in enumerate(itertools.product(*map(range, blocks))):
        starts, firsts, counts = _phase(phase, blocks, margins, image)
        shape = (image[0], *counts, *image[1 + len(blocks) :])
        start = place * image[0] * batched[0] + _offset(starts, batched)
        yield shape, _offset(firsts, inside), start


def _offset(indices: Sequence[int], strides_: Sequence[int]) -> int:
    """Return the first element that is read or written, of the axes behind the batch."""
    return sum(index * stride for index, stride in zip(indices, strides_[1:], strict=False))


def _stepped(blocks: Sequence[int], strides_: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of the larger tensor, of which a phase has every so many."""
    stepped = [block * stride for block, stride in zip(blocks, strides_[1:], strict=False)]
    return (strides_[0], *stepped, *strides_[1 + len(blocks) :])


def _phase(
    phase: Sequence[int], blocks: Sequence[int], margins: Array, image: Shape
) -> tuple[list[int], list[int], list[int]]:
    """Return for each axis where a phase begins: in its batch, in the image, and how many.

    Args:
        phase: Of the places of a block, those that the batch holds.
        blocks: Lengths of a block.
        margins: Places around the image, before and after.
        image: Batch, the lengths of the axes, and others.
    """
    starts, firsts, counts = [], [], []
    for offset, block, (front, _), length in zip(phase, blocks, margins, image[1:], strict=False):
        # The first place of the batch that is inside the image.
        start = max(-(-(int(front) - offset) // block), 0)
        first = start * block + offset - int(front)
        starts.append(start)
        firsts.append(first)
        counts.append(max(-(-(length - first) // block), 0))
    return starts, firsts, counts


def _blocks(t: Translation, shape: Shape) -> tuple[tuple[int, ...], Array]:
    """Return the lengths of a block, and the margins of the axes behind the batch."""
    blocks, margins = t.integers(1), t.array(2).reshape(-1, 2)
    if not 0 < len(blocks) < len(shape) or len(margins) != len(blocks) or min(blocks) < 1:
        raise NotLoweredError(f"it has blocks {blocks} of a tensor {shape}")
    if math.prod(blocks) > _MAX_PLACES:
        raise NotLoweredError(f"its blocks have more than {_MAX_PLACES} places")
    return blocks, margins
