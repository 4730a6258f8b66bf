"""Encoders and decoders of speech, as exporters write them."""

import math

import numpy as np
import onnx
from onnx import TensorProto

from bench.zoo.encoders import attention, by_heads, gelu, mixed, norm, perceptron
from bench.zoo.writer import GraphWriter

_PAST, _TOTAL = "past_sequence_length", "total_sequence_length"


def whisper_encoder(
    layers: int = 4, features: int = 384, heads: int = 6, frames: int = 3000
) -> onnx.ModelProto:
    """Return an encoder of 80 frequencies a frame; the default is Whisper-tiny's.

    Source: Radford et al. 2022, arXiv 2212.04356.
    """
    net = GraphWriter("whisper_encoder")
    x = net.input("input_features", 1, 80, frames)
    x = gelu(net, _convolved(net, x, 80, features, 3, 1, 1))
    x = gelu(net, _convolved(net, x, features, features, 3, 2, 1))
    x = net.node("Transpose", x, perm=[0, 2, 1])
    x = net.node("Add", x, net.weight(frames // 2, features, scale=0.3))
    for _ in range(layers):
        normed = norm(net, x, features)
        x = net.node("Add", x, attention(net, normed, normed, features, heads))
        x = net.node("Add", x, perceptron(net, norm(net, x, features), features))
    net.output(norm(net, x, features), "last_hidden_state", 1, frames // 2, features)
    return net.build()


def whisper_decoder(
    layers: int = 4,
    features: int = 384,
    heads: int = 6,
    heard: int = 1500,
    *,
    vocabulary: int = 51865,
    most: int = 448,
) -> onnx.ModelProto:
    """Return a decoder of one token with caches; the default is Whisper-tiny's.

    Args:
        heard: Tokens of the encoder.
        vocabulary: Number of tokens.
        most: Most tokens of a text.

    Source: Radford et al. 2022, arXiv 2212.04356.
    """
    net = GraphWriter("whisper_decoder")
    size = features // heads
    ids = net.input("input_ids", 1, 1, kind=TensorProto.INT64)
    words = net.weight(vocabulary, features, scale=0.3, name="words")
    places = net.weight(most, features, scale=0.3, name="places")
    caches = [
        [
            net.input(f"past_key_values.{layer}.{kind}.{name}", 1, heads, length, size)
            for kind, length in (("decoder", _PAST), ("encoder", heard))
            for name in ("key", "value")
        ]
        for layer in range(layers)
    ]
    before = net.node("Unsqueeze", net.length(caches[0][0], 2), net.constant([0]))
    after = net.node("Add", before, net.constant([1]))
    place = net.node("Slice", places, before, after, net.constant([0]), net.constant([1]))
    x = net.node("Add", net.node("Gather", words, ids), place)
    for layer, (key, value, heard_key, heard_value) in enumerate(caches):
        normed = norm(net, x, features)
        query = by_heads(net, net.linear(normed, features, features), heads, features)
        found = []
        for past, name in ((key, "key"), (value, "value")):
            new = by_heads(net, net.linear(normed, features, features), heads, features)
            made = net.node("Concat", past, new, axis=2)
            output = f"present.{layer}.decoder.{name}"
            found.append(net.output(made, output, 1, heads, _TOTAL, size))
        x = net.node("Add", x, mixed(net, query, found[0], found[1], features, heads))
        query = net.linear(norm(net, x, features), features, features)
        query = by_heads(net, query, heads, features)
        x = net.node("Add", x, mixed(net, query, heard_key, heard_value, features, heads))
        x = net.node("Add", x, perceptron(net, norm(net, x, features), features))
    logits = net.node("Transpose", words, perm=[1, 0])
    y = net.node("MatMul", norm(net, x, features), logits)
    net.output(y, "logits", 1, 1, vocabulary, first=True)
    return net.build()


def moonshine_encoder(
    layers: int = 6, features: int = 288, heads: int = 8, samples: int = 16000
) -> onnx.ModelProto:
    """Return an encoder of sound with rotary positions; the default is Moonshine-tiny's.

    Of each head 32 elements are rotated, as far as it has so many.

    Source: Jeffries et al. 2024, arXiv 2410.15608.
    """
    net = GraphWriter("moonshine_encoder")
    x = net.node("Unsqueeze", net.input("input_values", 1, samples), net.constant([1]))
    x = net.node("Tanh", _convolved(net, x, 1, features, 127, 64, 0, bias=False))
    x = _normed_all(net, x, features)
    x = gelu(net, _convolved(net, x, features, 2 * features, 7, 3, 0))
    x = gelu(net, _convolved(net, x, 2 * features, features, 3, 2, 0))
    x = net.node("Transpose", x, perm=[0, 2, 1])
    length = ((((samples - 127) // 64 + 1) - 7) // 3 + 1 - 3) // 2 + 1
    part = min(features // heads, 32)
    angles = 10000.0 ** (-np.arange(0, part, 2, dtype=np.float32) / part)
    turns = np.arange(length, dtype=np.float32)[:, None] * np.repeat(angles, 2)
    cosines, sines = (
        net.constant(function(turns[None, None]).astype(np.float32))
        for function in (np.cos, np.sin)
    )
    for _ in range(layers):
        normed = norm(net, x, features)
        query, key, value = (
            by_heads(net, net.linear(normed, features, features, bias=False), heads, features)
            for _ in range(3)
        )
        query, key = (_turned(net, each, cosines, sines, part) for each in (query, key))
        x = net.node("Add", x, mixed(net, query, key, value, features, heads))
        x = net.node("Add", x, perceptron(net, norm(net, x, features), features))
    net.output(norm(net, x, features), "last_hidden_state", 1, length, features)
    return net.build()


def _turned(net: GraphWriter, x: str, cosines: str, sines: str, part: int) -> str:
    """Rotate pairs of the first elements of each head and keep the others."""
    axis, step, ends = net.constant([3]), net.constant([1]), net.constant([part])
    least, most = net.constant([0]), net.constant([np.iinfo(np.int64).max])
    head = net.node("Slice", x, least, ends, axis, step)
    two = net.constant([2])
    even, odd = (
        net.node("Slice", head, first, most, axis, two) for first in (least, net.constant([1]))
    )
    pairs = (
        net.node("Unsqueeze", each, net.constant([-1])) for each in (net.node("Neg", odd), even)
    )
    turned = net.node("Concat", *pairs, axis=-1)
    turned = net.node("Reshape", turned, net.constant([0, 0, -1, part]))
    turned = net.node("Mul", turned, sines)
    head = net.node("Add", net.node("Mul", head, cosines), turned)
    return net.node("Concat", head, net.node("Slice", x, ends, most, axis, step), axis=-1)


def _convolved(
    net: GraphWriter, x: str, depth: int, features: int, kernel: int, stride: int, pad: int,
    *, bias: bool = True,
) -> str:  # fmt: skip
    """Convolve along time."""
    weights = net.weight(features, depth, kernel, scale=1 / math.sqrt(depth * kernel))
    added = (net.weight(features, scale=0.01),) if bias else ()
    return net.node(
        "Conv", x, weights, *added, kernel_shape=[kernel], strides=[stride], pads=[pad, pad]
    )


def _normed_all(net: GraphWriter, x: str, features: int) -> str:
    """Normalise all elements at once, as a group norm of one group is exported."""
    y = net.node("Reshape", x, net.constant([0, 1, -1]))
    ones, zeros = (net.constant(np.full(1, each, np.float32)) for each in (1, 0))
    y = net.node("InstanceNormalization", y, ones, zeros, epsilon=1e-5)
    y = net.node("Reshape", y, net.node("Shape", x))
    scale = net.constant(np.ones((features, 1), np.float32))
    return net.node("Add", net.node("Mul", y, scale), net.weight(features, 1, scale=0.01))
