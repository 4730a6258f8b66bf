"""Networks of the kinds that MediaPipe publishes, small: separable blocks with PReLU, anchors.

Not layer by layer: each has what is particular about its kind. Shortcuts pass through pools and
gain channels of zeros; padding is TensorFlow's, a pixel more at the end where it is odd; coarse
maps are interpolated and added to fine ones; the heads number their anchors by pixel.

Source: Zhang et al. 2020, arXiv 2006.10214 (hands); Kartynnik et al. 2019, arXiv 1907.06724
(faces).
"""

import onnx

from bench.zoo.blazeface import anchored, separable
from bench.zoo.builder import NetworkBuilder

NUM_POINTS = 468
"""Of a face mesh."""

_PALM_VALUES = 18
"""Of an anchor: a box and seven points."""


def palm_detection(size: int = 192) -> onnx.ModelProto:
    """Return a detector with anchors at three scales, joined by a pyramid."""
    net = NetworkBuilder(f"palm_detection_{size}")
    x = net.prelu(net.conv(net.input("image", 1, 3, size, size), 16, 5, 2))
    scales = []
    for channels in (32, 64, 96, 96):
        x = _block(net, x, channels, 2)
        x = _block(net, x, channels, 1)
        scales.append(x)
    _, fine, middle, coarse = scales
    middle = _merged(net, coarse, middle)
    fine = _merged(net, middle, fine)
    heads = ((fine, 2), (middle, 2), (coarse, 6))
    for name, values in (("regressors", _PALM_VALUES), ("classificators", 1)):
        net.output(net.concat([anchored(net, y, count, values) for y, count in heads]), name)
    return net.build()


def hand_landmark(size: int = 112) -> onnx.ModelProto:
    """Return a network of points: inverted residuals, and three dense heads on their mean."""
    net = NetworkBuilder(f"hand_landmark_{size}")
    x = net.conv(net.input("image", 1, 3, size, size), 16, 3, 2, activation="relu6")
    for channels, stride in ((16, 1), (24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1)):
        wide = net.conv(x, 4 * net.shapes[x][1], activation="relu6")
        y = net.conv(net.depthwise(wide, stride, activation="relu6"), channels)
        x = net.add(x, y) if net.shapes[x] == net.shapes[y] else y
    pooled = net.global_average_pool(x)
    flat = net.reshape(pooled, 1, net.shapes[pooled][1])
    net.output(net.dense(flat, 63), "landmarks")
    net.output(net.sigmoid(net.dense(flat, 1)), "presence")
    net.output(net.sigmoid(net.dense(flat, 1)), "handedness")
    return net.build()


def face_mesh(size: int = 96) -> onnx.ModelProto:
    """Return a network of points: blocks with PReLU, and a head that is convolved to one pixel."""
    net = NetworkBuilder(f"face_mesh_{size}")
    x = net.prelu(net.conv(net.input("image", 1, 3, size, size), 16, 3, 2))
    for channels in (16, 32, 64, 128, 128):
        x = _block(net, x, channels, 1)
        x = _block(net, x, channels, 2)
    heads = []
    for values in (3 * NUM_POINTS, 1):
        y = net.prelu(net.conv(x, 32))
        y = net.conv(y, values, net.shapes[y][2], padding="valid")
        heads.append(net.reshape(y, 1, values))
    net.output(heads[0], "mesh")
    net.output(net.sigmoid(heads[1]), "presence")
    return net.build()


def _block(net: NetworkBuilder, x: str, channels: int, stride: int) -> str:
    """Return a separable block with a PReLU."""
    return net.prelu(separable(net, x, channels, stride, activation=None))


def _merged(net: NetworkBuilder, coarse: str, fine: str) -> str:
    """Return the fine map with the coarse one, interpolated to its size, added."""
    _, channels, height, width = net.shapes[fine]
    up = net.prelu(net.conv(net.resize(coarse, height, width, corners=False), channels))
    return _block(net, net.add(up, fine), channels, 1)
