"""Networks that edge devices run today: searched ones, a detector, and transformers."""

import math
from collections.abc import Callable

import numpy as np
import onnx

from bench.zoo.builder import NetworkBuilder
from bench.zoo.sequences import gelu, linear

V3_BLOCKS = (
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)
"""Kernel, expanded and resulting channels, squeeze-and-excite, hard swish, stride."""


def mobilenet_v3(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier MobileNet v3 large for `size` x `size` pixels.

    Source: Howard et al. 2019, arXiv 1905.02244, table 1.
    """
    net = NetworkBuilder(f"mobilenet_v3_{size}")
    x = _hard_swish(net, net.conv(net.input("image", 1, 3, size, size), 16, 3, 2))
    for kernel, wide, channels, excites, swishes, stride in V3_BLOCKS:

        def activate(y: str, swishes: bool = swishes) -> str:
            return _hard_swish(net, y) if swishes else net.activate(y, "relu")

        y = x if wide == net.shapes[x][1] else activate(net.conv(x, wide))
        y = activate(net.conv(y, wide, kernel, stride, groups=wide))
        if excites:
            y = _excited(
                net, y, -(-wide // 32) * 8, lambda z: net.activate(z, "relu"), "HardSigmoid"
            )
        y = net.conv(y, channels)
        x = net.add(x, y) if net.shapes[x] == net.shapes[y] else y
    x = net.global_average_pool(_hard_swish(net, net.conv(x, 960)))
    x = net.conv(_hard_swish(net, net.conv(x, 1280)), classes)
    net.output(net.reshape(x, 1, classes), "logits")
    return net.build()


def _hard_swish(net: NetworkBuilder, x: str) -> str:
    return net.node("HardSwish", [x], net.shapes[x])


def _swish(net: NetworkBuilder, x: str) -> str:
    return net.node("Mul", [x, net.sigmoid(x)], net.shapes[x])


def _excited(
    net: NetworkBuilder, x: str, squeezed: int, activate: Callable[[str], str], gate: str
) -> str:
    """Return channels scaled by a gate that two small convolutions of their means make."""
    channels = net.shapes[x][1]
    y = net.conv(activate(net.conv(net.global_average_pool(x), squeezed)), channels)
    slope = {"alpha": 1 / 6, "beta": 0.5} if gate == "HardSigmoid" else {}
    y = net.node(gate, [y], net.shapes[y], **slope)
    return net.node("Mul", [x, y], net.shapes[x])


B0_STAGES = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
)  # fmt: skip
"""Expansion, kernel, stride of the first block, channels, number of blocks."""


def efficientnet_b0(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier EfficientNet-B0 for `size` x `size` pixels.

    Source: Tan and Le 2019, arXiv 1905.11946, table 1.
    """
    net = NetworkBuilder(f"efficientnet_b0_{size}")
    x = _swish(net, net.conv(net.input("image", 1, 3, size, size), 32, 3, 2))
    for expansion, kernel, first_stride, channels, num_blocks in B0_STAGES:
        for index in range(num_blocks):
            given = net.shapes[x][1]
            wide = expansion * given
            y = x if expansion == 1 else _swish(net, net.conv(x, wide))
            stride = 1 if index else first_stride
            y = _swish(net, net.conv(y, wide, kernel, stride, groups=wide))
            y = _excited(net, y, given // 4, lambda z: _swish(net, z), "Sigmoid")
            y = net.conv(y, channels)
            x = net.add(x, y) if net.shapes[x] == net.shapes[y] else y
    x = net.conv(net.global_average_pool(_swish(net, net.conv(x, 1280))), classes)
    net.output(net.reshape(x, 1, classes), "logits")
    return net.build()


def yolov8n(size: int = 320, classes: int = 80) -> onnx.ModelProto:
    """Return a detector with the layers of YOLOv8n for `size` x `size` pixels.

    The outputs are boxes and classes of three grids, before they are decoded.
    """
    net = NetworkBuilder(f"yolov8n_{size}")
    x = _stem(net, _stem(net, net.input("image", 1, 3, size, size), 16), 32)
    x = _split(net, x, 32, 1)
    fine = _split(net, _stem(net, x, 64), 64, 2)
    middle = _split(net, _stem(net, fine, 128), 128, 2)
    coarse = _split(net, _stem(net, middle, 256), 256, 1)
    pooled = [_swish(net, net.conv(coarse, 128))]
    for _ in range(3):
        pooled.append(net.max_pool(pooled[-1], 5, 1, padding=2))
    coarse = _swish(net, net.conv(net.concat(pooled), 256))
    middle = _split(net, net.concat([_doubled(net, coarse), middle]), 128, 1, adds=False)
    fine = _split(net, net.concat([_doubled(net, middle), fine]), 64, 1, adds=False)
    middle = _split(net, net.concat([_stem(net, fine, 64), middle]), 128, 1, adds=False)
    coarse = _split(net, net.concat([_stem(net, middle, 128), coarse]), 256, 1, adds=False)
    for grid, x in enumerate((fine, middle, coarse)):
        heads = []
        for inner, outer in ((64, 64), (80, classes)):
            y = _stem(net, _stem(net, x, inner, 1), inner, 1)
            heads.append(net.conv(y, outer))
        net.output(net.concat(heads), f"grid{grid}")
    return net.build()


def _stem(net: NetworkBuilder, x: str, channels: int, stride: int = 2) -> str:
    return _swish(net, net.conv(x, channels, 3, stride, padding=1))


def _split(
    net: NetworkBuilder, x: str, channels: int, num_blocks: int, *, adds: bool = True
) -> str:
    """Return a block whose second half passes bottlenecks, each kept."""
    y = _swish(net, net.conv(x, channels))
    half = (1, channels // 2, *net.shapes[y][2:])
    sizes = net.constant(np.array([channels // 2] * 2, np.int64))
    first, last = net.nodes("Split", [y, sizes], (half, half), axis=1)
    parts = [first, last]
    for _ in range(num_blocks):
        z = _stem(net, _stem(net, parts[-1], channels // 2, 1), channels // 2, 1)
        parts.append(net.add(parts[-1], z) if adds else z)
    return _swish(net, net.conv(net.concat(parts), channels))


def _doubled(net: NetworkBuilder, x: str) -> str:
    """Return the pixels, each four times."""
    batch, channels, height, width = net.shapes[x]
    scales = net.constant(np.array([1, 1, 2, 2], np.float32))
    return net.node(
        "Resize", [x, "", scales], (batch, channels, 2 * height, 2 * width), mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip


def bert_layers(
    rows: int = 128, layers: int = 4, features: int = 256, heads: int = 4
) -> onnx.ModelProto:
    """Return the layers of an encoder for `rows` tokens, after their embedding; of BERT-mini.

    Six layers of 384 features and 12 heads are MiniLM's.

    Source: Turc et al. 2019, arXiv 1908.08962; Wang et al. 2020, arXiv 2002.10957.
    """
    net = NetworkBuilder(f"bert_{layers}_{features}_{rows}")
    x = net.input("embeddings", 1, rows, features)
    for _ in range(layers):
        x = _normed(net, net.add(x, _attention(net, x, heads=heads)))
        x = _normed(net, net.add(x, _perceptron(net, x)))
    net.output(x, "states")
    return net.build()


def deit_tiny(size: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return the classifier DeiT-tiny for `size` x `size` pixels.

    Source: Touvron et al. 2021, arXiv 2012.12877.
    """
    net = NetworkBuilder(f"deit_tiny_{size}")
    x = net.conv(net.input("image", 1, 3, size, size), 192, 16, 16, padding="valid")
    rows = math.prod(net.shapes[x][2:])
    x = net.transpose(net.reshape(x, 1, 192, rows), 0, 2, 1)
    x = net.concat([net.constant(net.normal(1, 1, 192)), x], axis=1)
    x = net.add(x, net.constant(net.normal(1, rows + 1, 192)))
    for _ in range(12):
        x = net.add(x, _attention(net, _normed(net, x), heads=3))
        x = net.add(x, _perceptron(net, _normed(net, x)))
    first = net.constant(np.array(0, np.int64))
    x = net.node("Gather", [_normed(net, x), first], (1, 192), axis=1)
    net.output(net.dense(x, classes), "logits")
    return net.build()


def _attention(net: NetworkBuilder, x: str, heads: int) -> str:
    _, rows, width = net.shapes[x]
    each = width // heads

    def part(*order: int) -> str:
        return net.transpose(net.reshape(linear(net, x, width), 1, rows, heads, each), *order)

    query, key, value = part(0, 2, 1, 3), part(0, 2, 3, 1), part(0, 2, 1, 3)
    scores = net.node("MatMul", [query, key], (1, heads, rows, rows))
    root = net.constant(np.float32(math.sqrt(each)))
    scores = net.softmax(net.node("Div", [scores, root], net.shapes[scores]))
    y = net.transpose(net.node("MatMul", [scores, value], net.shapes[value]), 0, 2, 1, 3)
    return linear(net, net.reshape(y, 1, rows, width), width)


def _perceptron(net: NetworkBuilder, x: str) -> str:
    width = net.shapes[x][2]
    return linear(net, gelu(net, linear(net, x, 4 * width)), width)


def _normed(net: NetworkBuilder, x: str) -> str:
    width = net.shapes[x][-1]
    ones, zeros = (
        net.constant(np.ones(width, np.float32)),
        net.constant(np.zeros(width, np.float32)),
    )
    return net.node("LayerNormalization", [x, ones, zeros], net.shapes[x], axis=-1)
