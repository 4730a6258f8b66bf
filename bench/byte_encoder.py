"""Encoders of text as TFLite models of 8-bit integers, as its converter writes them."""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.sweep.tflite_file import Operator, Options, Tensor, constant, file_of_network

Floats: TypeAlias = NDArray[np.float32]
_EPSILON = 1e-3
_PROBABILITIES = (0.0, 255 / 256)
_PLAIN = {"fusedActivationFunction": 0}


def byte_encoder(
    tokens: int = 512, layers: int = 2, features: int = 128, heads: int = 2, seed: int = 0
) -> bytes:
    """Return the layers of an encoder behind its embedding, of BERT-tiny's shape.

    Weights are random, ranges those of the floats that a random input gives. Norms are written
    out, the root of a head's size is part of the weights of the queries.

    Source: Turc et al. 2019, arXiv 1908.08962.
    """
    net = _Encoder(seed)
    x = net.input((1, tokens, features))
    for _ in range(layers):
        x = net.norm(net.add(x, net.attention(x, heads)))
        inner = net.gelu(net.linear(x, 4 * features))
        x = net.norm(net.add(x, net.linear(inner, features)))
    return net.file(x)


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A tensor of bytes, and the floats of which its range was found."""

    tensor: Tensor
    floats: Floats


class _Encoder:
    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._operators: list[Operator] = []
        self._inputs: list[Tensor] = []

    def file(self, result: _Value) -> bytes:
        return file_of_network(self._operators, self._inputs, [result.tensor])

    def input(self, shape: tuple[int, ...]) -> _Value:
        made = _value(self._random.normal(0, 1, shape))
        self._inputs.append(made.tensor)
        return made

    def attention(self, x: _Value, heads: int) -> _Value:
        _, tokens, features = x.floats.shape
        size = features // heads
        # Such queries and keys that a token attends to few others, as trained ones do.
        query, key, value = (
            self._by_heads(self.linear(x, features, gain=gain), heads)
            for gain in (3 / math.sqrt(size), 3, 1)
        )
        scores = self._emit(
            "BATCH_MATMUL", (query, key), query.floats @ key.floats.swapaxes(2, 3),
            ("BatchMatMulOptions", {"adjY": True}),
        )  # fmt: skip
        powers = np.exp(scores.floats - scores.floats.max(-1, keepdims=True))
        weights = self._emit(
            "SOFTMAX", (scores,), powers / powers.sum(-1, keepdims=True),
            ("SoftmaxOptions", {"beta": 1.0}), _PROBABILITIES,
        )  # fmt: skip
        mixed = self._emit(
            "BATCH_MATMUL", (weights, value), weights.floats @ value.floats,
            ("BatchMatMulOptions", {}),
        )  # fmt: skip
        turned = self._moved("TRANSPOSE", mixed, (0, 2, 1, 3), None)
        return self.linear(self._reshaped(turned, (1, tokens, features)), features)

    def linear(self, x: _Value, outputs: int, *, gain: float = 1.0) -> _Value:
        depth = x.floats.shape[-1]
        weights = self._random.normal(0, gain / math.sqrt(depth), (outputs, depth))
        bias = self._random.normal(0, 0.1 * gain, outputs)
        scales = np.abs(weights).max(axis=1) / 127
        of_sums = scales * x.tensor.scales[0]
        operands = (
            constant(
                np.rint(weights / scales[:, None]).astype(np.int8), scales=tuple(scales.tolist())
            ),
            constant(np.rint(bias / of_sums).astype(np.int32), scales=tuple(of_sums.tolist())),
        )
        return self._emit(
            "FULLY_CONNECTED", (x, *operands), x.floats @ weights.T + bias,
            ("FullyConnectedOptions", {**_PLAIN, "keepNumDims": True}),
        )  # fmt: skip

    def add(self, one: _Value, other: _Value) -> _Value:
        return self._emit("ADD", (one, other), one.floats + other.floats, ("AddOptions", _PLAIN))

    def gelu(self, x: _Value) -> _Value:
        erf = np.vectorize(math.erf)(x.floats / math.sqrt(2))
        return self._emit("GELU", (x,), x.floats * (1 + erf) / 2, ("GeluOptions", {}))

    def norm(self, x: _Value) -> _Value:
        """Return rows less their mean, over their deviation."""
        axis, means = constant(np.array([2], np.int32)), ("ReducerOptions", {"keepDims": True})
        mean = self._emit("MEAN", (x, axis), x.floats.mean(-1, keepdims=True), means)
        less = self._emit("SUB", (x, mean), x.floats - mean.floats, ("SubOptions", _PLAIN))
        squares = self._emit(
            "SQUARED_DIFFERENCE", (x, mean), np.square(less.floats),
            ("SquaredDifferenceOptions", {}),
        )  # fmt: skip
        variance = self._emit(
            "MEAN", (squares, axis), squares.floats.mean(-1, keepdims=True), means
        )
        epsilon = constant(np.array([127], np.int8), scales=(_EPSILON / 127,))
        total = self._emit(
            "ADD", (variance, epsilon), variance.floats + _EPSILON, ("AddOptions", _PLAIN)
        )
        root = self._emit("RSQRT", (total,), 1 / np.sqrt(total.floats), None)
        return self._emit("MUL", (less, root), less.floats * root.floats, ("MulOptions", _PLAIN))

    def _by_heads(self, x: _Value, heads: int) -> _Value:
        _, tokens, features = x.floats.shape
        parts = self._reshaped(x, (1, tokens, heads, features // heads))
        return self._moved("TRANSPOSE", parts, (0, 2, 1, 3), None)

    def _reshaped(self, x: _Value, shape: tuple[int, ...]) -> _Value:
        return self._moved("RESHAPE", x, shape, ("ReshapeOptions", {"newShape": list(shape)}))

    def _moved(self, code: str, x: _Value, numbers: tuple[int, ...], options: Options) -> _Value:
        floats = x.floats.transpose(numbers) if options is None else x.floats.reshape(numbers)
        made = Tensor(floats.shape, "int8", scales=x.tensor.scales, zero_point=x.tensor.zero_point)
        target = constant(np.array(numbers, np.int32))
        self._operators.append(Operator(code, (x.tensor, target), (made,), options))
        return _Value(made, floats)

    def _emit(
        self,
        code: str,
        operands: tuple[_Value | Tensor, ...],
        floats: NDArray[Any],
        options: Options,
        range_: tuple[float, float] | None = None,
    ) -> _Value:
        made = _value(floats, range_)
        inputs = tuple(each.tensor if isinstance(each, _Value) else each for each in operands)
        self._operators.append(Operator(code, inputs, (made.tensor,), options))
        return made


def _value(floats: NDArray[Any], range_: tuple[float, float] | None = None) -> _Value:
    """Return floats as a tensor of bytes, of their range and 0 if none is given."""
    least, most = range_ or (min(float(floats.min()), 0.0), max(float(floats.max()), 0.0))
    scale = (most - least) / 255
    tensor = Tensor(floats.shape, "int8", scales=(scale,), zero_point=round(-128 - least / scale))
    return _Value(tensor, floats.astype(np.float32))
