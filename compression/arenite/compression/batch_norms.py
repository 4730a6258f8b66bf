"""Fold batch norms into the convolutions before them, as a runtime does."""

import numpy as np
import onnx
import onnx.helper

from arenite.compression.constants import Array, array_of, constants_of, set_array
from arenite.planner.importers.onnx import node_reads

_LAST_WITH_INPUTS = 3
"""The last IR version in which an initialiser has to be an input of the graph too."""


def fold_batch_norms(model: onnx.ModelProto) -> None:
    """Fold each batch norm into the convolution that it alone reads.

    One that does not fit its convolution, or makes weights that are not finite, stays.

    Raises:
        ModelFormatError: A constant cannot be read.
    """
    graph = model.graph
    tensors = constants_of(graph)
    producers = {name: node for node in graph.node for name in node.output}
    num_readers: dict[str, int] = {}
    for name in (
        *(name for node in graph.node for name in node_reads(node)),
        *(value.name for value in graph.output),
    ):
        num_readers[name] = num_readers.get(name, 0) + 1
    for node in list(graph.node):
        source = producers.get(node.input[0]) if node.input else None
        if (
            node.op_type != "BatchNormalization"
            or len(node.input) != 5
            or source is None
            or source.op_type != "Conv"
            or num_readers[node.input[0]] > 1
            or len(source.input) < 2
            or any(node.output[1:])
            or not all(name in tensors for name in node.input[1:])
            or not all(name in tensors and num_readers[name] == 1 for name in source.input[1:])
        ):
            continue
        folded = _folded(tensors, source, node)
        if folded is None:
            continue
        weights, bias = folded
        set_array(tensors[source.input[1]], weights)
        if len(source.input) > 2:
            set_array(tensors[source.input[2]], bias)
        else:
            name = _unused_name(f"{source.input[1]}/bias", {*tensors, *producers, *num_readers})
            source.input.append(name)
            tensors[name] = graph.initializer.add(name=name)
            set_array(tensors[name], bias)
            num_readers[name] = 1
            if model.ir_version <= _LAST_WITH_INPUTS:
                graph.input.append(
                    onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, bias.shape)
                )
        source.output[0] = node.output[0]
        producers[node.output[0]] = source
        graph.node.remove(node)


def _folded(
    tensors: dict[str, onnx.TensorProto], convolution: onnx.NodeProto, norm: onnx.NodeProto
) -> tuple[Array, Array] | None:
    """Return the weights and the bias of both operators in one; None if they do not fit."""
    epsilon = next((each.f for each in norm.attribute if each.name == "epsilon"), 1e-5)
    weights, *bias = (_wide(name, tensors) for name in convolution.input[1:3])
    num_channels = len(weights) if weights.ndim else 0
    vectors = [_wide(name, tensors) for name in norm.input[1:]] + bias
    if any(each.shape != (num_channels,) for each in vectors):
        return None
    scale, shift, mean, variance = vectors[:4]
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        found = (
            (weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))).astype(np.float32),
            ((sum(bias) - mean) * factor + shift).astype(np.float32),
        )
    return found if all(np.isfinite(each).all() for each in found) else None


def _wide(name: str, tensors: dict[str, onnx.TensorProto]) -> Array:
    array = array_of(name, tensors[name])
    if array.dtype != np.float32:
        return np.empty(())
    with np.errstate(all="ignore"):  # a NaN that signals
        return array.astype(np.float64)


def _unused_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name
