"""DenseNet-121: every layer reads all before it in its block.

The batch normalisations read what many layers wrote, so they stay operators.

Source: Huang et al. 2016, arXiv 1608.06993.
"""

import onnx

from bench.zoo.builder import NetworkBuilder

GROWTH = 32
BLOCKS = (6, 12, 24, 16)
"""Layers of each block."""


def network(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels."""
    net = NetworkBuilder(f"densenet121_{size}")
    x = net.input("image", 1, 3, size, size)
    x = net.conv(x, 2 * GROWTH, 7, 2, padding=3, activation="relu")
    x = net.max_pool(x, 3, 2, padding=1)
    for index, num_layers in enumerate(BLOCKS):
        if index:
            x = net.batch_norm(x, activation="relu")
            x = net.average_pool(net.conv(x, net.shapes[x][1] // 2), 2, 2)
        for _ in range(num_layers):
            x = net.concat([x, _layer(net, x)])
    x = net.global_average_pool(net.batch_norm(x, activation="relu"))
    net.output(net.dense(net.reshape(x, 1, net.shapes[x][1]), classes), "logits")
    return net.build()


def _layer(net: NetworkBuilder, x: str) -> str:
    y = net.conv(net.batch_norm(x, activation="relu"), 4 * GROWTH, activation="relu")
    return net.conv(y, GROWTH, 3)
