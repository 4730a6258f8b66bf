"""Small TFLite networks of quantised bytes: image operators one behind the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

_VALID = 1
_TYPES = {"float32": 0, "int32": 2, "int8": 9}


@dataclass
class Chain:
    """A network that grows layer by layer; every layer reads the last one's result.

    Args:
        shape: Of the input: 1, height, width, channels.
        seed: Of the weights.
    """

    shape: tuple[int, ...]
    seed: int = 0
    _tensors: list[tuple[Any, ...]] = field(default_factory=list)
    _operators: list[tuple[str, str, dict[str, Any], list[int], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self.last = self._tensor(self.shape, (0.05,), -3)

    def _tensor(
        self, shape: Sequence[int], scales: Sequence[float], zero: int, array: Any = None
    ) -> int:
        self._tensors.append((tuple(shape), tuple(scales), zero, array))
        return len(self._tensors) - 1

    def _constant(self, array: np.ndarray, scales: Sequence[float] = ()) -> int:
        return self._tensor(array.shape, scales, 0, array)

    def _add(self, kind: str, options: str, fields: dict[str, Any], inputs: list[int],
             shape: Sequence[int], scale: float, zero: int) -> "Chain":  # fmt: skip
        result = self._tensor(shape, (scale,), zero)
        self._operators.append((kind, options, fields, inputs, result))
        self.last, self.shape = result, tuple(shape)
        return self

    def _weights(self, shape: tuple[int, ...], outputs: int) -> list[int]:
        own = self._tensors[self.last][1][0]
        scales = tuple(map(float, self._random.uniform(0.004, 0.02, outputs)))
        filter_ = self._random.integers(-127, 128, shape).astype(np.int8)
        bias = self._random.integers(-900, 900, outputs).astype(np.int32)
        return [self._constant(filter_, scales),
                self._constant(bias, [each * own for each in scales])]  # fmt: skip

    def _window(self, stride: int) -> dict[str, Any]:
        return {"strideH": stride, "strideW": stride, "padding": 0}

    def conv(self, outputs: int, kernel: int = 3, stride: int = 1) -> "Chain":
        """Add a convolution of padded windows with ReLU."""
        _, height, width, inputs = self.shape
        weights = self._weights((outputs, kernel, kernel, inputs), outputs)
        shape = (1, -(-height // stride), -(-width // stride), outputs)
        fields = {**self._window(stride), "fusedActivationFunction": 1}
        return self._add("CONV_2D", "Conv2DOptions", fields, [self.last, *weights], shape,
                         0.06, -128)  # fmt: skip

    def depthwise(self, stride: int = 1, *, is_whole: bool = False) -> "Chain":
        """Add a depthwise convolution: of padded windows of 3x3, or of one window, the image."""
        _, height, width, channels = self.shape
        window = (height, width) if is_whole else (3, 3)
        weights = self._weights((1, *window, channels), channels)
        shape = (1, -(-height // stride), -(-width // stride), channels)
        fields = {**self._window(stride), "depthMultiplier": 1}
        if is_whole:
            shape, fields["padding"] = (1, 1, 1, channels), _VALID
        return self._add("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", fields,
                         [self.last, *weights], shape, 0.05, 4)  # fmt: skip

    def pool(self, kind: str = "MAX_POOL_2D", size: int = 2) -> "Chain":
        """Add a pool of windows side by side."""
        _, height, width, channels = self.shape
        fields = {**self._window(size), "filterHeight": size, "filterWidth": size}
        shape = (1, -(-height // size), -(-width // size), channels)
        _, scales, zero, _ = self._tensors[self.last]
        return self._add(kind, "Pool2DOptions", fields, [self.last], shape, scales[0], zero)

    def add(self, other: int) -> "Chain":
        """Add an earlier result."""
        return self._add("ADD", "AddOptions", {}, [self.last, other], self.shape, 0.09, -7)

    def classify(self, outputs: int) -> "Chain":
        """Add the mean of the image, a product and softmax."""
        channels = self.shape[-1]
        axes = self._constant(np.array([1, 2], np.int32))
        self._add("MEAN", "ReducerOptions", {"keepDims": False}, [self.last, axes],
                  (1, channels), 0.04, 2)  # fmt: skip
        own = self._tensors[self.last][1][0]
        filter_ = self._random.integers(-127, 128, (outputs, channels)).astype(np.int8)
        bias = self._random.integers(-900, 900, outputs).astype(np.int32)
        weights = [self._constant(filter_, (0.01,)), self._constant(bias, (0.01 * own,))]
        self._add("FULLY_CONNECTED", "FullyConnectedOptions", {}, [self.last, *weights],
                  (1, outputs), 0.12, 9)  # fmt: skip
        return self._add("SOFTMAX", "SoftmaxOptions", {"beta": 0.05}, [self.last],
                         (1, outputs), 1 / 256, -128)  # fmt: skip

    def to_bytes(self) -> bytes:
        """Return the file."""
        schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
        flatbuffers = pytest.importorskip("flatbuffers")
        model, graph = schema.ModelT(), schema.SubGraphT()
        model.version, model.buffers, graph.tensors, graph.operators = (
            3,
            [schema.BufferT()],
            [],
            [],
        )
        model.operatorCodes = []
        for number, (shape, scales, zero, array) in enumerate(self._tensors):
            tensor = schema.TensorT()
            tensor.name, tensor.shape, tensor.hasRank = f"t{number}".encode(), list(shape), True
            tensor.type = _TYPES["int8" if array is None else array.dtype.name]
            tensor.buffer = 0
            if array is not None:
                buffer = schema.BufferT()
                buffer.data = np.frombuffer(array.tobytes(), np.uint8)
                model.buffers.append(buffer)
                tensor.buffer = len(model.buffers) - 1
            if scales:
                tensor.quantization = schema.QuantizationParametersT()
                tensor.quantization.scale = list(scales)
                tensor.quantization.zeroPoint = [zero] * len(scales)
                is_depthwise = len(shape) == 4 and shape[0] == 1 and array is not None
                tensor.quantization.quantizedDimension = 3 if is_depthwise else 0
            graph.tensors.append(tensor)
        for kind, options, fields, inputs, result in self._operators:
            code = schema.OperatorCodeT()
            code.builtinCode = getattr(schema.BuiltinOperator, kind)
            code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
            model.operatorCodes.append(code)
            operator = schema.OperatorT()
            operator.opcodeIndex = len(model.operatorCodes) - 1
            operator.inputs, operator.outputs = inputs, [result]
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            operator.builtinOptions = getattr(schema, f"{options}T")()
            for name, value in fields.items():
                setattr(operator.builtinOptions, name, value)
            graph.operators.append(operator)
        graph.inputs, graph.outputs = [0], [self.last]
        model.subgraphs = [graph]
        builder = flatbuffers.Builder()
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def mobile(seed: int = 0) -> bytes:
    """Return a network of separable convolutions, whose peak an overlap lowers."""
    chain = Chain((1, 24, 24, 3), seed).conv(8, stride=2)
    chain = chain.depthwise().conv(16, 1).depthwise(2).conv(24, 1)
    return chain.depthwise().conv(24, 1).classify(5).to_bytes()


def residual(seed: int = 0) -> bytes:
    """Return a network with a sum, a pool and windows of 3x3."""
    chain = Chain((1, 17, 15, 2), seed).conv(6)
    before = chain.last
    chain = chain.conv(6).conv(6).add(before).pool().conv(9, stride=2)
    return chain.pool("AVERAGE_POOL_2D").classify(4).to_bytes()


def expanding(seed: int = 0) -> bytes:
    """Return a network with a block that has six times the channels of what is around it."""
    chain = Chain((1, 25, 23, 4), seed).conv(4, 7)
    return chain.conv(24, 1).depthwise(2).conv(4, 1).classify(5).to_bytes()


def gathered(seed: int = 0) -> bytes:
    """Return a network that ends in a depthwise convolution with the image as its window."""
    chain = Chain((1, 9, 9, 3), seed).conv(8)
    return chain.conv(64, 1).depthwise(is_whole=True).classify(5).to_bytes()
