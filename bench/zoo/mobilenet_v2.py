"""MobileNet v2: inverted residuals with linear bottlenecks.

Source: Sandler et al. 2018, arXiv 1801.04381; the head as in the TFLite files.
"""

import onnx

from bench.zoo.builder import NetworkBuilder

STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, number of blocks and stride of the first, by stage."""


def network(
    size: int = 224, classes: int = 1001, width: float = 1.0, divisor: int = 1
) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels.

    Args:
        size: Rows and columns of the image.
        classes: Number of classes.
        width: What numbers of channels are multiplied by.
        divisor: What they are rounded to a multiple of.
    """
    net = NetworkBuilder(f"mobilenet_v2_{width}_{size}")
    x = features(net, net.input("image", 1, 3, size, size), width, divisor=divisor)
    x = net.conv(x, 1280, activation="relu6")
    x = net.conv(net.global_average_pool(x), classes)
    net.output(net.softmax(net.reshape(x, 1, classes)), "probabilities")
    return net.build()


def features(
    net: NetworkBuilder, x: str, width: float = 1.0, output_stride: int = 32, divisor: int = 1
) -> str:
    """Return the feature map after the last bottleneck.

    Where striding would pass `output_stride`, the blocks after it dilate instead.
    """
    x = net.conv(x, _rounded(32 * width, divisor), 3, 2, activation="relu6")
    reached, dilation = 2, 1
    for expansion, channels, num_blocks, first_stride in STAGES:
        wide = _rounded(channels * width, divisor)
        for index in range(num_blocks):
            stride = first_stride if index == 0 else 1
            if reached * stride <= output_stride:
                x = _bottleneck(net, x, wide, expansion, stride, dilation)
                reached *= stride
            else:
                x = _bottleneck(net, x, wide, expansion, 1, dilation)
                dilation *= stride
    return x


def _rounded(channels: float, divisor: int) -> int:
    """Return a multiple of a number near so many channels, not below nine tenths of them."""
    if divisor == 1:
        return int(channels)
    found = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * channels else found


def _bottleneck(
    net: NetworkBuilder, x: str, channels: int, expansion: int, stride: int, dilation: int
) -> str:
    in_channels = net.shapes[x][1]
    y = x
    if expansion > 1:
        y = net.conv(y, expansion * in_channels, activation="relu6")
    y = net.depthwise(y, stride, dilation=dilation, activation="relu6")
    y = net.conv(y, channels)
    return net.add(x, y) if stride == 1 and in_channels == channels else y
