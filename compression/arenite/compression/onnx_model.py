"""The weights of an ONNX model, and the model with its weights replaced."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.external_data_helper
import onnx.numpy_helper
from numpy.typing import NDArray

from arenite.compression.structured import Narrowed, group_of, remove_channels
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.files import write_atomically
from arenite.planner.importers.onnx.file import load_model

Array: TypeAlias = NDArray[Any]

FEWEST_WEIGHTS = 512
"""Fewest weights of a layer worth compressing; a codebook takes up to 1 KiB."""
_MOST_BYTES = (1 << 31) - 1
"""The most that protobuf can write."""


class LayerKind(StrEnum):
    """What a layer computes; it decides the bits it gets and whether it is pruned."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    PRODUCT = "product"


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of a model.

    Attributes:
        name: The initialiser's.
        kind: The kind of operator that reads it.
        weights: float32, as the model has them.
    """

    name: str
    kind: LayerKind
    weights: NDArray[np.float32]


class OnnxModel:
    """An ONNX model, batch norms folded into the convolutions before them.

    Folding comes first because a runtime folds too: afterwards each channel would have a
    codebook of its own.

    Args:
        path: The model.

    Raises:
        ModelError: It cannot be read, or has no weights that could be compressed.
    """

    def __init__(self, path: Path) -> None:
        self._model = load_model(path)
        try:
            onnx.external_data_helper.load_external_data_for_model(self._model, str(path.parent))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise UnsupportedModelError("external data", str(error), path=path) from error
        _fold_batch_norms(self._model.graph)
        self._find_layers(str(path))

    def narrowed(self, density: float) -> tuple["OnnxModel", Narrowed]:
        """Return the model with fewer channels, and which they are.

        Args:
            density: Share of the channels that stay, where they can go.
        """
        found = remove_channels(self._model, density)
        smaller = OnnxModel.__new__(OnnxModel)
        smaller._model = found.model  # noqa: SLF001  # its own
        smaller._find_layers(self._model.graph.name)  # noqa: SLF001
        return smaller, found

    def _find_layers(self, label: str) -> None:
        self._tensors = {tensor.name: tensor for tensor in self._model.graph.initializer}
        self.layers = tuple(self._layers())
        if not self.layers:
            raise UnsupportedModelError(
                "no layer",
                f"it has no 32-bit weights of {FEWEST_WEIGHTS} or more to compress",
                path=label,
            )

    def with_weights(self, weights: Mapping[str, Array]) -> onnx.ModelProto:
        """Return the model with weights replaced, by layer name."""
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        for tensor in model.graph.initializer:
            if tensor.name in weights:
                array = np.ascontiguousarray(weights[tensor.name], np.float32)
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        return model

    def original(self) -> onnx.ModelProto:
        """Return the model as it was read, batch norms folded."""
        return self._model

    def _layers(self) -> Iterator[Layer]:
        found: dict[str, LayerKind] = {}
        for node in self._model.graph.node:
            if node.domain in ("", "ai.onnx") and node.op_type in _WEIGHTS:
                for name in node.input[1:2] if node.op_type != "MatMul" else node.input[:2]:
                    if name in self._tensors:
                        found.setdefault(name, _kind(node, self._tensors[name]))
        for name, kind in found.items():
            tensor = self._tensors[name]
            if tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.dims) < 2:
                continue
            weights = onnx.numpy_helper.to_array(tensor)
            if weights.size >= FEWEST_WEIGHTS:
                yield Layer(name, kind, weights)


def write_onnx(path: Path, model: onnx.ModelProto) -> None:
    """Write a model atomically.

    Raises:
        UnsupportedModelError: It has 2 GiB or more.
        OutputError: It cannot be written; what was there is as it was.
    """
    if model.ByteSize() > _MOST_BYTES:
        raise UnsupportedModelError(
            "weights",
            "an ONNX file without external data has less than 2 GiB",
            path=path,
        )
    write_atomically(path, model.SerializeToString())


_WEIGHTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def _kind(node: onnx.NodeProto, tensor: onnx.TensorProto) -> LayerKind:
    if node.op_type in ("Gemm", "MatMul"):
        return LayerKind.PRODUCT
    is_depthwise = group_of(node) > 1 and len(tensor.dims) > 1 and tensor.dims[1] == 1
    return LayerKind.DEPTHWISE if is_depthwise else LayerKind.CONVOLUTION


def _fold_batch_norms(graph: onnx.GraphProto) -> None:
    """Fold each batch norm into the convolution that it alone reads."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    producers = {name: node for node in graph.node for name in node.output}
    num_readers: dict[str, int] = {}
    for name in (
        *(name for node in graph.node for name in node.input),
        *(value.name for value in graph.output),
    ):
        num_readers[name] = num_readers.get(name, 0) + 1
    for node in list(graph.node):
        source = producers.get(node.input[0]) if node.input else None
        if (
            node.op_type != "BatchNormalization"
            or source is None
            or source.op_type != "Conv"
            or num_readers[node.input[0]] > 1
            or any(node.output[1:])
            or not all(name in tensors for name in node.input[1:])
            or not all(name in tensors and num_readers[name] == 1 for name in source.input[1:])
        ):
            continue
        _fold(graph, tensors, source, node)
        source.output[0] = node.output[0]
        producers[node.output[0]] = source
        graph.node.remove(node)


def _fold(
    graph: onnx.GraphProto,
    tensors: dict[str, onnx.TensorProto],
    convolution: onnx.NodeProto,
    norm: onnx.NodeProto,
) -> None:
    epsilon = next((each.f for each in norm.attribute if each.name == "epsilon"), 1e-5)
    scale, shift, mean, variance = (
        onnx.numpy_helper.to_array(tensors[name]).astype(np.float64) for name in norm.input[1:5]
    )
    factor = scale / np.sqrt(variance + epsilon)
    weights = onnx.numpy_helper.to_array(tensors[convolution.input[1]])
    bias: Array = np.zeros(factor.size)
    if len(convolution.input) > 2 and convolution.input[2]:
        bias = onnx.numpy_helper.to_array(tensors[convolution.input[2]]).astype(np.float64)
    else:
        del convolution.input[2:]
        name = f"{convolution.input[1]}/bias"
        while name in tensors:
            name += "'"
        convolution.input.append(name)
        tensors[name] = graph.initializer.add(name=name)
    folded = weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))
    for name, array in (
        (convolution.input[1], folded),
        (convolution.input[2], (bias - mean) * factor + shift),
    ):
        tensors[name].CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float32), name))
