"""Inception v3: parallel branches of factorised convolutions.

Source: Szegedy et al. 2015, arXiv 1512.00567; names and head as in TensorFlow's slim.
"""

import onnx

from bench.zoo.builder import NetworkBuilder, Padding, Size


def network(size: int = 299, classes: int = 1001) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels, without the auxiliary head."""
    net = NetworkBuilder(f"inception_v3_{size}")
    x = _stem(net, net.input("image", 1, 3, size, size))
    for pool_channels in (32, 64, 64):
        x = _mixed_5(net, x, pool_channels)
    x = _mixed_6a(net, x)
    for channels in (128, 160, 160, 192):
        x = _mixed_6(net, x, channels)
    x = _mixed_7a(net, x)
    for _ in range(2):
        x = _mixed_7(net, x)
    x = net.conv(net.global_average_pool(x), classes)
    net.output(net.softmax(net.reshape(x, 1, classes)), "probabilities")
    return net.build()


def _conv(
    net: NetworkBuilder,
    x: str,
    channels: int,
    kernel: Size = 1,
    stride: int = 1,
    padding: Padding = "same",
) -> str:
    return net.conv(x, channels, kernel, stride, padding=padding, activation="relu")


def _stem(net: NetworkBuilder, x: str) -> str:
    x = _conv(net, x, 32, 3, 2, "valid")
    x = _conv(net, x, 32, 3, 1, "valid")
    x = net.max_pool(_conv(net, x, 64, 3), 3, 2, "valid")
    x = _conv(net, _conv(net, x, 80), 192, 3, 1, "valid")
    return net.max_pool(x, 3, 2, "valid")


def _mixed_5(net: NetworkBuilder, x: str, pool_channels: int) -> str:
    """Return the block at 35 x 35."""
    pointwise = _conv(net, x, 64)
    large = _conv(net, _conv(net, x, 48), 64, 5)
    double = _conv(net, _conv(net, _conv(net, x, 64), 96, 3), 96, 3)
    pooled = _conv(net, net.average_pool(x, 3, 1), pool_channels)
    return net.concat([pointwise, large, double, pooled])


def _mixed_6a(net: NetworkBuilder, x: str) -> str:
    """Return the block from 35 x 35 to 17 x 17."""
    single = _conv(net, x, 384, 3, 2, "valid")
    double = _conv(net, _conv(net, _conv(net, x, 64), 96, 3), 96, 3, 2, "valid")
    return net.concat([single, double, net.max_pool(x, 3, 2, "valid")])


def _mixed_6(net: NetworkBuilder, x: str, channels: int) -> str:
    """Return the block at 17 x 17: 7 x 7 as rows and columns."""
    row, column = (1, 7), (7, 1)
    pointwise = _conv(net, x, 192)
    single = _conv(net, _conv(net, _conv(net, x, channels), channels, row), 192, column)
    double = _conv(net, x, channels)
    for kernel in (column, row, column):
        double = _conv(net, double, channels, kernel)
    double = _conv(net, double, 192, row)
    pooled = _conv(net, net.average_pool(x, 3, 1), 192)
    return net.concat([pointwise, single, double, pooled])


def _mixed_7a(net: NetworkBuilder, x: str) -> str:
    """Return the block from 17 x 17 to 8 x 8."""
    single = _conv(net, _conv(net, x, 192), 320, 3, 2, "valid")
    double = _conv(net, _conv(net, _conv(net, x, 192), 192, (1, 7)), 192, (7, 1))
    double = _conv(net, double, 192, 3, 2, "valid")
    return net.concat([single, double, net.max_pool(x, 3, 2, "valid")])


def _mixed_7(net: NetworkBuilder, x: str) -> str:
    """Return the block at 8 x 8, whose inner branches part once more."""
    pointwise = _conv(net, x, 320)
    single = _parted(net, _conv(net, x, 384))
    double = _parted(net, _conv(net, _conv(net, x, 448), 384, 3))
    pooled = _conv(net, net.average_pool(x, 3, 1), 192)
    return net.concat([pointwise, single, double, pooled])


def _parted(net: NetworkBuilder, x: str) -> str:
    return net.concat([_conv(net, x, 384, (1, 3)), _conv(net, x, 384, (3, 1))])
