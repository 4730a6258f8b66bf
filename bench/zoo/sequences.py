"""Networks of sequences and of sound, and one that enlarges images."""

import math
from typing import Literal

import numpy as np
import onnx

from bench.zoo.builder import NetworkBuilder

Direction = Literal["forward", "bidirectional"]


def recurrent(
    op_type: Literal["LSTM", "GRU"],
    direction: Direction = "forward",
    units: int = 128,
    frames: int = 100,
) -> onnx.ModelProto:
    """Return two recurrent layers over frames of 80 features, and classes of each frame."""
    net = NetworkBuilder(f"{op_type.lower()}_{direction}_{units}")
    x = net.input("frames", frames, 1, 80)
    for _ in range(2):
        x = net.recurrent(x, op_type, units, direction)
    x = net.dense(net.reshape(x, frames, net.shapes[x][-1]), 32)
    net.output(net.softmax(x), "classes")
    return net.build()


def linear(net: NetworkBuilder, x: str, features: int) -> str:
    """Multiply by a matrix and add a bias, as two operators, the way PyTorch writes it."""
    *outer, depth = net.shapes[x]
    weight = net.constant(math.sqrt(1 / depth) * net.normal(depth, features))
    y = net.node("MatMul", [x, weight], (*outer, features))
    return net.node("Add", [y, net.constant(0.01 * net.normal(features))], (*outer, features))


def _layer_norm(net: NetworkBuilder, x: str) -> str:
    """Normalise the last axis by the operators that opset 13 has for it."""
    shape = net.shapes[x]
    one = (*shape[:-1], 1)
    mean = net.node("ReduceMean", [x], one, axes=[-1])
    centred = net.node("Sub", [x, mean], shape)
    square = net.node("Pow", [centred, net.constant(np.float32(2), "two")], shape)
    variance = net.node("ReduceMean", [square], one, axes=[-1])
    shifted = net.node("Add", [variance, net.constant(np.float32(1e-5), "epsilon")], one)
    y = net.node("Div", [centred, net.node("Sqrt", [shifted], one)], shape)
    y = net.node("Mul", [y, net.constant(1 + 0.01 * net.normal(shape[-1]))], shape)
    return net.node("Add", [y, net.constant(0.01 * net.normal(shape[-1]))], shape)


def gelu(net: NetworkBuilder, x: str) -> str:
    """Apply x (1 + erf(x / the root of 2)) / 2, as operators."""
    shape = net.shapes[x]
    y = net.node("Div", [x, net.constant(np.float32(math.sqrt(2)), "root_two")], shape)
    y = net.node("Add", [net.node("Erf", [y], shape), net.constant(np.float32(1), "one")], shape)
    y = net.node("Mul", [x, y], shape)
    return net.node("Mul", [y, net.constant(np.float32(0.5), "half")], shape)


def _attention(net: NetworkBuilder, x: str, heads: int, past: int, name: str) -> str:
    """Attend to tokens, also to past ones, which come and go as inputs and outputs `name`."""
    batch, tokens, features = net.shapes[x]
    size = features // heads
    query, key, value = (
        net.transpose(
            net.reshape(linear(net, x, features), batch, tokens, heads, size), 0, 2, 1, 3
        )
        for _ in range(3)
    )
    if past:
        before = (batch, heads, past, size)
        key = net.concat([net.input(f"{name}.key", *before), key], axis=2)
        value = net.concat([net.input(f"{name}.value", *before), value], axis=2)
        net.output(key, f"{name}.key.present")
        net.output(value, f"{name}.value.present")
    there = past + tokens
    scores = net.node("MatMul", [query, net.transpose(key, 0, 1, 3, 2)],
                      (batch, heads, tokens, there))  # fmt: skip
    scale = net.constant(np.float32(math.sqrt(size)), "scale")
    weights = net.softmax(net.node("Div", [scores, scale], net.shapes[scores]))
    y = net.node("MatMul", [weights, value], (batch, heads, tokens, size))
    y = net.reshape(net.transpose(y, 0, 2, 1, 3), batch, tokens, features)
    return linear(net, y, features)


def transformer(
    tokens: int = 128,
    layers: int = 4,
    features: int = 256,
    heads: int = 4,
    past: int = 0,
    classes: int | None = None,
) -> onnx.ModelProto:
    """Return an encoder, or with `past` tokens a decoder, as PyTorch exports it to opset 13.

    Layers normalise their inputs; embeddings are given. With 4 layers of 256 features it has the
    size of BERT-mini.

    Source: Vaswani et al. 2017, arXiv 1706.03762; Turc et al. 2019, arXiv 1908.08962.
    """
    net = NetworkBuilder(f"transformer_{tokens}_{layers}_{features}_{past}", opset=13)
    x = net.input("embeddings", 1, tokens, features)
    for layer in range(layers):
        attended = _attention(net, _layer_norm(net, x), heads, past, f"layer{layer}")
        x = net.add(x, attended)
        expanded = gelu(net, linear(net, _layer_norm(net, x), 4 * features))
        x = net.add(x, linear(net, expanded, features))
    x = _layer_norm(net, x)
    net.output(x if classes is None else linear(net, x, classes), "y")
    return net.build()


