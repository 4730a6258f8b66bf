"""Where the elements of a tensor lie in the tensors that it was copied from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from arenite.planner.sizes import same
from arenite.runtime.operators.moves import Move

Axis: TypeAlias = tuple[tuple[int, int], ...]
"""Lengths and strides, in elements, of an axis that is cut into some, outermost first."""


@dataclass(frozen=True, slots=True)
class Strided:
    """A tensor seen with strides.

    Attributes:
        tensor: Name of the tensor that has the storage.
        start: Its first element.
        axes: Its axes, outermost first.
    """

    tensor: str
    start: int
    axes: tuple[Axis, ...]

    @classmethod
    def contiguous(cls, tensor: str, start: int, shape: Sequence[int]) -> "Strided":
        """Return all elements from a first one on, under a shape."""
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        axes = (plain(((length, stride),)) for length, stride in zip(shape, strides, strict=True))
        return cls(tensor, start, tuple(axes))

    def swapped(self, one: int, other: int) -> "Strided":
        """Return the same with two axes exchanged."""
        axes = list(self.axes)
        axes[one], axes[other] = axes[other], axes[one]
        return replace(self, axes=tuple(axes))

    def before(self, move: Move, source: str) -> "Strided | None":
        """Return where the elements were before a move made this tensor, None if not as simple.

        Args:
            move: It makes all of the tensor.
            source: The storage of its input.
        """
        if not same(self.start, 0):
            return None
        found = [_before(axis, move) for axis in self.axes]
        if any(axis is None for axis in found):
            return None
        axes = tuple(plain(axis) for axis in found if axis is not None)
        return Strided(source, move.input_start, axes)


def plain(axis: Axis) -> Axis:
    """Return an axis with as few parts as possible; of one element it has none."""
    found: list[tuple[int, int]] = []
    for length, stride in axis:
        if same(length, 1):
            continue
        if found and same(found[-1][1], length * stride):
            found[-1] = (found[-1][0] * length, stride)
        else:
            found.append((length, stride))
    return tuple(found)


def fills_output(move: Move) -> bool:
    """Tell whether the elements written are one run from the first on."""
    if move.output_start:
        return False
    parts = zip(move.shape, move.output_strides, strict=True)
    expected = 1
    for length, stride in sorted(parts, key=lambda part: part[1]):
        if same(length, 1):
            continue
        if not same(stride, expected):
            return False
        expected *= length
    return True


def _before(axis: Axis, move: Move) -> Axis | None:
    """Return an axis of the output of a move by the strides of its input."""
    parts = sorted(
        (
            part
            for part in zip(move.output_strides, move.shape, move.input_strides, strict=True)
            if not same(part[1], 1)
        ),
        key=lambda part: part[0],
    )  # innermost first
    found: list[tuple[int, int]] = []
    for length, stride in reversed(axis):
        rest = length
        for out_stride, count, in_stride in parts:
            if same(rest, 1):
                break
            if same(out_stride, stride):
                step = 1
            elif out_stride < stride < out_stride * count and stride % out_stride == 0:
                step = stride // out_stride
            else:
                continue
            inside = count if step == 1 else count // step
            if step != 1 and not same(inside * step, count):
                return None
            if same(rest, inside) or rest < inside:
                found.append((rest, in_stride * step))
                rest = 1
            elif same(rest // inside * inside, rest):
                found.append((inside, in_stride * step))
                rest //= inside
                stride *= inside
            else:
                return None
        if not same(rest, 1):
            return None
    return tuple(reversed(found))
