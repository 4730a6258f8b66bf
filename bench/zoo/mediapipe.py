"""BlazeFace, and networks of the kinds that MediaPipe publishes: separable blocks, anchors.

Only BlazeFace is built layer by layer; each other network has what is particular about its kind.
Shortcuts pass through pools and gain channels of zeros; padding is TensorFlow's, a pixel more at
the end where it is odd; coarse maps are interpolated and added to fine ones; the heads number
their anchors by pixel.

Source: Zhang et al. 2020, arXiv 2006.10214 (hands); Kartynnik et al. 2019, arXiv 1907.06724
(faces).
"""

import onnx

from bench.zoo.builder import Activation, NetworkBuilder

_FINE = ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), *((n, 1) for n in range(56, 96, 8)))
"""Channels and stride of the blocks up to 16 x 16."""

_COARSE = ((96, 2), *[(96, 1)] * 4)
"""Those up to 8 x 8."""

_FACE_VALUES = 16
"""Of an anchor: a box and six points."""


def blazeface(size: int = 128) -> onnx.ModelProto:
    """Return the detector for the front camera of `size` x `size` pixels, with 896 anchors.

    Layer by layer MediaPipe's face_detection_front. The heads are transposed before they are
    flattened, because anchors are numbered by pixel, and ours are (N, C, H, W).

    Source: Bazarevsky et al. 2019, arXiv 1907.05047.
    """
    net = NetworkBuilder(f"blazeface_front_{size}")
    x = net.conv(net.input("image", 1, 3, size, size), 24, 5, 2, activation="relu")
    for channels, stride in _FINE:
        x = _separable(net, x, channels, stride)
    fine = x
    for channels, stride in _COARSE:
        x = _separable(net, x, channels, stride)
    scores = [_anchored(net, fine, 2, 1), _anchored(net, x, 6, 1)]
    boxes = [_anchored(net, fine, 2, _FACE_VALUES), _anchored(net, x, 6, _FACE_VALUES)]
    net.output(net.concat(boxes), "regressors")
    net.output(net.concat(scores), "classificators")
    return net.build()


def _separable(
    net: NetworkBuilder, x: str, channels: int, stride: int, activation: Activation | None = "relu"
) -> str:
    """Add a separable convolution to its input, pooled and padded to fit."""
    y = net.conv(net.depthwise(x, stride), channels)
    if stride > 1:
        x = net.max_pool(x, stride, stride)
    if net.shapes[x][1] < channels:
        x = net.pad_channels(x, channels)
    return net.add(x, y, activation=activation)


def _anchored(net: NetworkBuilder, x: str, num_anchors: int, values: int) -> str:
    """Return `values` for each of the anchors at each pixel, (1, anchors, values)."""
    _, _, height, width = net.shapes[x]
    y = net.transpose(net.conv(x, num_anchors * values), 0, 2, 3, 1)
    return net.reshape(y, 1, height * width * num_anchors, values)


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
        net.output(net.concat([_anchored(net, y, count, values) for y, count in heads]), name)
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
    return net.prelu(_separable(net, x, channels, stride, activation=None))


def _merged(net: NetworkBuilder, coarse: str, fine: str) -> str:
    """Return the fine map with the coarse one, interpolated to its size, added."""
    _, channels, height, width = net.shapes[fine]
    up = net.prelu(net.conv(net.resize(coarse, height, width, corners=False), channels))
    return _block(net, net.add(up, fine), channels, 1)
