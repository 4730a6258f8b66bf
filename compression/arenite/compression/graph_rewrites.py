"""Rewrites of an ONNX graph before compression: batch norms folded, channels removed.

A channel can be removed where one chain of operators, all of which map zeros to zeros, leads it to
one reader, a convolution or a matrix. Removing it is then the same as zeroing it; activations and
the arena shrink too.

Source: Li, Kadav, Durdanovic, Samet and Graf, Pruning filters for efficient ConvNets, ICLR 2017:
the channels whose filters have the least L1 norm go.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import onnx
import onnx.helper
import onnx.shape_inference
from numpy.typing import NDArray

from arenite.compression.constants import Array, array_of, constants_of, set_array
from arenite.planner.errors import ModelFormatError
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


Indices: TypeAlias = NDArray[np.intp]

_KEEPS_ZERO = frozenset(
    {
        "AveragePool", "Dropout", "Elu", "GlobalAveragePool", "GlobalMaxPool", "HardSwish",
        "Identity", "LeakyRelu", "MaxPool", "Relu", "Selu", "Tanh",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A model with fewer channels.

    Attributes:
        model: The smaller model.
        kept: The output channels retained, by the name of a convolution's weights.
        num_channels: Channels before, by the same name.
    """

    model: onnx.ModelProto
    kept: dict[str, Indices]
    num_channels: dict[str, int]


@dataclass(slots=True)
class _Chain:
    """The operators that the channels of a convolution reach.

    Attributes:
        depthwise: Depthwise convolutions on the way.
        reader: The operator that finally reads them.
        block: Matrix columns per channel; 0 for a convolution.
    """

    depthwise: list[onnx.NodeProto] = field(default_factory=list)
    reader: onnx.NodeProto | None = None
    block: int = 0


def remove_channels(model: onnx.ModelProto, density: float) -> Narrowed:
    """Return the model with a share of the output channels of each convolution that allows it.

    Args:
        model: Its batch norms folded.
        density: Share of the channels to retain, at least one each; above 0, at most 1.

    Raises:
        ValueError: The density is not in that range.
        ModelFormatError: The shapes of the model contradict each other.
    """
    if not 0 < density <= 1:
        raise ValueError(f"density={density} must be above 0 and at most 1")
    narrowed = onnx.ModelProto()
    narrowed.CopyFrom(model)
    editor = _Editor(narrowed)
    kept: dict[str, Indices] = {}
    num_channels: dict[str, int] = {}
    for node in narrowed.graph.node:
        chain = editor.chain(node)
        if chain is None:
            continue
        weights = editor.array(node.input[1])
        count = max(1, round(density * len(weights)))
        norms = np.abs(weights).reshape(len(weights), -1).sum(axis=1, dtype=np.float64)
        staying = np.sort(np.argsort(-norms, kind="stable")[:count])
        if count < len(weights):
            kept[node.input[1]], num_channels[node.input[1]] = staying, len(weights)
            editor.narrow(node, chain, staying)
    del narrowed.graph.value_info[:]
    return Narrowed(narrowed, kept, num_channels)


class _Editor:
    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self._tensors = constants_of(graph)
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._outputs = {value.name for value in graph.output}
        try:
            inferred = onnx.shape_inference.infer_shapes(model).graph
        except (RuntimeError, TypeError, ValueError, onnx.shape_inference.InferenceError) as error:
            text = " ".join(str(error).split())
            raise ModelFormatError(f"inconsistent shapes: {text}") from error
        self._shapes = {
            value.name: [each.dim_value for each in value.type.tensor_type.shape.dim]
            for value in (*inferred.input, *inferred.value_info)
        }

    def array(self, name: str) -> Array:
        return array_of(name, self._tensors[name])

    def chain(self, node: onnx.NodeProto) -> _Chain | None:
        """Return where the channels of a convolution go; None if none may be removed."""
        if node.op_type != "Conv" or group_of(node) != 1 or not self._owns(node):
            return None
        num_channels = self._dims(node)[0]
        chain = _Chain()
        while True:
            readers = self._readers.get(node.output[0], [])
            if len(readers) != 1 or node.output[0] in self._outputs:
                return None
            source, node = node.output[0], readers[0]
            if node.op_type in _KEEPS_ZERO and len(list(filter(None, node.output))) == 1:
                continue
            if node.op_type == "Conv" and source == node.input[0] and self._owns(node):
                if group_of(node) == 1:
                    chain.reader = node
                    return chain if self._dims(node)[1] == num_channels else None
                if group_of(node) == num_channels == self._dims(node)[0]:
                    chain.depthwise.append(node)
                    continue
            if node.op_type == "Flatten" and _number(node, "axis", 1) == 1:
                return self._into_matrix(chain, source, node, num_channels)
            return None

    def _into_matrix(
        self, chain: _Chain, source: str, flatten: onnx.NodeProto, num_channels: int
    ) -> _Chain | None:
        readers = self._readers.get(flatten.output[0], [])
        shape = self._shapes.get(source, [])
        if len(readers) != 1 or flatten.output[0] in self._outputs or len(shape) < 2:
            return None
        chain.reader = readers[0]
        is_product = chain.reader.op_type in ("Gemm", "MatMul")
        if (
            not is_product
            or chain.reader.input[0] != flatten.output[0]
            or _number(chain.reader, "transA", 0)
            or not self._owns(chain.reader)
        ):
            return None
        chain.block = int(np.prod(shape[2:]))
        weights = self._dims(chain.reader)
        inputs = weights[1] if _number(chain.reader, "transB", 0) else weights[0]
        return chain if chain.block and inputs == num_channels * chain.block else None

    def narrow(self, node: onnx.NodeProto, chain: _Chain, kept: Indices) -> None:
        """Retain only some of the channels of a convolution."""
        assert chain.reader is not None
        for each in (node, *chain.depthwise):
            for name in filter(None, each.input[1:3]):
                self._replace(name, self.array(name)[kept])
        for each in chain.depthwise:
            for attribute in each.attribute:
                if attribute.name == "group":
                    attribute.i = len(kept)
        weights = self.array(chain.reader.input[1])
        if not chain.block:
            self._replace(chain.reader.input[1], weights[:, kept])
            return
        columns = (kept[:, None] * chain.block + np.arange(chain.block)).reshape(-1)
        axis = 1 if _number(chain.reader, "transB", 0) else 0
        self._replace(chain.reader.input[1], np.take(weights, columns, axis=axis))

    def _owns(self, node: onnx.NodeProto) -> bool:
        """Tell whether the weights and the bias of an operator are its own, known and fit."""
        names = [name for name in node.input[1:3] if name]
        if not names or not all(
            name in self._tensors and len(self._readers[name]) == 1 for name in names
        ):
            return False
        weights, *bias = self._dims(node), *(list(self._tensors[n].dims) for n in names[1:])
        if node.op_type == "Conv":
            return len(weights) > 2 and all(each == weights[:1] for each in bias)
        return len(weights) == 2

    def _dims(self, node: onnx.NodeProto) -> list[int]:
        """Return the shape of an operator's weights."""
        return list(self._tensors[node.input[1]].dims)

    def _replace(self, name: str, array: Array) -> None:
        set_array(self._tensors[name], array)


def group_of(node: onnx.NodeProto) -> int:
    return _number(node, "group", 1)


def _number(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(each.i) for each in node.attribute if each.name == name), default)
