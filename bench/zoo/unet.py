"""U-Net: down, up, and long skips that keep large tensors alive.

Half the published channels, and padded convolutions, so that the mask has the image's size.

Source: Ronneberger et al. 2015, arXiv 1505.04597.
"""

import onnx

from bench.zoo.builder import NetworkBuilder

CHANNELS = (32, 64, 128, 256, 512)
"""At each level, the image's own first."""


def network(size: int = 256) -> onnx.ModelProto:
    """Return the segmentation network for `size` x `size` pixels."""
    net = NetworkBuilder(f"unet_{size}")
    x = net.input("image", 1, 3, size, size)
    skips: list[str] = []
    for channels in CHANNELS[:-1]:
        skips.append(_double_conv(net, x, channels))
        x = net.max_pool(skips[-1], 2, 2)
    x = _double_conv(net, x, CHANNELS[-1])
    for channels, skip in zip(reversed(CHANNELS[:-1]), reversed(skips), strict=True):
        x = _double_conv(net, net.concat([skip, net.up_conv(x, channels)]), channels)
    net.output(net.sigmoid(net.conv(x, 1)), "mask")
    return net.build()


def _double_conv(net: NetworkBuilder, x: str, channels: int) -> str:
    x = net.conv(x, channels, 3, activation="relu")
    return net.conv(x, channels, 3, activation="relu")
