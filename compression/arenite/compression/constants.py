"""The constants of an ONNX graph: its initialisers and the values of its Constant nodes."""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.checker
import onnx.helper
import onnx.numpy_helper
from numpy.typing import NDArray

from arenite.planner.errors import ModelFormatError
from arenite.planner.importers.onnx import (
    Dialect,
    NodeChecker,
    constant_names,
    node_reads,
    normal_domain,
    opset_versions,
    subgraphs,
)

Array: TypeAlias = NDArray[Any]

# What numpy and the onnx package raise on bytes that are no tensor.
_READING_ERRORS = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


def constants_of(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the tensors that a graph holds by name; to change one is to change the graph."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        tensor = _held(node)
        if tensor is not None:
            found[node.output[0]] = tensor
    return found


def array_of(name: str, tensor: onnx.TensorProto) -> Array:
    """Return the elements of a tensor.

    Raises:
        ModelFormatError: Its elements do not match its shape and type.
    """
    try:
        array = np.asarray(onnx.numpy_helper.to_array(tensor))
    except _READING_ERRORS as error:
        raise ModelFormatError(f"tensor {name!r} cannot be read: {_one_line(error)}") from error
    if array.shape != tuple(tensor.dims):
        raise ModelFormatError(
            f"the elements of tensor {name!r} do not match its shape {list(tensor.dims)}"
        )
    return array


def set_array(tensor: onnx.TensorProto, array: Array) -> None:
    """Give a tensor other elements of its own type; its name stays."""
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))


def with_constants(model: onnx.ModelProto, arrays: Mapping[str, Array]) -> onnx.ModelProto:
    """Return a copy of a model with other elements in some constants, by name."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for name, tensor in constants_of(copy.graph).items():
        if name in arrays:
            set_array(tensor, arrays[name])
    return copy


def packed_size(tensor: onnx.TensorProto) -> int | None:
    """Return the bytes of the elements; None for types that are not a number of bytes each."""
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        return None
    if dtype.kind not in "biuf":
        return None
    return int(math.prod(tensor.dims)) * int(dtype.itemsize)


def check_nodes(model: onnx.ModelProto) -> None:
    """Return if the nodes have the operands and attributes that their operators are defined with.

    Operators that the onnx package does not define are left to who runs them, and so are those
    with graphs inside.

    Raises:
        ModelFormatError: One has not.
    """
    dialect = Dialect(model.ir_version, opset_versions(model))
    checker = NodeChecker(dialect)
    for node in model.graph.node:
        if _held(node) is None and not any(subgraphs(node)) and dialect.schema(node) is not None:
            label = next(filter(None, (node.name, *node.output, *node.input)), "")
            checker.check_definition(node, label)


def drop_unused(graph: onnx.GraphProto) -> None:
    """Remove the constants that nothing reads.

    In files of the first IR versions an initialiser is an input of the graph too; it goes there
    as well.
    """
    read = {name for node in graph.node for name in node_reads(node)}
    read.update(value.name for value in graph.output)
    dropped = {tensor.name for tensor in graph.initializer} - read
    _keep(graph.initializer, lambda tensor: tensor.name in read)
    _keep(graph.input, lambda value: value.name not in dropped)
    _keep(graph.node, lambda node: _held(node) is None or node.output[0] in read)
    known = {name for node in graph.node for name in node.output}
    known.update(constant_names(graph))
    known.update(value.name for value in graph.input)
    _keep(graph.value_info, lambda value: value.name in known)


def _keep(items: Any, wanted: Any) -> None:
    """Delete from a repeated field; nothing that stays is copied."""
    for index in reversed(range(len(items))):
        if not wanted(items[index]):
            del items[index]


def _held(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return the tensor of a Constant node that has one."""
    if node.op_type != "Constant" or normal_domain(node.domain) or len(node.output) != 1:
        return None
    return next((each.t for each in node.attribute if each.name == "value"), None)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
