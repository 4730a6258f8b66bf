"""Decoders of Llama's kind with a cache: rotary positions, groups of heads and a gate."""

import numpy as np
import onnx
from onnx import TensorProto

from bench.zoo.encoders import by_heads
from bench.zoo.writer import MICROSOFT, GraphWriter

_SEQUENCE, _PAST, _TOTAL = "sequence_length", "past_sequence_length", "total_sequence_length"


def smollm(
    layers: int = 30,
    features: int = 576,
    heads: int = 9,
    key_heads: int = 3,
    inner: int = 1536,
    *,
    vocabulary: int = 49152,
    most: int = 2048,
    fused: bool = False,
) -> onnx.ModelProto:
    """Return a decoder with the layers of SmolLM-135M, or of others of its kind.

    Inputs are `input_ids`, `attention_mask`, `position_ids`, and keys and values of past tokens;
    outputs `logits`, and keys and values of all tokens. Embeddings are the last projection too.
    With 32 layers of 960 features, 15 and 5 heads and 2,560 inner features it is SmolLM-360M.

    Args:
        vocabulary: Number of tokens.
        most: Most tokens of a text, where operators are fused.
        fused: Whether operators are those of ONNX Runtime's tools.

    Source: Ben Allal et al. 2025, arXiv 2502.02737; Touvron et al. 2023, arXiv 2302.13971.
    """
    model = _Llama(features, heads, key_heads)
    return (model.fused if fused else model.decomposed)(layers, inner, vocabulary, most)


