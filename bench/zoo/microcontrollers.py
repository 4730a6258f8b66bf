"""Networks for microcontrollers whose RAM others publish: blocks of MCUNet, an autoencoder."""

from collections.abc import Sequence
from typing import NamedTuple

import onnx

from bench.zoo.builder import NetworkBuilder


class Block(NamedTuple):
    """An expansion, a depthwise window, and a projection.

    Attributes:
        outputs: Channels of the result.
        expansion: Channels under the window, in multiples of those of the operand.
    """

    outputs: int
    expansion: int
    stride: int
    kernel: int = 3


_WIDTHS = (5, 8, 11, 22, 33, 56, 112)
"""Channels of MobileNet v2 at a width of 0.35, rounded down."""
MSF_MOBILENET: Sequence[Block] = (
    Block(5, 1, 1),
    *(
        Block(channels, 6, stride if index == 0 else 1)
        for channels, count, stride in zip(
            _WIDTHS[1:], (2, 3, 4, 3, 3, 1), (2, 2, 2, 1, 2, 1), strict=True
        )
        for index in range(count)
    ),
)
VWW: Sequence[Block] = (
    Block(16, 6, 2), Block(16, 3, 1), Block(16, 3, 1), Block(24, 3, 2, 7), Block(24, 6, 1),
    Block(24, 5, 1, 5), Block(40, 6, 2, 7), Block(40, 6, 1, 7), Block(48, 6, 1), Block(48, 4, 1),
    Block(96, 5, 2, 5), Block(96, 5, 1), Block(96, 4, 1), Block(160, 3, 1, 7),
)  # fmt: skip
IMAGENET: Sequence[Block] = (
    Block(16, 3, 2, 7), Block(16, 5, 1), Block(16, 5, 1, 7), Block(16, 4, 1, 5),
    Block(24, 5, 2, 5), Block(24, 5, 1, 5), Block(24, 5, 1, 5), Block(40, 5, 2),
    Block(40, 6, 1, 7), Block(40, 4, 1, 5), Block(48, 5, 1, 5), Block(48, 5, 1, 7),
    Block(48, 5, 1), Block(96, 6, 2), Block(96, 5, 1, 7), Block(96, 4, 1), Block(160, 5, 1, 7),
)  # fmt: skip
"""Blocks of MCUNet for visual wake words at 80 x 80 and for ImageNet at 176 x 176."""


def chained(
    size: int, blocks: Sequence[Block], first: int, *, narrowed: int = 0, last: int = 0
) -> onnx.ModelProto:
    """Return a chain of blocks without sums, the last image its output.

    Layers are those that msf-CNN plans (github.com/TinyPART/msf-CNN, `analysis_optimization.py`).

    Args:
        size: Rows and columns of the image.
        first: Channels of the first convolution.
        narrowed: Channels to which a depthwise window and a projection narrow these; 0 for none.
        last: Channels of a last convolution, 0 for none.
    """
    net = NetworkBuilder(f"chained_{size}")
    x = _stem(net, size, first, narrowed)
    for block in blocks:
        x = _block(net, x, block)
    if last:
        x = net.conv(x, last, activation="relu6")
    net.output(x, "features")
    return net.build()


def mcunet(size: int, blocks: Sequence[Block], classes: int) -> onnx.ModelProto:
    """Return a classifier of the shape of MCUNet.

    Source: Lin et al. 2020, arXiv 2007.10319; layers as in msf-CNN's `analysis_optimization.py`,
    with sums where a block keeps shape, as in MobileNet v2.
    """
    net = NetworkBuilder(f"mcunet_{size}")
    x = _stem(net, size, 16, 8)
    for block in blocks:
        y = _block(net, x, block)
        x = net.add(x, y) if net.shapes[x] == net.shapes[y] else y
    x = net.global_average_pool(x)
    net.output(net.dense(net.reshape(x, 1, net.shapes[x][1]), classes), "scores")
    return net.build()


def _stem(net: NetworkBuilder, size: int, first: int, narrowed: int) -> str:
    x = net.conv(net.input("image", 1, 3, size, size), first, 3, 2, activation="relu6")
    return net.conv(net.depthwise(x, activation="relu6"), narrowed) if narrowed else x


def _block(net: NetworkBuilder, x: str, block: Block) -> str:
    wide = block.expansion * net.shapes[x][1]
    x = net.conv(x, wide, activation="relu6")
    x = net.conv(x, wide, block.kernel, block.stride, groups=wide, activation="relu6")
    return net.conv(x, block.outputs)


def anomaly_detector(features: int = 640, units: int = 128) -> onnx.ModelProto:
    """Return an autoencoder of sounds of a machine, normalisation folded.

    Source: anomaly detection of MLPerf Tiny (github.com/mlcommons/tiny).
    """
    net = NetworkBuilder(f"anomaly_detector_{features}")
    x = net.input("sound", 1, features)
    for wide in (*[units] * 4, 8, *[units] * 4):
        x = net.activate(net.dense(x, wide), "relu")
    net.output(net.dense(x, features), "again")
    return net.build()
