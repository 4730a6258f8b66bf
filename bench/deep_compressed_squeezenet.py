"""SqueezeNet v1.0 as published by the authors of Deep Compression: real pruned weights.

The file: for each of 26 convolutions the number of its entries, 32 bits; then for each a
codebook of 256 32-bit floats, 32-bit biases, an index of 8 bits for each entry, and gaps of 4
bits, low half first. An entry of index 0 is a filler.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

from zoo.builder import NetworkBuilder

FILE = (
    Path(__file__).resolve().parents[2]
    / "shared/models/deep_compression/squeezenet_v1.0_deep_compression.net"
)
_FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
_POOLED = frozenset({3, 7})
"""Fires, from 0, that a pool follows; so does one the first convolution."""


def shapes() -> dict[str, tuple[int, int, int, int]]:
    """Return the shapes of the weights: outputs, inputs, height, width."""
    found = {"conv1": (96, 3, 7, 7)}
    channels = 96
    for number, (squeezed, expanded) in enumerate(_FIRES, 2):
        found[f"fire{number}/squeeze1x1"] = (squeezed, channels, 1, 1)
        found[f"fire{number}/expand1x1"] = (expanded, squeezed, 1, 1)
        found[f"fire{number}/expand3x3"] = (expanded, squeezed, 3, 3)
        channels = 2 * expanded
    found["conv10"] = (1000, channels, 1, 1)
    return found


def read(path: Path = FILE) -> dict[str, npt.NDArray[np.float32]]:
    """Return weights by name, and biases by name and `/bias`."""
    data = path.read_bytes()
    named = shapes()
    counts = np.frombuffer(data, "<u4", len(named))
    at = counts.nbytes
    tensors: dict[str, npt.NDArray[np.float32]] = {}
    for (name, shape), count in zip(named.items(), map(int, counts), strict=True):
        codebook = np.frombuffer(data, "<f4", 256, at)
        bias = np.frombuffer(data, "<f4", shape[0], at + codebook.nbytes)
        at += codebook.nbytes + bias.nbytes
        indices = np.frombuffer(data, np.uint8, count, at)
        pairs = np.frombuffer(data, np.uint8, -(-count // 2), at + count)
        at += count + pairs.size
        gaps = np.stack((pairs & 15, pairs >> 4), axis=1).reshape(-1)[:count].astype(np.intp)
        weights = np.zeros(int(np.prod(shape)), np.float32)
        weights[np.cumsum(gaps + 1) - 1] = codebook[indices]
        tensors[name] = weights.reshape(shape)
        tensors[f"{name}/bias"] = bias
    assert at == len(data), f"{path}: {len(data) - at} B are left over"
    return tensors


def network(tensors: dict[str, npt.NDArray[np.float32]], size: int = 227) -> onnx.ModelProto:
    """Return SqueezeNet v1.0 with these weights."""
    net = NetworkBuilder("squeezenet_v1.0")
    x = net.input("image", 1, 3, size, size)
    x = net.max_pool(net.conv(x, 96, 7, 2, padding="valid", activation="relu"), 3, 2, "valid")
    for number, (squeezed, expanded) in enumerate(_FIRES):
        x = net.conv(x, squeezed, activation="relu")
        one = net.conv(x, expanded, activation="relu")
        three = net.conv(x, expanded, 3, activation="relu")
        x = net.concat([one, three])
        if number + 1 in _POOLED:
            x = net.max_pool(x, 3, 2, "valid")
    scores = net.global_average_pool(net.conv(x, 1000, activation="relu"))
    net.output(net.softmax(net.reshape(scores, 1, 1000)), "classes")
    model = net.build()
    _replace_weights(model, list(tensors.values()))
    return model


def _replace_weights(model: onnx.ModelProto, arrays: list[npt.NDArray[np.float32]]) -> None:
    """Put weights and biases, in the order of the convolutions, in the place of the seeded."""
    by_name = {tensor.name: tensor for tensor in model.graph.initializer}
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    names = [name for node in convolutions for name in node.input[1:]]
    for name, array in zip(names, arrays, strict=True):
        assert tuple(by_name[name].dims) == array.shape
        by_name[name].CopyFrom(onnx.numpy_helper.from_array(array, name))
