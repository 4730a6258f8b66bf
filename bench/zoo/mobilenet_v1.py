"""MobileNet v1: depthwise convolutions between pointwise ones.

Source: Howard et al. 2017, arXiv 1704.04861; the head as in the TFLite files.
"""

from collections.abc import Iterable

import onnx

from bench.zoo.builder import NetworkBuilder

BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)
"""Channels and stride of each pair of convolutions."""


def network(size: int = 224, width: float = 1.0, classes: int = 1001) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels, channels multiplied by `width`."""
    net = NetworkBuilder(f"mobilenet_v1_{width}_{size}")
    x = features(net, net.input("image", 1, 3, size, size), BLOCKS, width)
    x = net.conv(net.global_average_pool(x), classes)
    net.output(net.softmax(net.reshape(x, 1, classes)), "probabilities")
    return net.build()


def features(net: NetworkBuilder, x: str, blocks: Iterable[tuple[int, int]], width: float) -> str:
    """Return the feature map after the first convolution and the blocks."""
    x = net.conv(x, int(32 * width), 3, 2, activation="relu6")
    for channels, stride in blocks:
        x = net.depthwise(x, stride, activation="relu6")
        x = net.conv(x, int(channels * width), activation="relu6")
    return x
