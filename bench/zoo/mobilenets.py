"""MobileNet v1 and v2, and the networks on top of them."""

from collections.abc import Iterable

import onnx

from bench.zoo.builder import NetworkBuilder

V1_BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)
"""Channels and stride of each pair of convolutions."""


def mobilenet_v1(size: int = 224, width: float = 1.0, classes: int = 1001) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels, channels multiplied by `width`.

    MobileNet v1: depthwise convolutions between pointwise ones.

    Source: Howard et al. 2017, arXiv 1704.04861; the head as in the TFLite files.
    """
    net = NetworkBuilder(f"mobilenet_v1_{width}_{size}")
    x = _features_v1(net, net.input("image", 1, 3, size, size), V1_BLOCKS, width)
    x = net.conv(net.global_average_pool(x), classes)
    net.output(net.softmax(net.reshape(x, 1, classes)), "probabilities")
    return net.build()


def _features_v1(
    net: NetworkBuilder, x: str, blocks: Iterable[tuple[int, int]], width: float
) -> str:
    """Return the feature map after the first convolution and the blocks."""
    x = net.conv(x, int(32 * width), 3, 2, activation="relu6")
    for channels, stride in blocks:
        x = net.depthwise(x, stride, activation="relu6")
        x = net.conv(x, int(channels * width), activation="relu6")
    return x


V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, number of blocks and stride of the first, by stage."""


def mobilenet_v2(
    size: int = 224, classes: int = 1001, width: float = 1.0, divisor: int = 1
) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels.

    MobileNet v2: inverted residuals with linear bottlenecks.

    Source: Sandler et al. 2018, arXiv 1801.04381; the head as in the TFLite files.

    Args:
        size: Rows and columns of the image.
        classes: Number of classes.
        width: What numbers of channels are multiplied by.
        divisor: What they are rounded to a multiple of.
    """
    net = NetworkBuilder(f"mobilenet_v2_{width}_{size}")
    x = _features_v2(net, net.input("image", 1, 3, size, size), width, divisor=divisor)
    x = net.conv(x, 1280, activation="relu6")
    x = net.conv(net.global_average_pool(x), classes)
    net.output(net.softmax(net.reshape(x, 1, classes)), "probabilities")
    return net.build()


def _features_v2(
    net: NetworkBuilder, x: str, width: float = 1.0, output_stride: int = 32, divisor: int = 1
) -> str:
    """Return the feature map after the last bottleneck.

    Where striding would pass `output_stride`, the blocks after it dilate instead.
    """
    x = net.conv(x, _rounded(32 * width, divisor), 3, 2, activation="relu6")
    reached, dilation = 2, 1
    for expansion, channels, num_blocks, first_stride in V2_STAGES:
        wide = _rounded(channels * width, divisor)
        for index in range(num_blocks):
            stride = first_stride if index == 0 else 1
            if reached * stride <= output_stride:
                x = _bottleneck(net, x, wide, expansion, stride, dilation)
                reached *= stride
            else:
                x = _bottleneck(net, x, wide, expansion, 1, dilation)
                dilation *= stride
    return x


def _rounded(channels: float, divisor: int) -> int:
    """Return a multiple of a number near so many channels, not below nine tenths of them."""
    if divisor == 1:
        return int(channels)
    found = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * channels else found


def _bottleneck(
    net: NetworkBuilder, x: str, channels: int, expansion: int, stride: int, dilation: int
) -> str:
    in_channels = net.shapes[x][1]
    y = x
    if expansion > 1:
        y = net.conv(y, expansion * in_channels, activation="relu6")
    y = net.depthwise(y, stride, dilation=dilation, activation="relu6")
    y = net.conv(y, channels)
    return net.add(x, y) if stride == 1 and in_channels == channels else y


NUM_CLASSES = 21


def deeplab_v3(size: int = 257) -> onnx.ModelProto:
    """Return the segmentation network for `size` x `size` pixels.

    DeepLab v3 for mobiles: MobileNet v2 at half width, dilated, with image pooling.
    Layer by layer the public TFLite model for GPUs (deeplabv3_257_mv_gpu), but for one
    resize from 33 x 33 to 33 x 33, which computes nothing.

    Source: Chen et al. 2017, arXiv 1706.05587.
    """
    net = NetworkBuilder(f"deeplab_v3_0.5_{size}")
    image = net.input("image", 1, 3, size, size)
    x = _features_v2(net, image, width=0.5, output_stride=8)
    _, _, height, width = net.shapes[x]
    pooled = net.conv(net.global_average_pool(x), 256, activation="relu")
    pooled = net.resize(pooled, height, width)
    x = net.concat([pooled, net.conv(x, 256, activation="relu")])
    x = net.conv(x, 256, activation="relu")
    x = net.conv(x, NUM_CLASSES)
    net.output(net.resize(x, size, size), "scores")
    return net.build()


NUM_KEYPOINTS = 17
NUM_EDGES = 16


def posenet(height: int = 353, width: int = 257) -> onnx.ModelProto:
    """Return the pose network for `height` x `width` pixels.

    PoseNet: MobileNet v1 at 0.75 width, output stride 16, with the multi-person heads.
    The last two blocks keep stride 1 and 384 channels, as in the public checkpoints at 0.75;
    the heads are those of the TFLite model multi_person_mobilenet_v1_075_float. That file was
    not at hand: its outputs and its 5.0 MB of weights agree with what is built here.

    Source: Papandreou et al. 2018, arXiv 1803.08225.
    """
    net = NetworkBuilder(f"posenet_0.75_{height}x{width}")
    image = net.input("image", 1, 3, height, width)
    blocks = (*V1_BLOCKS[:-2], (512, 1), (512, 1))
    x = _features_v1(net, image, blocks, width=0.75)
    net.output(net.conv(x, NUM_KEYPOINTS), "heatmaps")
    net.output(net.conv(x, 2 * NUM_KEYPOINTS), "short_offsets")
    forward, backward = net.conv(x, 2 * NUM_EDGES), net.conv(x, 2 * NUM_EDGES)
    net.output(net.concat([forward, backward]), "mid_offsets")
    net.output(net.conv(x, 1), "segments")
    return net.build()
