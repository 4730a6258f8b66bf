"""BlazeFace: the public detector for the front camera, 896 anchors.

Layer by layer MediaPipe's face_detection_front. The heads are transposed before they are
flattened, because anchors are numbered by pixel, and ours are (N, C, H, W).

Source: Bazarevsky et al. 2019, arXiv 1907.05047.
"""

import onnx

from bench.zoo.builder import Activation, NetworkBuilder

FINE = ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), *((n, 1) for n in range(56, 96, 8)))
"""Channels and stride of the blocks up to 16 x 16."""

COARSE = ((96, 2), *[(96, 1)] * 4)
"""Those up to 8 x 8."""

NUM_COORDINATES = 16
"""Of an anchor: a box and six points."""


def network(size: int = 128) -> onnx.ModelProto:
    """Return the detector for `size` x `size` pixels."""
    net = NetworkBuilder(f"blazeface_front_{size}")
    x = net.conv(net.input("image", 1, 3, size, size), 24, 5, 2, activation="relu")
    for channels, stride in FINE:
        x = separable(net, x, channels, stride)
    fine = x
    for channels, stride in COARSE:
        x = separable(net, x, channels, stride)
    scores = [anchored(net, fine, 2, 1), anchored(net, x, 6, 1)]
    boxes = [anchored(net, fine, 2, NUM_COORDINATES), anchored(net, x, 6, NUM_COORDINATES)]
    net.output(net.concat(boxes), "regressors")
    net.output(net.concat(scores), "classificators")
    return net.build()


def separable(
    net: NetworkBuilder, x: str, channels: int, stride: int, activation: Activation | None = "relu"
) -> str:
    """Add a separable convolution to its input, pooled and padded to fit."""
    y = net.conv(net.depthwise(x, stride), channels)
    if stride > 1:
        x = net.max_pool(x, stride, stride)
    if net.shapes[x][1] < channels:
        x = net.pad_channels(x, channels)
    return net.add(x, y, activation=activation)


def anchored(net: NetworkBuilder, x: str, num_anchors: int, values: int) -> str:
    """Return `values` for each of the anchors at each pixel, (1, anchors, values)."""
    _, _, height, width = net.shapes[x]
    y = net.transpose(net.conv(x, num_anchors * values), 0, 2, 3, 1)
    return net.reshape(y, 1, height * width * num_anchors, values)
