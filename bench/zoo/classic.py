"""Classic networks of plain, factorised, residual, dense and U-shaped blocks."""

import onnx

from bench.zoo.builder import NetworkBuilder, Padding, Size

VGG16_CHANNELS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
UNITS = (4096, 4096)


def vgg16(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier of images of `size` x `size` pixels.

    VGG-16: 138 million weights, three quarters of them in one matrix.
    Not among `NETWORKS`: it takes half a gigabyte.

    Source: Simonyan and Zisserman 2015, arXiv 1409.1556, configuration D.
    """
    net = NetworkBuilder(f"vgg16_{size}")
    x = net.input("image", 1, 3, size, size)
    for block in VGG16_CHANNELS:
        for channels in block:
            x = net.conv(x, channels, 3, activation="relu")
        x = net.max_pool(x, 2, 2, "valid")
    _, channels, height, width = net.shapes[x]
    x = net.reshape(x, 1, channels * height * width)
    for units in UNITS:
        x = net.activate(net.dense(x, units), "relu")
    net.output(net.dense(x, classes), "scores")
    return net.build()


RESNET50_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Inner channels and number of blocks, by stage."""


def resnet50(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels.

    ResNet-50, version 1.5: the stride of a stage in its 3 x 3 convolution.

    Source: He et al. 2015, arXiv 1512.03385.
    """
    net = NetworkBuilder(f"resnet50_{size}")
    x = net.input("image", 1, 3, size, size)
    x = net.conv(x, 64, 7, 2, padding=3, activation="relu")
    x = net.max_pool(x, 3, 2, padding=1)
    for stage, (channels, num_blocks) in enumerate(RESNET50_STAGES):
        for index in range(num_blocks):
            x = _residual(net, x, channels, 2 if stage and not index else 1)
    x = net.global_average_pool(x)
    net.output(net.dense(net.reshape(x, 1, net.shapes[x][1]), classes), "logits")
    return net.build()


def _residual(net: NetworkBuilder, x: str, channels: int, stride: int) -> str:
    y = net.conv(x, channels, activation="relu")
    y = net.conv(y, channels, 3, stride, padding=1, activation="relu")
    y = net.conv(y, 4 * channels)
    if net.shapes[x] != net.shapes[y]:
        x = net.conv(x, 4 * channels, 1, stride, padding=0)
    return net.add(x, y, activation="relu")


GROWTH = 32
DENSENET121_BLOCKS = (6, 12, 24, 16)
"""Layers of each block."""


def densenet121(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels.

    DenseNet-121: every layer reads all before it in its block.
    The batch normalisations read what many layers wrote, so they stay operators.

    Source: Huang et al. 2016, arXiv 1608.06993.
    """
    net = NetworkBuilder(f"densenet121_{size}")
    x = net.input("image", 1, 3, size, size)
    x = net.conv(x, 2 * GROWTH, 7, 2, padding=3, activation="relu")
    x = net.max_pool(x, 3, 2, padding=1)
    for index, num_layers in enumerate(DENSENET121_BLOCKS):
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


def inception_v3(size: int = 299, classes: int = 1001) -> onnx.ModelProto:
    """Return the classifier for `size` x `size` pixels, without the auxiliary head.

    Inception v3: parallel branches of factorised convolutions.

    Source: Szegedy et al. 2015, arXiv 1512.00567; names and head as in TensorFlow's slim.
    """
    net = NetworkBuilder(f"inception_v3_{size}")
    x = _stem(net, net.input("image", 1, 3, size, size))
    for pool_channels in (32, 64, 64):
        x = _mixed_5(net, x, pool_channels)
    x = _mixed_6a(net, x)
    for channels in (128, 160, 160, 192):
        x = _mixed_6(net, x, channels)
    x = _mixed_7a(net, x)
    for _ in range(2):
        x = _mixed_7(net, x)
    x = net.conv(net.global_average_pool(x), classes)
    net.output(net.softmax(net.reshape(x, 1, classes)), "probabilities")
    return net.build()


def _conv(
    net: NetworkBuilder,
    x: str,
    channels: int,
    kernel: Size = 1,
    stride: int = 1,
    padding: Padding = "same",
) -> str:
    return net.conv(x, channels, kernel, stride, padding=padding, activation="relu")


def _stem(net: NetworkBuilder, x: str) -> str:
    x = _conv(net, x, 32, 3, 2, "valid")
    x = _conv(net, x, 32, 3, 1, "valid")
    x = net.max_pool(_conv(net, x, 64, 3), 3, 2, "valid")
    x = _conv(net, _conv(net, x, 80), 192, 3, 1, "valid")
    return net.max_pool(x, 3, 2, "valid")


def _mixed_5(net: NetworkBuilder, x: str, pool_channels: int) -> str:
    """Return the block at 35 x 35."""
    pointwise = _conv(net, x, 64)
    large = _conv(net, _conv(net, x, 48), 64, 5)
    double = _conv(net, _conv(net, _conv(net, x, 64), 96, 3), 96, 3)
    pooled = _conv(net, net.average_pool(x, 3, 1), pool_channels)
    return net.concat([pointwise, large, double, pooled])


def _mixed_6a(net: NetworkBuilder, x: str) -> str:
    """Return the block from 35 x 35 to 17 x 17."""
    single = _conv(net, x, 384, 3, 2, "valid")
    double = _conv(net, _conv(net, _conv(net, x, 64), 96, 3), 96, 3, 2, "valid")
    return net.concat([single, double, net.max_pool(x, 3, 2, "valid")])


def _mixed_6(net: NetworkBuilder, x: str, channels: int) -> str:
    """Return the block at 17 x 17: 7 x 7 as rows and columns."""
    row, column = (1, 7), (7, 1)
    pointwise = _conv(net, x, 192)
    single = _conv(net, _conv(net, _conv(net, x, channels), channels, row), 192, column)
    double = _conv(net, x, channels)
    for kernel in (column, row, column):
        double = _conv(net, double, channels, kernel)
    double = _conv(net, double, 192, row)
    pooled = _conv(net, net.average_pool(x, 3, 1), 192)
    return net.concat([pointwise, single, double, pooled])


def _mixed_7a(net: NetworkBuilder, x: str) -> str:
    """Return the block from 17 x 17 to 8 x 8."""
    single = _conv(net, _conv(net, x, 192), 320, 3, 2, "valid")
    double = _conv(net, _conv(net, _conv(net, x, 192), 192, (1, 7)), 192, (7, 1))
    double = _conv(net, double, 192, 3, 2, "valid")
    return net.concat([single, double, net.max_pool(x, 3, 2, "valid")])


def _mixed_7(net: NetworkBuilder, x: str) -> str:
    """Return the block at 8 x 8, whose inner branches part once more."""
    pointwise = _conv(net, x, 320)
    single = _parted(net, _conv(net, x, 384))
    double = _parted(net, _conv(net, _conv(net, x, 448), 384, 3))
    pooled = _conv(net, net.average_pool(x, 3, 1), 192)
    return net.concat([pointwise, single, double, pooled])


def _parted(net: NetworkBuilder, x: str) -> str:
    return net.concat([_conv(net, x, 384, (1, 3)), _conv(net, x, 384, (3, 1))])


UNET_CHANNELS = (32, 64, 128, 256, 512)
"""At each level, the image's own first."""


def unet(size: int = 256) -> onnx.ModelProto:
    """Return the segmentation network for `size` x `size` pixels.

    U-Net: down, up, and long skips that keep large tensors alive.

    Half the published channels, and padded convolutions, so that the mask has the image's size.

    Source: Ronneberger et al. 2015, arXiv 1505.04597.
    """
    net = NetworkBuilder(f"unet_{size}")
    x = net.input("image", 1, 3, size, size)
    skips: list[str] = []
    for channels in UNET_CHANNELS[:-1]:
        skips.append(_double_conv(net, x, channels))
        x = net.max_pool(skips[-1], 2, 2)
    x = _double_conv(net, x, UNET_CHANNELS[-1])
    for channels, skip in zip(reversed(UNET_CHANNELS[:-1]), reversed(skips), strict=True):
        x = _double_conv(net, net.concat([skip, net.up_conv(x, channels)]), channels)
    net.output(net.sigmoid(net.conv(x, 1)), "mask")
    return net.build()


def _double_conv(net: NetworkBuilder, x: str, channels: int) -> str:
    x = net.conv(x, channels, 3, activation="relu")
    return net.conv(x, channels, 3, activation="relu")
