"""Let convolutions pad their image where a step before them would."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner.program import Program, Step
from arenite.planner.tensors import Tensor
from arenite.runtime.operators.base import Sides
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.operators.movement import Copy
from arenite.runtime.rewrites.unread import without_unread


@dataclass(frozen=True, slots=True)
class _Pad:
    """An image with rows and columns of zeros round it.

    Attributes:
        image: The tensor within.
        sides: Rows and columns added at the top, right, bottom and left.
    """

    image: str
    sides: Sides


def fold_pads(program: Program) -> Program:
    """Return the program with every image padded by zeros unpadded where a convolution reads it.

    The convolution skips what lies outside, as if it were zeros. The padded image goes if nothing
    else reads it.
    """
    pads = dict(_pads(program))
    read = {step.name: _unpadded(step, pads) for step in program.steps}
    kept = {name for step in read.values() for name in step.inputs} | set(program.output_tensors)
    kept |= {each.alias.tensor for each in program.tensors.values() if each.alias is not None}
    steps = (step for step in read.values() if not set(step.outputs) & (pads.keys() - kept))
    return without_unread(replace(program, steps=tuple(steps)))


def _unpadded(step: Step, pads: dict[str, _Pad]) -> Step:
    """Return a convolution that pads its image itself; any other step as it is."""
    operator = step.operator
    pad = pads.get(step.inputs[0]) if step.inputs else None
    if pad is None or not isinstance(operator, Conv2D | DepthwiseConv2D):
        return step
    top, right, bottom, left = (
        own + added for own, added in zip(operator.padding, pad.sides, strict=True)
    )
    operator = replace(operator, padding=(top, right, bottom, left))
    return replace(step, operator=operator, inputs=(pad.image, *step.inputs[1:]))


def _pads(program: Program) -> Iterator[tuple[str, _Pad]]:
    """Yield each tensor that is an image with zeros round it."""
    for step in program.steps:
        operator = step.operator
        if not isinstance(operator, Copy) or len(operator.moves) != 1:
            continue
        if len(step.inputs) != 1 or len(step.outputs) != 1:
            continue
        image, padded = (program.tensors[name] for name in (step.inputs[0], step.outputs[0]))
        sides = _sides(operator, image, padded)
        if sides is not None and _is_zero(operator.fill, padded):
            yield padded.name, _Pad(image.name, sides)


def _sides(operator: Copy, image: Tensor, padded: Tensor) -> Sides | None:
    """Return what is added at each side, None if rows and columns are not all that is."""
    (move,) = operator.moves
    shapes = image.shape, padded.shape
    if len(image.shape) != 4 or len(padded.shape) != 4 or move.input_start:
        return None
    if 0 in (*image.shape, *padded.shape):
        return None
    if image.dtype is not padded.dtype or image.quantisation != padded.quantisation:
        return None
    if (image.shape[0], image.shape[3]) != (padded.shape[0], padded.shape[3]):
        return None
    if move.shape != image.shape or not move.reads_one_run:
        return None
    for length, stride, expected in zip(
        move.shape, move.output_strides, _strides(padded.shape), strict=True
    ):
        if length != 1 and stride != expected:
            return None
    row, column, channel = _place(move.output_start, padded.shape)
    (_, height, width, _), (_, whole_height, whole_width, _) = shapes
    bottom, right = whole_height - height - row, whole_width - width - column
    return None if channel or min(bottom, right) < 0 else (row, right, bottom, column)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _place(start: int, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return row, column and channel of an element of the first plane."""
    _, _, width, channels = shape
    pixel, channel = divmod(start, channels)
    return (*divmod(pixel, width), channel)


def _is_zero(fill: bytes, tensor: Tensor) -> bool:
    """Tell whether a fill stands for 0 in a tensor."""
    zero = 0 if tensor.quantisation is None else tensor.quantisation.zero_point
    dtype = np.dtype(tensor.dtype.label)
    return fill == np.array(zero, dtype).tobytes()
