"""VGG-16: 138 million weights, three quarters of them in one matrix.

Not among `NETWORKS`: it takes half a gigabyte.

Source: Simonyan and Zisserman 2015, arXiv 1409.1556, configuration D.
"""

import onnx

from bench.zoo.builder import NetworkBuilder

CHANNELS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
UNITS = (4096, 4096)


def network(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier of images of `size` x `size` pixels."""
    net = NetworkBuilder(f"vgg16_{size}")
    x = net.input("image", 1, 3, size, size)
    for block in CHANNELS:
        for channels in block:
            x = net.conv(x, channels, 3, activation="relu")
        x = net.max_pool(x, 2, 2, "valid")
    _, channels, height, width = net.shapes[x]
    x = net.reshape(x, 1, channels * height * width)
    for units in UNITS:
        x = net.activate(net.dense(x, units), "relu")
    net.output(net.dense(x, classes), "scores")
    return net.build()
