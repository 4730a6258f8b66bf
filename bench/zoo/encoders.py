"""Encoders of text and of images, written out by operators or fused by ONNX Runtime's tools."""

import math

import numpy as np
import onnx
from onnx import TensorProto

from bench.zoo.writer import MICROSOFT, GraphWriter

_SEGMENTS = 2
_HIDDEN = -3.4028234663852886e38
"""Added to the scores of words that are padding."""


def bert(
    layers: int = 4,
    features: int = 256,
    heads: int = 4,
    tokens: int | str = 128,
    *,
    vocabulary: int = 30522,
    most: int = 512,
    fused: bool = False,
) -> onnx.ModelProto:
    """Return an encoder of text of BERT's kind, its embeddings included.

    Two layers of 128 features and 2 heads are BERT-tiny, the default BERT-mini, 6 of 384 and 12
    heads MiniLM.

    Args:
        tokens: Length of the text, or the name of a dimension.
        vocabulary: Number of tokens.
        most: Most tokens of a text.
        fused: Whether operators are those of ONNX Runtime's tools.

    Source: Turc et al. 2019, arXiv 1908.08962; Wang et al. 2020, arXiv 2002.10957.
    """
    net = GraphWriter("bert")
    names = ("input_ids", "attention_mask", "token_type_ids")
    ids, mask, segments = (net.input(name, 1, tokens, kind=TensorProto.INT64) for name in names)
    tables = [
        net.weight(rows, features, scale=0.3, name=name)
        for name, rows in (("words", vocabulary), ("places", most), ("segments", _SEGMENTS))
    ]
    if fused:
        x, mask = _fused_embeddings(net, ids, mask, segments, tables, features)
    else:
        x = _embeddings(net, ids, segments, tables, most, features)
        mask = net.node("Unsqueeze", mask, net.constant([1, 2]))
        mask = net.node("Cast", mask, to=TensorProto.FLOAT)
        mask = net.node("Sub", net.number(1), mask)
        mask = net.node("Mul", mask, net.number(_HIDDEN))
    for _ in range(layers):
        if fused:
            x = _fused_layer(net, x, mask, features, heads)
        else:
            attended = attention(net, x, x, features, heads, mask=mask)
            x = norm(net, net.node("Add", attended, x), features)
            x = norm(net, net.node("Add", perceptron(net, x, features), x), features)
    net.output(x, "last_hidden_state", 1, tokens, features)
    return net.build()


