"""Fuse pads and sums into convolutions, and drop unread tensors.

A sum of a convolution and another tensor, as at the end of a residual block, becomes a part of the
convolution: its result is stored once and not read again, and one tensor less is live.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.sizes import depends, same_lengths
from arenite.runtime.operators.base import Sides
from arenite.runtime.operators.convolution import Conv2D, Convolution, DepthwiseConv2D
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.operators.movement import Copy


def without_unread(program: Program) -> Program:
    """Return the program without the tensors and constants that nothing names.

    Its inputs, outputs and states stay.
    """
    used = {name for step in program.steps for name in (*step.reads, *step.writes)}
    used.update(program.input_tensors, program.output_tensors, program.initial.values())
    used.update(
        name for name, tensor in program.tensors.items() if tensor.kind is TensorKind.STATE
    )
    pending = list(used)
    while pending:
        alias = program.tensors[pending.pop()].alias
        if alias is not None and alias.tensor not in used:
            used.add(alias.tensor)
            pending.append(alias.tensor)
    return replace(
        program,
        tensors={name: tensor for name, tensor in program.tensors.items() if name in used},
        constants={name: array for name, array in program.constants.items() if name in used},
    )


@dataclass(frozen=True, slots=True)
class _PaddedImage:
    """An image with rows and columns of zeros round it.

    Attributes:
        image: The tensor within.
        sides: Rows and columns added at the top, right, bottom and left.
    """

    image: str
    sides: Sides


def fold_pads(program: Program) -> Program:
    """Return the program with every image padded by zeros unpadded where a convolution reads it.

    The convolution skips pixels outside the image, as if they were zeros. The padded image goes if
    nothing else reads it.
    """
    pads = dict(_pads(program))
    read = {step.name: _unpadded(step, pads) for step in program.steps}
    kept = {name for step in read.values() for name in step.inputs} | set(program.output_tensors)
    kept |= {each.alias.tensor for each in program.tensors.values() if each.alias is not None}
    steps = (step for step in read.values() if not set(step.outputs) & (pads.keys() - kept))
    return without_unread(replace(program, steps=tuple(steps)))


def _unpadded(step: Step, pads: dict[str, _PaddedImage]) -> Step:
    """Return a convolution that pads its image itself; any other step unchanged."""
    operator = step.operator
    pad = pads.get(step.inputs[0]) if step.inputs else None
    if pad is None or not isinstance(operator, Conv2D | DepthwiseConv2D):
        return step
    top, right, bottom, left = (
        own + added for own, added in zip(operator.padding, pad.sides, strict=True)
    )
    operator = replace(operator, padding=(top, right, bottom, left))
    return replace(step, operator=operator, inputs=(pad.image, *step.inputs[1:]))


def _pads(program: Program) -> Iterator[tuple[str, _PaddedImage]]:
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
            yield padded.name, _PaddedImage(image.name, sides)


def _sides(operator: Copy, image: Tensor, padded: Tensor) -> Sides | None:
    """Return the padding of each side, None if more than rows and columns are padded."""
    (move,) = operator.moves
    shapes = image.shape, padded.shape
    if len(image.shape) != 4 or len(padded.shape) != 4 or move.input_start:
        return None
    if any(map(depends, (*image.shape, *padded.shape))):
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


def fuse_sums(program: Program) -> Program:
    """Return the program with every sum in the convolution that can make it.

    The convolution moves to where the sum was. Of two that could, the later one takes the sum.
    """
    private = _read_once(program)
    steps: list[Step | None] = []
    makers: dict[str, int] = {}
    for step in program.steps:
        made = [
            makers[name]
            for name in step.inputs
            if name in private and name in makers and _is_open(steps[makers[name]])
        ]
        if made and _is_sum(program, step):
            step = _with_addend(steps[max(made)], step)
            steps[max(made)] = None
        makers.update(dict.fromkeys(step.outputs, len(steps)))
        steps.append(step)
    return without_unread(replace(program, steps=tuple(step for step in steps if step)))


def _with_addend(conv: Step | None, total: Step) -> Step:
    """Return the convolution that makes the sum of its result and another tensor."""
    assert conv is not None
    assert isinstance(conv.operator, Convolution)
    assert isinstance(total.operator, Binary)
    (addend,) = (name for name in total.inputs if name != conv.outputs[0])
    operator = replace(conv.operator, min=total.operator.min, max=total.operator.max)
    left_out = ("",) * (Convolution.ADDEND - len(conv.inputs))
    return Step(conv.name, operator, (*conv.inputs, *left_out, addend), total.outputs)


def _read_once(program: Program) -> frozenset[str]:
    """Return the tensors that exactly one step reads, once, and that are no outputs."""
    reads = Counter(name for step in program.steps for name in step.inputs if name)
    viewed = {each.alias.tensor for each in program.tensors.values() if each.alias is not None}
    return frozenset(
        name
        for name, count in reads.items()
        if count == 1
        and name not in viewed
        and name not in program.output_tensors
        and program.tensors[name].alias is None
        and program.tensors[name].kind is TensorKind.ACTIVATION
    )


def _is_open(step: Step | None) -> bool:
    """Tell whether a step is a convolution that neither adds nor clamps yet."""
    return (
        step is not None
        and isinstance(step.operator, Convolution)
        and len(step.inputs) <= Convolution.ADDEND
        and (step.operator.min, step.operator.max) == (-math.inf, math.inf)
    )


def _is_sum(program: Program, step: Step) -> bool:
    """Tell whether a step adds two tensors of floats of the shape of their sum."""
    operator = step.operator
    if not isinstance(operator, Binary) or operator.function is not BinaryFunction.ADD:
        return False
    tensors = [program.tensors[name] for name in (*step.inputs, *step.outputs)]
    return (
        len(set(step.inputs)) == 2
        and {each.dtype for each in tensors} == {DType.FLOAT32}
        and all(same_lengths(each.shape, tensors[-1].shape) for each in tensors)
        and all(each.kind is not TensorKind.CONSTANT for each in tensors)
    )
