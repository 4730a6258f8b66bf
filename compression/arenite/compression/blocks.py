"""Products whose weights are stored in blocks of 4 or 8 bits, as ONNX Runtime's MatMulNBits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
from numpy.typing import NDArray

from arenite.compression.constants import array_of, constants_of, drop_unused
from arenite.compression.errors import NoLayerError
from arenite.compression.onnx_model import FEWEST_WEIGHTS, OnnxModel
from arenite.planner.importers.onnx import normal_domain

BLOCK_LENGTHS = (16, 32, 64, 128, 256)
"""Weights of a block, which share a scale."""
BLOCK_BITS = (4, 8)
"""Bits of a weight."""

_DOMAIN = "com.microsoft"


@dataclass(frozen=True, slots=True)
class BlockLayer:
    """Weights that were stored in blocks.

    Attributes:
        name: That of the initialiser, or of the output of a Constant node.
        num_weights: How many they are.
        num_bytes: Of codes and scales, a scale taking two.
        error: Squared error relative to the weights.
    """

    name: str
    num_weights: int
    num_bytes: int
    error: float


def with_blocks(
    source: OnnxModel, bits: int, length: int
) -> tuple[onnx.ModelProto, tuple[BlockLayer, ...]]:
    """Return a model whose products take weights in blocks, and which weights they are.

    MatMul and Gemm of a constant matrix of 512 or more 32-bit floats become MatMulNBits, and
    look-ups of its rows GatherBlockQuantized where these are whole blocks; both of one table share
    its codes. The weight of a block that is furthest from 0 is kept to the precision of the scale,
    of 16 bits.

    Args:
        source: The model.
        bits: 4 or 8.
        length: Weights of a block along the inputs: 16, 32, 64, 128 or 256.

    Raises:
        NoLayerError: It has no such product.
    """
    model = onnx.ModelProto()
    model.CopyFrom(source.original())
    tensors = constants_of(model.graph)
    turned = _turned(model.graph, tensors)
    made: dict[tuple[str, bool], tuple[str, str]] = {}
    found: dict[str, BlockLayer] = {}
    for node in [*model.graph.node]:
        read = _weights_read(node, tensors, turned, length)
        if read is None:
            continue
        name, is_transposed = read
        weights = array_of(name, tensors[name])
        if not is_transposed:
            weights = weights.T
        if read not in made:
            codes, scales, error = _coded(weights, bits, length)
            suffix = "/rows" if is_transposed else "/columns"
            names = f"{name}{suffix}/codes", f"{name}{suffix}/scales"
            made[read] = names
            for each, array in zip(names, (codes, scales), strict=True):
                model.graph.initializer.append(onnx.numpy_helper.from_array(array, each))
            found[name] = BlockLayer(name, weights.size, codes.nbytes + 2 * scales.size, error)
        if node.op_type == "Gather":
            _replace_gather(model.graph, node, made[read], weights.shape, bits, length)
        else:
            _replace(node, made[read], weights.shape, bits, length)
    if not found:
        raise NoLayerError(
            "no layer to store in blocks: no Gemm or MatMul of the main graph has a constant "
            f"matrix of {FEWEST_WEIGHTS} or more 32-bit floats on its right"
        )
    if all(each.domain != _DOMAIN for each in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
    still = {name for node in model.graph.node for name in node.input}
    still.update(value.name for value in model.graph.output)
    for node in [*model.graph.node]:
        if node.output[0] in turned.keys() - still:
            model.graph.node.remove(node)
    drop_unused(model.graph)
    return model, tuple(found.values())


def _turned(graph: onnx.GraphProto, tensors: dict[str, onnx.TensorProto]) -> dict[str, str]:
    """Return the constant matrices of which Transpose nodes make others, by their outputs."""
    return {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Transpose" and not normal_domain(node.domain)
        if node.input[0] in tensors and len(tensors[node.input[0]].dims) == 2
        if _attributes(node).get("perm", [1, 0]) == [1, 0]
    }


def _weights_read(
    node: onnx.NodeProto, tensors: dict[str, onnx.TensorProto], turned: dict[str, str], length: int
) -> tuple[str, bool] | None:
    """Return the weights that become blocks, if any, and whether their rows are outputs."""
    if normal_domain(node.domain) or node.op_type not in ("Gather", "Gemm", "MatMul"):
        return None
    name = node.input[0 if node.op_type == "Gather" else 1]
    weights = tensors.get(turned.get(name, name))
    if weights is None or len(weights.dims) != 2 or weights.data_type != onnx.TensorProto.FLOAT:
        return None
    if weights.dims[0] * weights.dims[1] < FEWEST_WEIGHTS:
        return None
    stated = _attributes(node)
    if node.op_type == "Gather":
        is_table = name not in turned and stated.get("axis", 0) == 0
        return (name, True) if is_table and weights.dims[1] % length == 0 else None
    if stated.get("transA", 0) or stated.get("alpha", 1.0) != 1.0 or stated.get("beta", 1.0) != 1:
        return None
    is_transposed = bool(stated.get("transB", 0)) is not (name in turned)
    if len(node.input) > 2 and node.input[2]:
        bias = tensors.get(node.input[2])
        outputs = weights.dims[0 if is_transposed else 1]
        if bias is None or list(bias.dims) != [outputs]:
            return None
    return turned.get(name, name), is_transposed


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


def _replace_gather(
    graph: onnx.GraphProto,
    node: onnx.NodeProto,
    names: tuple[str, str],
    shape: tuple[int, ...],
    bits: int,
    length: int,
) -> None:
    """Look up rows of the codes that a product has, seen as rows of bytes."""
    codes, scales = names
    views = []
    for name, width in ((codes, shape[1] * bits // 8), (scales, shape[1] // length)):
        view, size = f"{name}/table", f"{name}/table/shape"
        if all(view not in each.output for each in graph.node):
            array = np.array([shape[0], width], np.int64)
            graph.initializer.append(onnx.numpy_helper.from_array(array, size))
            graph.node.insert(0, onnx.helper.make_node("Reshape", [name, size], [view], view))
        views.append(view)
    node.CopyFrom(
        onnx.helper.make_node(
            "GatherBlockQuantized", [views[0], node.input[1], views[1]], list(node.output),
            name=node.name, domain=_DOMAIN, gather_axis=0, quantize_axis=1, bits=bits,
            block_size=length,
        )
    )  # fmt: skip


def _replace(
    node: onnx.NodeProto, names: tuple[str, str], shape: tuple[int, ...], bits: int, length: int
) -> None:
    bias = node.input[2] if len(node.input) > 2 else ""
    inputs = [node.input[0], *names, *(("", "", bias) if bias else ())]
    node.CopyFrom(
        onnx.helper.make_node(
            "MatMulNBits", inputs, list(node.output), name=node.name, domain=_DOMAIN,
            N=shape[0], K=shape[1], bits=bits, block_size=length,
        )
    )  # fmt: skip


def _coded(
    weights: NDArray[Any], bits: int, length: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32], float]:
    """Return codes and scales of rows of weights, and the squared error relative to them."""
    rows, inputs = weights.shape
    blocks = -(-inputs // length)
    padded = np.zeros((rows, blocks * length), np.float32)
    padded[:, :inputs] = weights
    grouped = padded.reshape(rows, blocks, length)
    furthest = np.argmax(np.abs(grouped), axis=2, keepdims=True)
    middle = 1 << (bits - 1)
    scales = np.take_along_axis(grouped, furthest, axis=2) / np.float32(-middle)
    with np.errstate(over="ignore"):
        narrow = scales.astype(np.float16).astype(np.float32)
    is_normal = (np.abs(narrow) >= np.finfo(np.float16).tiny) & np.isfinite(narrow)
    scales = np.where(is_normal, narrow, scales)
    steps = np.divide(grouped, scales, out=np.zeros_like(grouped), where=scales != 0)
    codes = np.clip(np.rint(steps) + middle, 0, 2 * middle - 1)
    distance = (codes - middle) * scales - grouped
    energy = float(np.sum(np.square(grouped, dtype=np.float64)))
    error = float(np.sum(np.square(distance, dtype=np.float64))) / energy if energy else 0.0
    packed = codes.astype(np.uint8)
    if bits == 4:
        packed = packed[..., ::2] | packed[..., 1::2] << 4
    return packed, scales[..., 0].reshape(-1).astype(np.float32), error
