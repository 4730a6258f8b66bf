"""DeepLab v3 for mobiles: MobileNet v2 at half width, dilated, with image pooling.

Layer by layer the public TFLite model for GPUs (deeplabv3_257_mv_gpu), but for one
resize from 33 x 33 to 33 x 33, which computes nothing.

Source: Chen et al. 2017, arXiv 1706.05587; the backbone in `zoo.mobilenet_v2`.
"""

import onnx

from bench.zoo import mobilenet_v2
from bench.zoo.builder import NetworkBuilder

NUM_CLASSES = 21


def network(size: int = 257) -> onnx.ModelProto:
    """Return the segmentation network for `size` x `size` pixels."""
    net = NetworkBuilder(f"deeplab_v3_0.5_{size}")
    image = net.input("image", 1, 3, size, size)
    x = mobilenet_v2.features(net, image, width=0.5, output_stride=8)
    _, _, height, width = net.shapes[x]
    pooled = net.conv(net.global_average_pool(x), 256, activation="relu")
    pooled = net.resize(pooled, height, width)
    x = net.concat([pooled, net.conv(x, 256, activation="relu")])
    x = net.conv(x, 256, activation="relu")
    x = net.conv(x, NUM_CLASSES)
    net.output(net.resize(x, size, size), "scores")
    return net.build()
