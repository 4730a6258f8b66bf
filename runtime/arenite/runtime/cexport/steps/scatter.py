"""Tensors of which some elements or slices are updated by their index."""

import math
from collections.abc import Sequence

import numpy as np

from arenite.planner import Tensor
from arenite.planner.sizes import depends
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.steps.writer import StepWriter, writes
from arenite.runtime.operators.movement import (
    ScatterAdd,
    ScatterElements,
    ScatterFunction,
    ScatterSlices,
)

_MOST_AXES = 6
_NUMBERS = {"float32": "f32", "int32": "s32", "int64": "s64"}
_FUNCTIONS = {
    (ScatterFunction.ADD, "f32"), (ScatterFunction.ADD, "s32"), (ScatterFunction.ADD, "s64"),
    (ScatterFunction.MULTIPLY, "f32"), (ScatterFunction.MINIMUM, "f32"),
    (ScatterFunction.MAXIMUM, "f32"),
}  # fmt: skip


@writes(ScatterElements)
def scatter_elements(t: StepWriter) -> None:
    """Write updates of elements along an axis."""
    operator = t.operator
    assert isinstance(operator, ScatterElements)
    data, indices, axis = t.input(0), t.input(1), operator.axis
    if len(indices.shape) > _MOST_AXES:
        raise NotWrittenError(
            f"indices of {len(indices.shape)} axes are unsupported, supported: up to {_MOST_AXES}"
        )
    strides = _strides(data.shape)
    beside = [0 if each == axis else stride for each, stride in enumerate(strides)]
    _begin(t, data)
    _call(
        t, operator.function, indices, t.input(2), updates=indices.num_elements, length=1,
        lengths=data.shape[axis : axis + 1], strides=strides[axis : axis + 1],
        index_shape=indices.shape, strides_beside=beside,
    )  # fmt: skip


@writes(ScatterSlices)
def scatter_slices(t: StepWriter) -> None:
    """Write updates of slices that have an index for each of the first axes."""
    operator = t.operator
    assert isinstance(operator, ScatterSlices)
    data, indices = t.input(0), t.input(1)
    axes = indices.shape[-1]
    _begin(t, data)
    _call(
        t, operator.function, indices, t.input(2), updates=math.prod(indices.shape[:-1]),
        length=math.prod(data.shape[axes:]), lengths=data.shape[:axes],
        strides=_strides(data.shape)[:axes],
    )  # fmt: skip


@writes(ScatterAdd)
def scatter_add(t: StepWriter) -> None:
    """Write sums of slices that have an index of the first axis."""
    indices, result = t.input(0), t.output()
    t.plain_call(f"memset({t.address(result)}, 0, {t.num_bytes(result.size)});")
    length = math.prod(result.shape[1:])
    _call(
        t, ScatterFunction.ADD, indices, t.input(1), updates=indices.num_elements, length=length,
        lengths=result.shape[:1], strides=(length,), is_wrapped=False,
    )  # fmt: skip


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _begin(t: StepWriter, data: Tensor) -> None:
    """Write a copy of the data, unless the result lies on it."""
    result, place = t.output(), t.address(t.output())
    if t.address(data) != place:
        t.plain_call(f"memcpy({place}, {t.address(data)}, {t.num_bytes(result.size)});")


def _call(
    t: StepWriter,
    function: ScatterFunction,
    indices: Tensor,
    updates_: Tensor,
    *,
    updates: int,
    length: int,
    lengths: Sequence[int],
    strides: Sequence[int],
    index_shape: Sequence[int] = (),
    strides_beside: Sequence[int] = (),
    is_wrapped: bool = True,
) -> None:
    result = t.output()
    kinds = result.dtype.label, indices.dtype.label
    if any(map(depends, (*result.shape, *indices.shape, *updates_.shape))):
        raise NotWrittenError("a range of sizes is unsupported")
    if result.dtype.bits % 8 or updates_.quantisation != result.quantisation:
        raise NotWrittenError("updates of another scale than the output's are unsupported")
    replaces = function is ScatterFunction.REPLACE
    kind = str(result.dtype.bits) if replaces else _NUMBERS.get(kinds[0])
    is_known = replaces or (function, kind) in _FUNCTIONS
    if not is_known or kinds[1] not in ("int32", "int64"):
        raise NotWrittenError(
            f"{function.value} of {kinds[0]} with indices of {kinds[1]} is unsupported"
        )
    if not updates or not length:
        return

    def table(values: Sequence[int], hint: str) -> str:
        return t.constant(np.array(values, np.int32), hint) if len(values) else "NULL"

    layer = t.layer(
        "scatter_layer", updates=updates, length=length, axes=len(lengths),
        index_axes=len(index_shape), is_wrapped=int(is_wrapped),
        lengths=table(lengths, "lengths"), strides=table(strides, "strides"),
        index_shape=table(index_shape, "index_shape"),
        strides_beside=table(strides_beside, "strides_beside"),
    )  # fmt: skip
    name = "replace" if replaces else f"{function.value}_at"
    places = map(t.address, (indices, updates_, result))
    t.call(f"{name}_{kind}_{indices.dtype.bits}", layer, *places)
