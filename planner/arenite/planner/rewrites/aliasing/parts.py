"""Operators that cut a tensor into parts, or join parts to a tensor.

A part is one run of bytes of the whole where, of the axes that differ, no element of the
part lies on a second index of any axis outside the innermost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from arenite.planner.dtypes import DType
from arenite.planner.graph import Graph, Operator, Tensor
from arenite.planner.rewrites.aliasing.kinds import AliasKind

_SPLITS = {"Split": 0, "SPLIT": 1, "SPLIT_V": 0}
"""Operators that cut along one axis, and the position of what they cut."""
_CONCATS = frozenset({"Concat", "CONCATENATION"})


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor that holds some of the bytes of another.

    Attributes:
        inner: The part.
        outer: The whole.
        offset: First byte of the part in the whole; None where they are not one run.
        reason: Why there is no offset.
    """

    inner: str
    outer: str
    offset: int | None
    reason: str = ""


def parting_kind(operator: Operator) -> AliasKind | None:
    """Return the kind of sharing that concerns the operator's parts, None if it has none."""
    if operator.op_type in _CONCATS:
        return AliasKind.CONCAT
    return AliasKind.SLICES if operator.op_type in (*_SPLITS, "Slice") else None


def parts(graph: Graph, operator: Operator) -> tuple[Part, ...]:
    """Return the parts of an operator that cuts or joins, one for each part it names."""
    if operator.op_type == "Slice":
        return (_sliced(graph, operator),)
    if operator.op_type in _CONCATS:
        whole, names = operator.outputs[0], operator.inputs
    else:
        whole, names = operator.inputs[_SPLITS[operator.op_type]], operator.outputs
    outer, inner = graph.tensors[whole], [graph.tensors[name] for name in names if name]
    axis = _axis(outer, inner)
    if len(inner) < len(names) or axis is None:
        reason = "the parts do not make up the whole along one axis"
        return tuple(Part(tensor.name, whole, None, reason) for tensor in inner)
    found: list[Part] = []
    begin = 0
    for tensor in inner:
        begins = [0] * len(outer.shape)
        if outer.shape:
            begins[axis] = begin
            begin += tensor.shape[axis]
        found.append(_part(outer, tensor, begins))
    if operator.op_type == "CONCATENATION" and outer.dtype is DType.UINT8:
        reason = "uint8 inputs may be scaled anew as they are joined"
        return tuple(Part(part.inner, whole, None, reason) for part in found)
    return tuple(found)


def _axis(outer: Tensor, inner: Sequence[Tensor]) -> int | None:
    """Return the one axis along which the parts make up the whole, None if there is none."""
    if any(len(part.shape) != len(outer.shape) or part.dtype is not outer.dtype for part in inner):
        return None
    different = {
        axis
        for part in inner
        for axis, pair in enumerate(zip(part.shape, outer.shape, strict=True))
        if pair[0] != pair[1]
    }
    if not different:
        return 0 if len(inner) == 1 else None
    axis = different.pop()
    complete = sum(part.shape[axis] for part in inner) == outer.shape[axis]
    return axis if complete and not different else None


def _sliced(graph: Graph, operator: Operator) -> Part:
    outer, inner = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    starts, axes, steps = (operator.attributes.get(name) for name in ("starts", "axes", "steps"))
    if not isinstance(starts, tuple):
        return Part(inner.name, outer.name, None, "where it starts is not known before the run")
    if isinstance(steps, tuple) and any(step != 1 for step in steps):
        return Part(inner.name, outer.name, None, "it steps over elements")
    rank = len(outer.shape)
    along = axes if isinstance(axes, tuple) else tuple(range(len(starts)))
    if len(along) != len(starts) or not all(-rank <= int(axis) < rank for axis in along):
        return Part(inner.name, outer.name, None, "its axes are not those of what it cuts")
    begins = [0] * rank
    for axis, start in zip(map(int, along), map(int, starts), strict=True):
        length = outer.shape[axis]
        begins[axis] = min(start if start >= 0 else max(0, start + length), length)
    return _part(outer, inner, begins)


def _part(outer: Tensor, inner: Tensor, begins: Sequence[int]) -> Part:
    differing = [a for a in range(len(outer.shape)) if outer.shape[a] != inner.shape[a]]
    innermost = differing[-1] if differing else 0
    if math.prod(inner.shape[:innermost]) != 1:
        return Part(inner.name, outer.name, None, f"axis {innermost} is not the outermost")
    first = sum(begin * math.prod(outer.shape[axis + 1 :]) for axis, begin in enumerate(begins))
    if first * outer.dtype.bits % 8:
        return Part(inner.name, outer.name, None, "it does not start on a whole byte")
    return Part(inner.name, outer.name, first * outer.dtype.bits // 8)
