"""A decoder of tokens with a cache, whose lengths are open, as tools export it for generation."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.zoo.builder import IR_VERSION

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


class _Decoder:
    def __init__(self, layers: int, features: int, heads: int, vocabulary: int, most: int) -> None:
        self._features, self._heads, self._vocabulary = features, heads, vocabulary
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._inputs = [
            _info("input_ids", TensorProto.INT64, 1, _SEQUENCE),
            _info("attention_mask", TensorProto.INT64, 1, _TOTAL),
            _info("position_ids", TensorProto.INT64, 1, _SEQUENCE),
        ]
        self._outputs: list[onnx.ValueInfoProto] = []
        words = self._weight(vocabulary, features, scale=0.3, name="words")
        places = self._weight(most, features, scale=0.3, name="places")
        x = self._node(
            "Add",
            self._node("Gather", words, "input_ids"),
            self._node("Gather", places, "position_ids"),
        )
        self._mask = self._masked()
        for layer in range(layers):
            x = self._node("Add", x, self._attention(self._norm(x), layer))
            inner = self._linear(self._norm(x), features, 4 * features)
            inner = self._node("Mul", inner, self._node("Sigmoid", inner))
            x = self._node("Add", x, self._linear(inner, 4 * features, features))
        logits = self._node("Transpose", words, perm=[1, 0])
        self._nodes.append(helper.make_node("MatMul", [self._norm(x), logits], ["logits"]))
        self._outputs.insert(0, _info("logits", TensorProto.FLOAT, 1, _SEQUENCE, vocabulary))

    def build(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self._nodes, "language_model", self._inputs, self._outputs, [*self._weights.values()]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return model

    def _masked(self) -> str:
        """Return what is added to scores: much less than 0 where a token is not to be seen."""
        total = self._node("Gather", self._node("Shape", "attention_mask"), self._constant(1))
        keys = self._node("Range", self._constant(0), total, self._constant(1))
        queries = self._node("Unsqueeze", "position_ids", self._constant([1, 3]))
        seen = self._node("LessOrEqual", keys, queries)
        given = self._node("Unsqueeze", "attention_mask", self._constant([1, 2]))
        seen = self._node("And", seen, self._node("Cast", given, to=TensorProto.BOOL))
        none, much = (self._constant(np.float32(each)) for each in (0, -1e9))
        return self._node("Where", seen, none, much)

    def _attention(self, x: str, layer: int) -> str:
        size = self._features // self._heads
        split = self._constant([0, 0, self._heads, size])

        def part() -> str:
            whole = self._linear(x, self._features, self._features)
            return self._node("Transpose", self._node("Reshape", whole, split), perm=[0, 2, 1, 3])

        query, key, value = part(), part(), part()
        key, value = (
            self._cached(new, layer, name, size) for new, name in ((key, "key"), (value, "value"))
        )
        scores = self._node("MatMul", query, self._node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self._node("Mul", scores, self._constant(np.float32(size**-0.5)))
        weights = self._node("Softmax", self._node("Add", scores, self._mask), axis=-1)
        y = self._node("Transpose", self._node("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = self._constant([0, 0, self._features])
        return self._linear(self._node("Reshape", y, joined), self._features, self._features)

    def _cached(self, new: str, layer: int, name: str, size: int) -> str:
        """Return the keys or values of past tokens and of the new ones."""
        past, present = f"past_key_values.{layer}.{name}", f"present.{layer}.{name}"
        self._inputs.append(_info(past, TensorProto.FLOAT, 1, self._heads, _PAST, size))
        self._outputs.append(_info(present, TensorProto.FLOAT, 1, self._heads, _TOTAL, size))
        self._nodes.append(helper.make_node("Concat", [past, new], [present], axis=2))
        return present

    def _linear(self, x: str, depth: int, features: int) -> str:
        y = self._node("MatMul", x, self._weight(depth, features, scale=depth**-0.5))
        return self._node("Add", y, self._weight(features, scale=0.01))

    def _norm(self, x: str) -> str:
        scale = self._constant(np.ones(self._features, np.float32))
        return self._node("LayerNormalization", x, scale, axis=-1)

    def _node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def _weight(self, *shape: int, scale: float, name: str = "weight") -> str:
        values = scale * self._random.standard_normal(shape, np.float32)
        return self._constant(values.astype(np.float32), name)

    def _constant(self, value: object, name: str = "constant") -> str:
        array = np.asarray(value)
        name = f"{name}_{len(self._weights)}"
        self._weights[name] = numpy_helper.from_array(array, name)
        return name


def _info(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