class _Llama(GraphWriter):
    def __init__(self, features: int, heads: int, key_heads: int) -> None:
        super().__init__("llama")
        self._features, self._heads, self._key_heads = features, heads, key_heads
        self._size = features // heads
        self._angles = 10000.0 ** (-np.arange(0, self._size, 2, dtype=np.float32) / self._size)

    def decomposed(self, layers: int, inner: int, vocabulary: int, most: int) -> onnx.ModelProto:
        del most
        words = self._inputs_and_words(vocabulary, has_places=True)
        x = self.node("Gather", words, "input_ids")
        cosines, sines = self._turns()
        mask = self._masked()
        for layer in range(layers):
            normed = self._norm(x)
            query, key, value = (
                by_heads(self, each, count, count * self._size)
                for each, count in self._projected(normed)
            )
            query, key = (rotated(self, each, cosines, sines, self._size) for each in (query, key))
            key, value = (
                self._cached(new, layer, name) for new, name in ((key, "key"), (value, "value"))
            )
            key, value = (self._repeated(each) for each in (key, value))
            keys = self.node("Transpose", key, perm=[0, 1, 3, 2])
            scores = self.node("MatMul", query, keys)
            scores = self.node("Mul", scores, self.number(self._size**-0.5))
            weights = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
            y = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
            y = self.node("Reshape", y, self.constant([0, -1, self._features]))
            y = self.linear(y, self._features, self._features, bias=False)
            x = self.node("Add", x, y)
            x = self.node("Add", x, self._gated(self._norm(x), inner))
        return self._finished(self._norm(x), words, vocabulary)

    def fused(self, layers: int, inner: int, vocabulary: int, most: int) -> onnx.ModelProto:
        words = self._inputs_and_words(vocabulary, has_places=False)
        x = self.node("Gather", words, "input_ids")
        turns = np.arange(most, dtype=np.float32)[:, None] * self._angles
        tables = [
            self.constant(function(turns).astype(np.float32)) for function in (np.cos, np.sin)
        ]
        seen = self.node("ReduceSum", "attention_mask", self.constant([1]), keepdims=0)
        seen = self.node("Cast", self.node("Sub", seen, self.constant([1])), to=TensorProto.INT32)
        total = self.node("Cast", self.length("attention_mask", 1), to=TensorProto.INT32)
        added = ""
        for layer in range(layers):
            x, normed = self._skip(x, added)
            (query, _), (key, _), (value, _) = self._projected(normed)
            past, present = (
                [f"{kind}.{layer}.{name}" for name in ("key", "value")]
                for kind in ("past_key_values", "present")
            )
            for name in past:
                self.input(name, 1, self._key_heads, _PAST, self._size)
            y, *caches = self.nodes(
                "GroupQueryAttention", query, key, value, *past, seen, total, *tables, count=3,
                domain=MICROSOFT, num_heads=self._heads, kv_num_heads=self._key_heads, do_rotary=1,
            )  # fmt: skip
            for made, name in zip(caches, present, strict=True):
                self.output(made, name, 1, self._key_heads, _TOTAL, self._size)
            y = self.linear(y, self._features, self._features, bias=False)
            x, normed = self._skip(x, y)
            added = self._gated(normed, inner)
        return self._finished(self._skip(x, added)[1], words, vocabulary)

    def _inputs_and_words(self, vocabulary: int, *, has_places: bool) -> str:
        self.input("input_ids", 1, _SEQUENCE, kind=TensorProto.INT64)
        self.input("attention_mask", 1, _TOTAL, kind=TensorProto.INT64)
        if has_places:
            self.input("position_ids", 1, _SEQUENCE, kind=TensorProto.INT64)
        return self.weight(vocabulary, self._features, scale=0.3, name="words")

    def _finished(self, x: str, words: str, vocabulary: int) -> onnx.ModelProto:
        y = self.node("MatMul", x, self.node("Transpose", words, perm=[1, 0]))
        self.output(y, "logits", 1, _SEQUENCE, vocabulary, first=True)
        return self.build()

    def _turns(self) -> tuple[str, str]:
        """Return cosines and sines of the angles of places, each twice, for all heads."""
        places = self.node("Unsqueeze", "position_ids", self.constant([1]))
        places = self.node("Cast", places, to=TensorProto.FLOAT)
        turns = self.node("MatMul", self.constant(self._angles[None, :, None]), places)
        turns = self.node("Transpose", turns, perm=[0, 2, 1])
        turns = self.node("Concat", turns, turns, axis=-1)
        cosines, sines = (
            self.node("Mul", self.node(function, turns), self.number(1))
            for function in ("Cos", "Sin")
        )
        axis = self.constant([1])
        return self.node("Unsqueeze", cosines, axis), self.node("Unsqueeze", sines, axis)

    def _masked(self) -> str:
        """Return what is added to scores: much less than 0 where a token is not to be seen."""
        total = self.length("attention_mask", 1)
        keys = self.node("Range", self.constant(0), total, self.constant(1))
        queries = self.node("Unsqueeze", "position_ids", self.constant([1, 3]))
        given = self.node("Unsqueeze", "attention_mask", self.constant([1, 2]))
        seen = self.node("LessOrEqual", keys, queries)
        seen = self.node("And", seen, self.node("Cast", given, to=TensorProto.BOOL))
        return self.node("Where", seen, self.number(0), self.number(-3.4028234663852886e38))

    def _projected(self, x: str) -> list[tuple[str, int]]:
        """Return queries, keys and values, each with its number of heads."""
        return [
            (self.linear(x, self._features, count * self._size, bias=False), count)
            for count in (self._heads, self._key_heads, self._key_heads)
        ]

    def _cached(self, new: str, layer: int, name: str) -> str:
        shape = (1, self._key_heads)
        past = self.input(f"past_key_values.{layer}.{name}", *shape, _PAST, self._size)
        made = self.node("Concat", past, new, axis=2)
        return self.output(made, f"present.{layer}.{name}", *shape, _TOTAL, self._size)

    def _repeated(self, x: str) -> str:
        """Return keys or values for every head of the queries."""
        times = self._heads // self._key_heads
        total = self.node("Unsqueeze", self.length("attention_mask", 1), self.constant([0]))
        one = self.constant([1])
        shape = self.node(
            "Concat", one, self.constant([self._key_heads]), self.constant([times]), total,
            self.constant([self._size]), axis=0,
        )  # fmt: skip
        x = self.node("Expand", self.node("Unsqueeze", x, self.constant([2])), shape)
        return self.node("Reshape", x, self.constant([0, self._heads, -1, self._size]))

    def _gated(self, x: str, inner: int) -> str:
        gate = self.linear(x, self._features, inner, bias=False)
        gate = self.node("Mul", gate, self.node("Sigmoid", gate))
        y = self.node("Mul", gate, self.linear(x, self._features, inner, bias=False))
        return self.linear(y, inner, self._features, bias=False)

    def _norm(self, x: str) -> str:
        """Divide the last axis by its root mean square, by operators."""
        mean = self.node("ReduceMean", self.node("Pow", x, self.number(2)), axes=[-1])
        root = self.node("Sqrt", self.node("Add", mean, self.number(1e-5)))
        y = self.node("Mul", x, self.node("Div", self.number(1), root))
        return self.node("Mul", self.constant(np.ones(self._features, np.float32)), y)

    def _skip(self, x: str, added: str) -> tuple[str, str]:
        """Return the sum of tokens and what is added, and that sum normalised."""
        scale = self.constant(np.ones(self._features, np.float32))
        if not added:
            y = self.node("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-5)
            return x, y
        y, _, _, total = self.nodes(
            "SkipSimplifiedLayerNormalization", x, added, scale, count=4, without=(1, 2),
            domain=MICROSOFT, epsilon=1e-5,
        )  # fmt: skip
        return total, y


def rotated(net: GraphWriter, x: str, cosines: str, sines: str, size: int) -> str:
    """Rotate elements with those half a head later, as models on PyTorch write it."""
    axis, step, ends = net.constant([3]), net.constant([1]), net.constant([size // 2])
    least, most = net.constant([0]), net.constant([np.iinfo(np.int64).max])
    first = net.node("Slice", x, least, ends, axis, step)
    second = net.node("Slice", x, ends, most, axis, step)
    turned = net.node("Concat", net.node("Neg", second), first, axis=-1)
    return net.node("Add", net.node("Mul", x, cosines), net.node("Mul", turned, sines))
