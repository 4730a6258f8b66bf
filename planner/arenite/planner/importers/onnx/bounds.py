"""Operators that make as much as their data say: how much that is at most."""

import math
from collections.abc import Callable, Mapping, Sequence

import onnx

from arenite.planner.dtypes import DType
from arenite.planner.importers.onnx.node import Operand, op_type
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.importers.onnx.values import Values

_Bound = Callable[[onnx.NodeProto, Sequence[Operand], Values], TensorType | None]


def bounded_type(
    node: onnx.NodeProto, inputs: Sequence[Operand], values: Values
) -> TensorType | None:
    """Return the largest type that the node's output can have; None if its type is known.

    Args:
        node: A node without subgraphs.
        inputs: One for each of the node's inputs.
        values: Known values.
    """
    bound = _BOUNDS.get(op_type(node))
    if bound is None or all(values.get(each.name) is not None for each in inputs if each.type):
        return None
    return bound(node, inputs, values)


def _boxes(_node: onnx.NodeProto, inputs: Sequence[Operand], values: Values) -> TensorType | None:
    """Return a row for each box that NonMaxSuppression may keep, by image and class."""
    if len(inputs) < 2 or inputs[1].type is None or len(inputs[1].type.shape) != 3:
        return None
    num_images, num_classes, num_boxes = inputs[1].type.shape
    most = 0  # of each class; what is left out is 0
    if len(inputs) > 2 and inputs[2].type is not None:
        stated = values.get(inputs[2].name)
        known = stated is not None and stated.size == 1
        most = (
            min(max(int(stated.item()), 0), num_boxes)
            if known and stated is not None
            else num_boxes
        )
    return TensorType(DType.INT64, (num_images * num_classes * most, 3))


def _places(
    _node: onnx.NodeProto, inputs: Sequence[Operand], _values: Values
) -> TensorType | None:
    """Return a column for each element that may not be zero."""
    if not inputs or inputs[0].type is None:
        return None
    shape = inputs[0].type.shape
    return TensorType(DType.INT64, (len(shape), math.prod(shape)))


def _slices(node: onnx.NodeProto, inputs: Sequence[Operand], _values: Values) -> TensorType | None:
    """Return the input of Compress, all of whose slices may be taken."""
    if len(inputs) < 2 or inputs[0].type is None or inputs[1].type is None:
        return None
    dtype, shape = inputs[0].type
    most = math.prod(inputs[1].type.shape)
    axis = next((each.i for each in node.attribute if each.name == "axis"), None)
    if axis is None:
        return TensorType(dtype, (min(math.prod(shape), most),))
    axis %= len(shape)
    return TensorType(dtype, (*shape[:axis], min(shape[axis], most), *shape[axis + 1 :]))


_BOUNDS: Mapping[str, _Bound] = {
    "Compress": _slices,
    "NonMaxSuppression": _boxes,
    "NonZero": _places,
}
