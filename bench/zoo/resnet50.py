"""ResNet-50, version 1.5: the stride of a stage in its 3 x 3 convolution.

Source: He et al. 2015, arXiv 1512.03385.
"""

import onnx

from bench.zoo.builder import NetworkBuilder

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Inner channels and number of blocks, by stage."""


def network(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels."""
    net = NetworkBuilder(f"resnet50_{size}")
    x = net.input("image", 1, 3, size, size)
    x = net.conv(x, 64, 7, 2, padding=3, activation="relu")
    x = net.max_pool(x, 3, 2, padding=1)
    for stage, (channels, num_blocks) in enumerate(STAGES):
        for index in range(num_blocks):
            x = _block(net, x, channels, 2 if stage and not index else 1)
    x = net.global_average_pool(x)
    net.output(net.dense(net.reshape(x, 1, net.shapes[x][1]), classes), "logits")
    return net.build()


def _block(net: NetworkBuilder, x: str, channels: int, stride: int) -> str:
    y = net.conv(x, channels, activation="relu")
    y = net.conv(y, channels, 3, stride, padding=1, activation="relu")
    y = net.conv(y, 4 * channels)
    if net.shapes[x] != net.shapes[y]:
        x = net.conv(x, 4 * channels, 1, stride, padding=0)
    return net.add(x, y, activation="relu")