def convolve(
    net: NetworkBuilder,
    x: str,
    channels: int,
    kernel: int,
    *,
    dilation: int = 1,
    groups: int = 1,
    pads: bool = True,
) -> str:
    """Convolve along time: as many samples as before, or those that need no padding."""
    batch, depth, length = net.shapes[x]
    reach = dilation * (kernel - 1)
    margin = reach // 2 if pads else 0
    scale = math.sqrt(1 / (depth // groups * kernel))
    weight = net.constant(scale * net.normal(channels, depth // groups, kernel))
    bias = net.constant(0.01 * net.normal(channels))
    return net.node(
        "Conv", [x, weight, bias], (batch, channels, length - reach + 2 * margin),
        kernel_shape=[kernel], dilations=[dilation], pads=[margin, margin], group=groups,
    )  # fmt: skip


def _spread(net: NetworkBuilder, x: str, channels: int, kernel: int, stride: int, pad: int) -> str:
    """Convolve along time, transposed: `stride` samples for each."""
    batch, depth, length = net.shapes[x]
    weight = net.constant(
        math.sqrt(stride / (depth * kernel)) * net.normal(depth, channels, kernel)
    )
    shape = (batch, channels, (length - 1) * stride + kernel - 2 * pad)
    return net.node(
        "ConvTranspose", [x, weight, net.constant(0.01 * net.normal(channels))], shape,
        kernel_shape=[kernel], strides=[stride], pads=[pad, pad],
    )  # fmt: skip


def temporal(length: int = 8000) -> onnx.ModelProto:
    """Return a network that takes noise off sound: encoder, mask by dilated convolutions, decoder.

    Source: Luo and Mesgarani 2019, arXiv 1809.07454 (Conv-TasNet), smaller, batch normalisation
    folded.
    """
    net = NetworkBuilder(f"temporal_{length}")
    features, hidden, kernel, stride = 256, 256, 16, 8
    sound = net.input("sound", 1, 1, length)
    weight = net.constant(0.25 * net.normal(features, 1, kernel))
    frames = (length - kernel) // stride + 1
    encoded = net.node("Conv", [sound, weight], (1, features, frames), kernel_shape=[kernel],
                       strides=[stride])  # fmt: skip
    encoded = net.activate(encoded, "relu")
    x = convolve(net, encoded, 128, 1)
    for block in range(8):
        y = net.activate(convolve(net, x, hidden, 1), "relu")
        y = convolve(net, y, hidden, 3, dilation=2 ** (block % 4), groups=hidden)
        x = net.add(x, convolve(net, net.activate(y, "relu"), 128, 1))
    mask = net.sigmoid(convolve(net, x, features, 1))
    masked = net.node("Mul", [encoded, mask], net.shapes[encoded])
    net.output(_spread(net, masked, 1, kernel, stride, 0), "speech")
    return net.build()


def wake_word(frames: int = 30) -> onnx.ModelProto:
    """Return a network that hears a word in frames of 40 features, without padding along time.

    Source: the streaming wake word of MLPerf Tiny (github.com/mlcommons/tiny), normalisation
    folded.
    """
    net = NetworkBuilder(f"wake_word_{frames}")
    x = net.input("frames", 1, 40, frames)
    for kernel, channels in ((3, 128), (5, 128), (10, 128), (15, 32)):
        depth = net.shapes[x][1]
        x = convolve(net, x, depth, kernel, groups=depth, pads=False)
        x = net.activate(convolve(net, x, channels, 1), "relu")
    net.output(net.softmax(net.dense(net.reshape(x, 1, 32 * net.shapes[x][2]), 3)), "words")
    return net.build()


def vocoder(frames: int = 32) -> onnx.ModelProto:
    """Return a network from 80 features a frame to 256 samples each.

    Source: Kong et al. 2020, arXiv 2010.05646 (HiFi-GAN), the generator V2, of its blocks' kernels
    one.
    """
    net = NetworkBuilder(f"vocoder_{frames}")
    x = convolve(net, net.input("features", 1, 80, frames), 128, 7)
    for kernel, stride, channels in ((16, 8, 64), (16, 8, 32), (4, 2, 16), (4, 2, 8)):
        x = _leaky(net, x)
        x = _spread(net, x, channels, kernel, stride, (kernel - stride) // 2)
        for dilation in (1, 3, 5):
            y = convolve(net, _leaky(net, x), channels, 3, dilation=dilation)
            x = net.add(x, convolve(net, _leaky(net, y), channels, 3))
    y = convolve(net, _leaky(net, x), 1, 7)
    net.output(net.node("Tanh", [y], net.shapes[y]), "sound")
    return net.build()


def _leaky(net: NetworkBuilder, x: str) -> str:
    return net.node("LeakyRelu", [x], net.shapes[x], alpha=0.1)


def espcn(size: int = 224, factor: int = 3) -> onnx.ModelProto:
    """Return a network that enlarges an image of one channel.

    Source: Shi et al. 2016, arXiv 1609.05158, with one layer more, as PyTorch's example.
    """
    net = NetworkBuilder(f"espcn_{size}")
    x = net.conv(net.input("image", 1, 1, size, size), 64, 5, activation="relu")
    for channels in (64, 32):
        x = net.conv(x, channels, 3, activation="relu")
    x = net.conv(x, factor * factor, 3)
    shape = (1, 1, factor * size, factor * size)
    net.output(net.node("DepthToSpace", [x], shape, blocksize=factor, mode="CRD"), "enlarged")
    return net.build()
