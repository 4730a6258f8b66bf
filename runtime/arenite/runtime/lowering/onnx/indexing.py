"""OneHot, and ScatterElements as steps of training have it."""

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.program import Step
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.registry import translates
from arenite.runtime.lowering.onnx.translation import Translation
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Select
from arenite.runtime.operators.movement import ScatterAdd

_MAX_DEPTH = 1 << 20
"""Of a one-hot code, whose indices become a constant."""


@translates("OneHot")
def one_hot(t: Translation) -> None:
    """Translate OneHot: indices are compared with all there are, counted from either end."""
    indices = t.builder.as_written(t.value(0), t.target)
    if indices.dtype not in (DType.INT32, DType.INT64):
        raise NotLoweredError(f"its indices are {indices.dtype.label}")
    if t.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
        raise NotLoweredError(f"it makes {t.dtype.label}")
    rank = len(t.shape)
    axis = t.axis(-1, rank)
    depth = t.shape[axis]
    if depth > _MAX_DEPTH:
        raise NotLoweredError(f"it compares with {depth} indices, of at most {_MAX_DEPTH}")
    shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    indices = t.builder.reshaped(indices, shape, t.target)
    row = [depth if each == axis else 1 for each in range(rank)]

    def equal(first: int, name: str) -> Value:
        places = np.arange(first, first + depth, dtype=indices.dtype.label).reshape(row)
        return _masks(t, BinaryFunction.EQUAL, [indices, t.builder.constant(places, name)], name)

    from_front, from_end = equal(0, f"{t.target}/front"), equal(-depth, f"{t.target}/end")
    is_hot = _masks(t, BinaryFunction.LOGICAL_OR, [from_front, from_end], f"{t.target}/hot")
    t.finish(t.emit(Select(), [is_hot, *_numbers(t, rank)]))


def _masks(
    t: Translation, function: BinaryFunction, values: list[Value | None], name: str
) -> Value:
    return t.emit(Binary(function=function), values, dtype=DType.BOOL, name=name)


def _numbers(t: Translation, rank: int) -> list[Value]:
    """Return the numbers where a code is hot and where it is not, which one input holds."""
    off_and_on = t.array(2).reshape(-1)
    return [
        t.builder.constant(off_and_on[place].reshape((1,) * rank), f"{t.target}/{name}")
        for name, place in (("on", 1), ("off", 0))
    ]


@translates("ScatterElements")
def scatter_elements(t: Translation) -> None:
    """Translate a sum scattered over one axis to the places that a MaxPool told."""
    if t.attribute("reduction", "none") != "add" or len(t.shape) != 1:
        raise NotLoweredError("it is no sum over one axis")
    maker = _behind_views(t, t.source(1))
    if maker is None or maker.operator.label != "MaxPool":
        raise NotLoweredError("its indices, which may count from the end, are not of a MaxPool")
    indices, updates = (t.builder.as_written(t.value(p), t.target) for p in (1, 2))
    if _are_zeros(t, t.source(0)):
        t.finish(t.emit(ScatterAdd(), [indices, updates]))
        return
    found = t.emit(
        ScatterAdd(), [indices, updates], order=as_written(1), name=f"{t.target}/scattered"
    )
    t.finish(combine(t, BinaryFunction.ADD, t.value(0), found, t.target))


def _behind_views(t: Translation, name: str) -> Step | None:
    """Return the step that makes the elements of a tensor, whatever their shape."""
    maker = t.producers.get(name)
    while maker is not None and maker.operator.label in ("Flatten", "Reshape"):
        maker = t.producers.get(maker.inputs[0])
    return maker


def _are_zeros(t: Translation, name: str) -> bool:
    """Tell whether a tensor is clipped to 0."""
    maker = _behind_views(t, name)
    if maker is None or maker.operator.label != "Clip" or len(maker.inputs) < 3:
        return False
    bounds = [t.builder.array(each) for each in maker.inputs[1:]]
    return all(bound is not None and not np.any(bound) for bound in bounds)
