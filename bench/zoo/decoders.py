"""A decoder of tokens with a cache, whose lengths are open, as tools export it for generation."""

import numpy as np
import onnx
from onnx import TensorProto

from bench.zoo.writer import GraphWriter

_SEQUENCE, _PAST, _TOTAL = "sequence_length", "past_sequence_length", "total_sequence_length"


def language_model(
    layers: int = 4, features: int = 256, heads: int = 4, vocabulary: int = 2000, most: int = 1024
) -> onnx.ModelProto:
    """Return a decoder with learnt positions and normalised inputs, of the kind of GPT-2.

    Inputs are `input_ids`, `attention_mask`, `position_ids`, and keys and values of past tokens;
    outputs `logits`, and keys and values of all tokens. Embeddings are the last projection too.

    Args:
        vocabulary: Number of tokens.
        most: Most tokens of a text.

    Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners.
    """
    return _Decoder(layers, features, heads, vocabulary, most).build()


class _Decoder(GraphWriter):
    def __init__(self, layers: int, features: int, heads: int, vocabulary: int, most: int) -> None:
        super().__init__("language_model")
        self._features, self._heads = features, heads
        for name, length in (
            ("input_ids", _SEQUENCE), ("attention_mask", _TOTAL), ("position_ids", _SEQUENCE)
        ):  # fmt: skip
            self.input(name, 1, length, kind=TensorProto.INT64)
        words = self.weight(vocabulary, features, scale=0.3, name="words")
        places = self.weight(most, features, scale=0.3, name="places")
        x = self.node(
            "Add",
            self.node("Gather", words, "input_ids"),
            self.node("Gather", places, "position_ids"),
        )
        self._mask = self._masked()
        for layer in range(layers):
            x = self.node("Add", x, self._attention(self._norm(x), layer))
            inner = self.linear(self._norm(x), features, 4 * features)
            inner = self.node("Mul", inner, self.node("Sigmoid", inner))
            x = self.node("Add", x, self.linear(inner, 4 * features, features))
        logits = self.node("Transpose", words, perm=[1, 0])
        y = self.node("MatMul", self._norm(x), logits)
        self.output(y, "logits", 1, _SEQUENCE, vocabulary, first=True)

    def _masked(self) -> str:
        """Return what is added to scores: much less than 0 where a token is not to be seen."""
        total = self.node("Gather", self.node("Shape", "attention_mask"), self.constant(1))
        keys = self.node("Range", self.constant(0), total, self.constant(1))
        queries = self.node("Unsqueeze", "position_ids", self.constant([1, 3]))
        seen = self.node("LessOrEqual", keys, queries)
        given = self.node("Unsqueeze", "attention_mask", self.constant([1, 2]))
        seen = self.node("And", seen, self.node("Cast", given, to=TensorProto.BOOL))
        none, much = (self.number(each) for each in (0, -1e9))
        return self.node("Where", seen, none, much)

    def _attention(self, x: str, layer: int) -> str:
        size = self._features // self._heads
        split = self.constant([0, 0, self._heads, size])

        def part() -> str:
            whole = self.linear(x, self._features, self._features)
            return self.node("Transpose", self.node("Reshape", whole, split), perm=[0, 2, 1, 3])

        query, key, value = part(), part(), part()
        key, value = (
            self._cached(new, layer, name, size) for new, name in ((key, "key"), (value, "value"))
        )
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.constant(np.float32(size**-0.5)))
        weights = self.node("Softmax", self.node("Add", scores, self._mask), axis=-1)
        y = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = self.constant([0, 0, self._features])
        return self.linear(self.node("Reshape", y, joined), self._features, self._features)

    def _cached(self, new: str, layer: int, name: str, size: int) -> str:
        """Return the keys or values of past tokens and of the new ones."""
        past, present = f"past_key_values.{layer}.{name}", f"present.{layer}.{name}"
        self.input(past, 1, self._heads, _PAST, size)
        self.output(self.node("Concat", past, new, axis=2), present, 1, self._heads, _TOTAL, size)
        return present

    def _norm(self, x: str) -> str:
        scale = self.constant(np.ones(self._features, np.float32))
        return self.node("LayerNormalization", x, scale, axis=-1)
