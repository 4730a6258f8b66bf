"""Tensors that hold some of the bytes of others, or make room for them.

A part is contiguous in the whole if it has length 1 along every axis outside the innermost of
the axes in which the two differ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from arenite.planner.sizes import same
from arenite.planner.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor that holds some of the bytes of another.

    Attributes:
        offset: First byte of the part in the whole; None if it is not contiguous there.
        reason: Why there is no offset.
        moves: Whether the step moves the part within the whole: it finds the part at the offset,
            and leaves its bytes elsewhere. Of such parts one alone can lie in the whole.
    """

    inner: str
    outer: str
    offset: int | None
    reason: str = ""
    moves: bool = False


def part_at(outer: Tensor, inner: Tensor, begins: Sequence[int]) -> Part:
    """Return the part of a tensor that begins at these indices, one per axis."""
    differing = [
        axis
        for axis, pair in enumerate(zip(outer.shape, inner.shape, strict=True))
        if not same(*pair)
    ]
    innermost = differing[-1] if differing else 0
    if math.prod(inner.shape[:innermost]) != 1:
        return Part(inner.name, outer.name, None, f"axis {innermost} is not the outermost")
    first = sum(begin * math.prod(outer.shape[axis + 1 :]) for axis, begin in enumerate(begins))
    if first * outer.dtype.bits % 8:
        return Part(inner.name, outer.name, None, "it does not start on a whole byte")
    return Part(inner.name, outer.name, first * outer.dtype.bits // 8)


def parts_along_axis(outer: Tensor, inner: Sequence[Tensor | None]) -> tuple[Part, ...]:
    """Return the parts that make up a whole along one axis, one after the other.

    Args:
        outer: The whole.
        inner: The parts; None where one is left out.
    """
    present = [tensor for tensor in inner if tensor is not None]
    axis = _axis(outer, present)
    if len(present) < len(inner) or axis is None:
        reason = "the parts do not make up the whole along one axis"
        return tuple(Part(tensor.name, outer.name, None, reason) for tensor in present)
    found: list[Part] = []
    begin = 0
    for tensor in present:
        begins = [0] * len(outer.shape)
        if outer.shape:
            begins[axis] = begin
            begin += tensor.shape[axis]
        found.append(part_at(outer, tensor, begins))
    return tuple(found)


def _axis(outer: Tensor, inner: Sequence[Tensor]) -> int | None:
    """Return the one axis along which the parts make up the whole, None if there is none."""
    if any(len(part.shape) != len(outer.shape) or part.dtype is not outer.dtype for part in inner):
        return None
    different = {
        axis
        for part in inner
        for axis, pair in enumerate(zip(part.shape, outer.shape, strict=True))
        if not same(*pair)
    }
    if not different:
        return 0 if len(inner) == 1 else None
    axis = different.pop()
    complete = same(sum(part.shape[axis] for part in inner), outer.shape[axis])
    return axis if complete and not different else None
