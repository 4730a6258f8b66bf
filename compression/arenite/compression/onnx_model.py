"""The weights of an ONNX model, and the model with its weights replaced."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.compression.constants import (
    array_of,
    check_nodes,
    constants_of,
    drop_unused,
    packed_size,
    with_constants,
)
from arenite.compression.errors import NoLayerError, NonFiniteWeightsError
from arenite.compression.graph_rewrites import (
    Narrowed,
    fold_batch_norms,
    group_of,
    remove_channels,
)
from arenite.planner.errors import UnsupportedModelError, about_file
from arenite.planner.files import write_atomically
from arenite.planner.importers.onnx import MOST_BYTES, embed, load_model, normal_domain

Array: TypeAlias = NDArray[Any]

FEWEST_WEIGHTS = 512
"""Fewest weights of a layer worth compressing; a codebook takes up to 1 KiB."""


class LayerKind(StrEnum):
    """Kind of a layer, which decides its bits and whether it is pruned."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    PRODUCT = "product"


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of a model.

    Attributes:
        name: That of the initialiser, or of the output of a Constant node.
        kind: The kind of operator that reads it.
        weights: float32, as the model has them.
    """

    name: str
    kind: LayerKind
    weights: NDArray[np.float32]


class OnnxModel:
    """An ONNX model, batch norms folded into the convolutions before them.

    Folding comes first because a runtime folds too: afterwards each channel would have a
    codebook of its own. Constants that nothing reads are dropped.

    Args:
        path: The model.

    Attributes:
        layers: Those whose weights can be compressed.
        num_bytes: Of the file and of the weights that lie beside it.

    Raises:
        ModelError: It cannot be read, or has no weights that could be compressed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._model = load_model(path)
        with about_file(path):
            check_nodes(self._model)
            num_external = embed(self._model.graph, path.parent)
            if self._model.ByteSize() > MOST_BYTES:
                raise _too_large()
            self.num_bytes = path.stat().st_size + num_external
            drop_unused(self._model.graph)
            self._model = _with_batch_norms_folded(self._model)
            self._find_layers()

    def narrowed(self, density: float) -> tuple["OnnxModel", Narrowed]:
        """Return the model with fewer channels, and which they are.

        Args:
            density: Share of the channels that stay, where they can go.
        """
        smaller = OnnxModel.__new__(OnnxModel)
        smaller._path = self._path  # noqa: SLF001  # its own
        smaller.num_bytes = self.num_bytes
        with about_file(self._path):
            found = remove_channels(self._model, density)
            smaller._model = found.model  # noqa: SLF001
            smaller._find_layers()  # noqa: SLF001
        return smaller, found

    def _find_layers(self) -> None:
        self._tensors = constants_of(self._model.graph)
        self.layers = tuple(self._layers())
        if not self.layers:
            raise NoLayerError(
                "no layer to compress: no convolution, Gemm or MatMul of the main graph has "
                f"{FEWEST_WEIGHTS} or more constant 32-bit floating-point weights"
            )

    def with_weights(self, weights: Mapping[str, Array]) -> onnx.ModelProto:
        """Return the model with weights replaced, by layer name."""
        return with_constants(
            self._model, {name: np.asarray(each, np.float32) for name, each in weights.items()}
        )

    def num_other_bytes(self) -> int:
        """Return the bytes of the constants that are not weights of a layer."""
        names = {layer.name for layer in self.layers}
        return sum(
            size
            for name, tensor in self._tensors.items()
            if name not in names and (size := packed_size(tensor)) is not None
        )

    def original(self) -> onnx.ModelProto:
        """Return the model as it was read, batch norms folded."""
        return self._model

    def _layers(self) -> Iterator[Layer]:
        found: dict[str, LayerKind] = {}
        for node in self._model.graph.node:
            if node.op_type in _WEIGHTS.get(normal_domain(node.domain), ()):
                for name in node.input[0 if node.op_type.endswith("MatMul") else 1 : 2]:
                    if name in self._tensors:
                        found.setdefault(name, _kind(node, self._tensors[name]))
        for name, kind in found.items():
            tensor = self._tensors[name]
            if tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.dims) < 2:
                continue
            weights = array_of(name, tensor)
            if weights.size < FEWEST_WEIGHTS:
                continue
            num_wrong = weights.size - int(np.count_nonzero(np.isfinite(weights)))
            if num_wrong:
                raise NonFiniteWeightsError(name, num_wrong, weights.size)
            yield Layer(name, kind, weights)


def _with_batch_norms_folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model folded, as it was where that makes it larger.

    Norms that share their vectors leave less than the biases take that they become.
    """
    if not any(node.op_type == "BatchNormalization" for node in model.graph.node):
        return model
    folded = onnx.ModelProto()
    folded.CopyFrom(model)
    fold_batch_norms(folded)
    drop_unused(folded.graph)
    return folded if folded.ByteSize() <= model.ByteSize() else model


def _too_large() -> UnsupportedModelError:
    return UnsupportedModelError(
        "weights", "an ONNX file without external data has less than 2 GiB"
    )


def write_onnx(path: Path, model: onnx.ModelProto) -> None:
    """Write a model atomically.

    Raises:
        UnsupportedModelError: It has 2 GiB or more.
        OutputError: It cannot be written; an existing file is unchanged.
    """
    if model.ByteSize() > MOST_BYTES:
        with about_file(path):
            raise _too_large()
    write_atomically(path, model.SerializeToString())


_WEIGHTS = {
    "": frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"}),
    "com.microsoft": frozenset({"FusedConv", "FusedGemm", "FusedMatMul"}),
}
"""Operators that read weights, by domain; ONNX Runtime's optimiser writes the second."""
_PRODUCTS = frozenset({"Gemm", "MatMul", "FusedGemm", "FusedMatMul"})


def _kind(node: onnx.NodeProto, tensor: onnx.TensorProto) -> LayerKind:
    if node.op_type in _PRODUCTS:
        return LayerKind.PRODUCT
    is_depthwise = group_of(node) > 1 and len(tensor.dims) > 1 and tensor.dims[1] == 1
    return LayerKind.DEPTHWISE if is_depthwise else LayerKind.CONVOLUTION