def vit(
    layers: int = 12, features: int = 192, heads: int = 3, size: int = 224, *, fused: bool = False
) -> onnx.ModelProto:
    """Return a classifier of images in patches of 16 x 16; the default is ViT-tiny.

    Source: Dosovitskiy et al. 2021, arXiv 2010.11929; Touvron et al. 2021, arXiv 2012.12877.
    """
    net = GraphWriter("vit")
    image = net.input("pixel_values", 1, 3, size, size)
    kernel = net.weight(features, 3, 16, 16, scale=1 / math.sqrt(3 * 16 * 16))
    bias = net.weight(features, scale=0.01)
    x = net.node("Conv", image, kernel, bias, kernel_shape=[16, 16], strides=[16, 16])
    x = net.node("Reshape", x, net.constant([1, features, -1]))
    x = net.node("Transpose", x, perm=[0, 2, 1])
    x = net.node("Concat", net.weight(1, 1, features, scale=1.0), x, axis=1)
    x = net.node("Add", x, net.weight(1, (size // 16) ** 2 + 1, features, scale=1.0))
    for _ in range(layers):
        normed = norm(net, x, features)
        attend = fused_attention if fused else _scaled_attention
        x = net.node("Add", attend(net, normed, features, heads), x)
        x = net.node("Add", perceptron(net, norm(net, x, features), features, fused=fused), x)
    x = net.node("Gather", norm(net, x, features), net.constant(0), axis=1)
    weights = net.weight(1000, features, scale=features**-0.5)
    x = net.node("Gemm", x, weights, net.weight(1000, scale=0.01), transB=1)
    net.output(x, "logits", 1, 1000)
    return net.build()


def attention(
    net: GraphWriter, x: str, source: str, features: int, heads: int, *, mask: str = ""
) -> str:
    """Attend from tokens to those of a source; the mask is added to scores."""
    query, key, value = (
        by_heads(net, net.linear(each, features, features), heads, features)
        for each in (x, source, source)
    )
    return mixed(net, query, key, value, features, heads, mask=mask)


def mixed(
    net: GraphWriter,
    query: str,
    key: str,
    value: str,
    features: int,
    heads: int,
    *,
    mask: str = "",
) -> str:
    """Mix values by heads by the scores of queries and keys, and project the result."""
    keys = net.node("Transpose", key, perm=[0, 1, 3, 2])
    root = net.number(math.sqrt(features // heads))
    scores = net.node("Div", net.node("MatMul", query, keys), root)
    if mask:
        scores = net.node("Add", scores, mask)
    y = net.node("MatMul", net.node("Softmax", scores, axis=-1), value)
    return net.linear(_joined(net, y, features), features, features)


def _scaled_attention(net: GraphWriter, x: str, features: int, heads: int) -> str:
    """Attend as PyTorch's exporter writes it: queries and keys are scaled, each by a root."""
    query, key, value = (
        by_heads(net, net.linear(x, features, features), heads, features) for _ in range(3)
    )
    root = net.node("Sqrt", net.number((features // heads) ** -0.5))
    keys = net.node("Transpose", key, perm=[0, 1, 3, 2])
    scores = net.node("MatMul", net.node("Mul", query, root), net.node("Mul", keys, root))
    y = net.node("MatMul", net.node("Softmax", scores, axis=-1), value)
    return net.linear(_joined(net, y, features), features, features)


def by_heads(net: GraphWriter, x: str, heads: int, features: int) -> str:
    """Return batches, heads, tokens and elements of a value whose last axis has the heads."""
    x = net.node("Reshape", x, net.constant([0, -1, heads, features // heads]))
    return net.node("Transpose", x, perm=[0, 2, 1, 3])


def _joined(net: GraphWriter, x: str, features: int) -> str:
    x = net.node("Transpose", x, perm=[0, 2, 1, 3])
    return net.node("Reshape", x, net.constant([0, -1, features]))


def perceptron(net: GraphWriter, x: str, features: int, *, fused: bool = False) -> str:
    """Expand tokens four times, apply gelu, and project them back."""
    inner = 4 * features
    if fused:
        y = net.node("MatMul", x, net.weight(features, inner, scale=features**-0.5))
        y = net.node("BiasGelu", y, net.weight(inner, scale=0.01), domain=MICROSOFT)
    else:
        y = gelu(net, net.linear(x, features, inner))
    return net.linear(y, inner, features)


def gelu(net: GraphWriter, x: str) -> str:
    """Apply x (1 + erf(x / the root of 2)) / 2, as operators."""
    y = net.node("Erf", net.node("Div", x, net.number(math.sqrt(2))))
    return net.node("Mul", net.node("Mul", x, net.node("Add", y, net.number(1))), net.number(0.5))


def norm(net: GraphWriter, x: str, features: int) -> str:
    """Normalise the last axis, with a scale and a bias."""
    scale, bias = _norm_weights(net, features)
    return net.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)


def _norm_weights(net: GraphWriter, features: int) -> list[str]:
    scale = 1 + 0.01 * np.arange(features, dtype=np.float32) / features
    return [net.constant(scale, "scale"), net.weight(features, scale=0.01)]


def _embeddings(
    net: GraphWriter, ids: str, segments: str, tables: list[str], most: int, features: int
) -> str:
    words, places, kinds = tables
    count = net.node("Unsqueeze", net.length(ids, 1), net.constant([0]))
    numbers = net.constant(np.arange(most, dtype=np.int64)[None])
    first, axis, step = net.constant([0]), net.constant([1]), net.constant([1])
    given = net.node("Slice", numbers, first, count, axis, step)
    x = net.node("Add", net.node("Gather", words, ids), net.node("Gather", kinds, segments))
    return norm(net, net.node("Add", x, net.node("Gather", places, given)), features)


def _fused_embeddings(
    net: GraphWriter, ids: str, mask: str, segments: str, tables: list[str], features: int
) -> tuple[str, str]:
    """Return the embeddings, and how many words count."""
    ids, mask, segments = (
        net.node("Cast", each, to=TensorProto.INT32) for each in (ids, mask, segments)
    )
    x, count = net.nodes(
        "EmbedLayerNormalization", ids, segments, *tables, *_norm_weights(net, features), mask,
        count=2, domain=MICROSOFT, epsilon=1e-12,
    )  # fmt: skip
    return x, count


def _fused_layer(net: GraphWriter, x: str, mask: str, features: int, heads: int) -> str:
    for attends in (True, False):
        y = fused_attention(net, x, features, heads, mask=mask) if attends else ""
        y = y or perceptron(net, x, features, fused=True)
        weights = _norm_weights(net, features)
        x = net.node(
            "SkipLayerNormalization", y, x, *weights, domain=MICROSOFT, epsilon=1e-12
        )  # fmt: skip
    return x


def fused_attention(net: GraphWriter, x: str, features: int, heads: int, *, mask: str = "") -> str:
    """Attend by Microsoft's operator, and project the result."""
    weights = net.weight(features, 3 * features, scale=features**-0.5)
    bias = net.weight(3 * features, scale=0.01)
    inputs = (x, weights, bias, *((mask,) if mask else ()))
    y = net.node("Attention", *inputs, domain=MICROSOFT, num_heads=heads)
    return net.linear(y, features, features)
