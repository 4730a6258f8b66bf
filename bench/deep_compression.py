"""Networks of Deep Compression: SqueezeNet's published weights, and stated shapes of four others.

The file of SqueezeNet v1.0: for each of 26 convolutions the number of its entries, 32 bits; then
for each a codebook of 256 32-bit floats, 32-bit biases, an index of 8 bits for each entry, and
gaps of 4 bits, low half first. An entry of index 0 is a filler. The four others are of Han, Mao
and Dally, Deep Compression, ICLR 2016, tables 1 to 5.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

from arenite.compression import mask_by_density, share
from bench.zoo.builder import NetworkBuilder

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


@dataclass(frozen=True, slots=True)
class PublishedLayer:
    """A layer.

    Attributes:
        name: As the paper has it.
        shape: Outputs first.
        kept: Per cent of its weights.
        bits: Of a shared weight.
    """

    name: str
    shape: tuple[int, ...]
    kept: float
    bits: int

    @property
    def num_weights(self) -> int:
        """How many there are."""
        return int(np.prod(self.shape))

    def weights(self, seed: int) -> npt.NDArray[np.float32]:
        """Return normal random weights, pruned and shared as the layer was."""
        random = np.random.default_rng(seed)
        dense = random.standard_normal(self.shape, np.float32)
        mask = mask_by_density(dense, self.kept / 100)
        return share(dense, self.bits, mask=mask).restore()


@dataclass(frozen=True, slots=True)
class PublishedNetwork:
    """A network.

    Attributes:
        rate: How many times smaller it was, in the paper.
        layers: In their order.
    """

    rate: float
    layers: tuple[PublishedLayer, ...]


def _layers(*rows: tuple[str, tuple[int, ...], float, int]) -> tuple[PublishedLayer, ...]:
    return tuple(PublishedLayer(*row) for row in rows)


PUBLISHED = {
    "LeNet-300-100": PublishedNetwork(
        40,
        _layers(("ip1", (300, 784), 8, 6), ("ip2", (100, 300), 9, 6), ("ip3", (10, 100), 26, 6)),
    ),
    "LeNet-5": PublishedNetwork(
        39,
        _layers(
            ("conv1", (20, 1, 5, 5), 66, 8),
            ("conv2", (50, 20, 5, 5), 12, 8),
            ("ip1", (500, 800), 8, 5),
            ("ip2", (10, 500), 19, 5),
        ),
    ),
    "AlexNet": PublishedNetwork(
        35,
        _layers(
            ("conv1", (96, 3, 11, 11), 84, 8),
            ("conv2", (256, 48, 5, 5), 38, 8),
            ("conv3", (384, 256, 3, 3), 35, 8),
            ("conv4", (384, 192, 3, 3), 37, 8),
            ("conv5", (256, 192, 3, 3), 37, 8),
            ("fc6", (4096, 9216), 9, 5),
            ("fc7", (4096, 4096), 9, 5),
            ("fc8", (1000, 4096), 25, 5),
        ),
    ),
    "VGG-16": PublishedNetwork(
        49,
        _layers(
            ("conv1_1", (64, 3, 3, 3), 58, 8),
            ("conv1_2", (64, 64, 3, 3), 22, 8),
            ("conv2_1", (128, 64, 3, 3), 34, 8),
            ("conv2_2", (128, 128, 3, 3), 36, 8),
            ("conv3_1", (256, 128, 3, 3), 53, 8),
            ("conv3_2", (256, 256, 3, 3), 24, 8),
            ("conv3_3", (256, 256, 3, 3), 42, 8),
            ("conv4_1", (512, 256, 3, 3), 32, 8),
            ("conv4_2", (512, 512, 3, 3), 27, 8),
            ("conv4_3", (512, 512, 3, 3), 34, 8),
            ("conv5_1", (512, 512, 3, 3), 35, 8),
            ("conv5_2", (512, 512, 3, 3), 29, 8),
            ("conv5_3", (512, 512, 3, 3), 36, 8),
            ("fc6", (4096, 25088), 4, 5),
            ("fc7", (4096, 4096), 4, 5),
            ("fc8", (1000, 4096), 23, 5),
        ),
    ),
}
