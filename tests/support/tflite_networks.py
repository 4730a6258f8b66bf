"""TFLite networks of several operators, of the size that microcontrollers run.

Weights are random; the scale of each result is chosen so that its values spread over their type.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from support.tflite_operator import TYPES, Given, weights

Options = tuple[str, Mapping[str, object]]
RELU, RELU6 = 1, 3
_SAME, _VALID = 0, 1


class NetworkMaker:
    """Makes a network of one type of element, layer by layer.

    The type is `int8`, `uint8`, `float32`, or `int16` with weights of 8 bits. Layers take and
    return indexes of tensors.
    """

    def __init__(self, dtype: str = "int8", seed: int = 0) -> None:
        self._schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
        self._dtype = dtype
        self._random = np.random.default_rng(seed)
        self._tensors: list[Given] = []
        self._steps: list[tuple[str, list[int], list[int], Options | None]] = []

    def input(self, *shape: int) -> int:
        return self._add(self._activation(shape, 0.04, 3))

    def convolution(
        self, x: int, channels: int, kernel: int, stride: int = 1, *, activation: int = RELU6
    ) -> int:
        """With padding, one scale a channel."""
        given = self._tensors[x]
        shape = (channels, kernel, kernel, given.shape[3])
        options = {"padding": _SAME, "strideH": stride, "strideW": stride,
                   "dilationHFactor": 1, "dilationWFactor": 1,
                   "fusedActivationFunction": activation}  # fmt: skip
        made = self._strided(given.shape, stride, channels)
        return self._weighted("CONV_2D", ("Conv2DOptions", options), x, shape, made, 0)

    def depthwise(self, x: int, stride: int = 1) -> int:
        """Three by three, with padding, one scale a channel."""
        given = self._tensors[x]
        channels = given.shape[3]
        options = {"padding": _SAME, "strideH": stride, "strideW": stride, "depthMultiplier": 1,
                   "dilationHFactor": 1, "dilationWFactor": 1,
                   "fusedActivationFunction": RELU}  # fmt: skip
        made = self._strided(given.shape, stride, channels)
        kind = ("DepthwiseConv2DOptions", options)
        return self._weighted("DEPTHWISE_CONV_2D", kind, x, (1, 3, 3, channels), made, 3)

    def activation(self, x: int, kind: str = "LOGISTIC") -> int:
        """A function of each element, whose results are from 0 to 1."""
        made = self._add(self._activation(self._tensors[x].shape, 1 / 256, -128, exact=True))
        self._steps.append((kind, [x], [made], None))
        return made

    def fully_connected(self, x: int, units: int, *, activation: int = 0) -> int:
        given = self._tensors[x]
        batch = given.shape[0]
        shape = (units, int(np.prod(given.shape[1:])))
        options = ("FullyConnectedOptions", {"fusedActivationFunction": activation})
        return self._weighted("FULLY_CONNECTED", options, x, shape, (batch, units), None)

    def pool(self, x: int, kind: str, height: int, width: int) -> int:
        """Windows side by side; `kind` is `MAX` or `AVERAGE`."""
        given = self._tensors[x]
        options = {"padding": _VALID, "strideH": height, "strideW": width,
                   "filterHeight": height, "filterWidth": width}  # fmt: skip
        shape = (1, given.shape[1] // height, given.shape[2] // width, given.shape[3])
        made = self._add(self._like(given, shape))
        self._steps.append((f"{kind}_POOL_2D", [x], [made], ("Pool2DOptions", options)))
        return made

    def mean(self, x: int) -> int:
        """Of an image, one number a channel."""
        given = self._tensors[x]
        axes = self._add(weights(np.array([1, 2], np.int32)))
        made = self._add(self._activation((1, given.shape[3]), 0.8 * self._scale(x), -20))
        self._steps.append(("MEAN", [x, axes], [made], ("ReducerOptions", {"keepDims": False})))
        return made

    def add(self, x: int, y: int, *, activation: int = RELU) -> int:
        given = self._tensors[x]
        scale = 1.3 * max(self._scale(x), self._scale(y))
        made = self._add(self._activation(given.shape, scale, -11))
        options = ("AddOptions", {"fusedActivationFunction": activation})
        self._steps.append(("ADD", [x, y], [made], options))
        return made

    def of_two(
        self, kind: str, x: int, y: int, scale: float, zero_point: int = -9,
        options: Options | None = None, shape: Sequence[int] | None = None,
    ) -> int:  # fmt: skip
        """Any operator of two tensors; the result broadcasts unless its shape is given."""
        shapes = self._tensors[x].shape, self._tensors[y].shape
        made = self._add(
            self._activation(shape or np.broadcast_shapes(*shapes), scale, zero_point)
        )
        self._steps.append((kind, [x, y], [made], options))
        return made

    def constant(self, values: Sequence[int], scale: float) -> int:
        """Bytes, or floats for them."""
        if self._dtype == "float32":
            return self._add(weights(np.array(values, np.float32) * np.float32(scale)))
        return self._add(weights(np.array(values, np.int8), scales=(scale,)))

    def transpose(self, x: int, *order: int) -> int:
        given = self._tensors[x]
        axes = self._add(weights(np.array(order, np.int32)))
        made = self._add(self._like(given, [given.shape[axis] for axis in order]))
        self._steps.append(("TRANSPOSE", [x, axes], [made], None))
        return made

    def normalised(self, x: int) -> int:
        """Each row less its mean and over its deviation, as converters write it."""
        width, options = self._tensors[x].shape[-1], ("ReducerOptions", {"keepDims": True})
        axis, scale = self._add(weights(np.array([-1], np.int32))), self._scale(x)
        mean = self._add(self._activation((*self._tensors[x].shape[:-1], 1), scale / 4, 2))
        self._steps.append(("MEAN", [x, axis], [mean], options))
        squares = self.of_two("SQUARED_DIFFERENCE", x, mean, 100 * scale**2, -128)
        variance = self._add(self._activation(self._tensors[mean].shape, 30 * scale**2, -128))
        self._steps.append(("MEAN", [squares, axis], [variance], options))
        epsilon = self.constant([1], 30 * scale**2)
        total = self.of_two("ADD", variance, epsilon, 31 * scale**2, -128)
        root = self._add(self._activation(self._tensors[mean].shape, 0.0007 / scale, -128))
        self._steps.append(("RSQRT", [total], [root], None))
        factors = self.constant(self._random.integers(60, 127, width).tolist(), 0.01)
        factor = self.of_two("MUL", root, factors, 0.0007 / scale, -128)
        one = self.of_two("MUL", x, factor, 0.03, 0)
        shift = self.of_two("MUL", mean, factor, 0.02, 0)
        terms = self.constant(self._random.integers(-99, 99, width).tolist(), 0.01)
        other = self.of_two("SUB", terms, shift, 0.025, 0)
        return self.of_two("ADD", one, other, 0.03, 0)

    def reshape(self, x: int, *shape: int) -> int:
        made = self._add(self._like(self._tensors[x], shape))
        target = self._add(weights(np.array(shape, np.int32)))
        options = ("ReshapeOptions", {"newShape": list(shape)})
        self._steps.append(("RESHAPE", [x, target], [made], options))
        return made

    def softmax(self, x: int) -> int:
        lowest = -128 if self._dtype == "int8" else 0
        made = self._add(self._activation(self._tensors[x].shape, 1 / 256, lowest, exact=True))
        self._steps.append(("SOFTMAX", [x], [made], ("SoftmaxOptions", {"beta": 1.0})))
        return made

    def svdf(self, x: int, units: int, memory: int, rank: int = 1) -> int:
        """A layer that keeps a state, of 16 bits where the network is of 8."""
        given = self._tensors[x]
        filters, features = units * rank, given.shape[1]
        options = ("SVDFOptions", {"rank": rank, "fusedActivationFunction": RELU})
        if self._dtype == "float32":
            shapes = [(filters, features), (filters, memory), (units,)]
            matrices = [self._floats(each, each[-1]) for each in shapes]
            state = Given((1, memory * filters), is_variable=True)
            made = Given((1, units))
        else:
            feature, state_scale, time = 0.002, 0.0004, 0.00002
            matrices = [
                weights(self._drawn((filters, features)), scales=(feature,)),
                weights(self._random.integers(-32767, 32768, (filters, memory)).astype(np.int16),
                        scales=(time,)),
                weights(self._random.integers(-40_000_000, 40_000_000, units).astype(np.int32),
                        scales=(state_scale * time,)),
            ]  # fmt: skip
            shape = (1, memory * filters)
            state = Given(shape, "int16", None, (state_scale,), is_variable=True)
            made = self._activation((1, units), state_scale * time * 6e6, -20)
        read = [x, *(self._add(each) for each in (*matrices, state))]
        result = self._add(made)
        self._steps.append(("SVDF", read, [result], options))
        return result

    def model(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Return the file."""
        schema = self._schema
        flatbuffers = pytest.importorskip("flatbuffers")
        model, graph = schema.ModelT(), schema.SubGraphT()
        model.version, model.buffers = 3, [schema.BufferT()]
        graph.tensors = [self._tensor(model, n, given) for n, given in enumerate(self._tensors)]
        codes = list(dict.fromkeys(code for code, *_ in self._steps))
        model.operatorCodes = [self._code(code) for code in codes]
        graph.operators = [self._operator(codes, *step) for step in self._steps]
        graph.inputs, graph.outputs = list(inputs), list(outputs)
        model.subgraphs = [graph]
        builder = flatbuffers.Builder()
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _tensor(self, model: Any, index: int, given: Given) -> Any:
        tensor = self._schema.TensorT()
        tensor.name, tensor.shape = f"t{index}".encode(), list(given.shape)
        tensor.type, tensor.isVariable, tensor.buffer = TYPES[given.dtype], given.is_variable, 0
        if given.array is not None:
            buffer = self._schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(given.array).tobytes(), np.uint8)
            model.buffers.append(buffer)
            tensor.buffer = len(model.buffers) - 1
        if given.scales:
            told = tensor.quantization = self._schema.QuantizationParametersT()
            told.scale, told.zeroPoint = list(given.scales), [given.zero_point] * len(given.scales)
            told.quantizedDimension = given.axis
        return tensor

    def _code(self, name: str) -> Any:
        code = self._schema.OperatorCodeT()
        code.builtinCode = getattr(self._schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        return code

    def _operator(
        self, codes: list[str], code: str, inputs: list[int], outputs: list[int],
        options: Options | None,
    ) -> Any:  # fmt: skip
        operator = self._schema.OperatorT()
        operator.opcodeIndex = codes.index(code)
        operator.inputs, operator.outputs = inputs, outputs
        if options is not None:
            kind, fields = options
            operator.builtinOptionsType = getattr(self._schema.BuiltinOptions, kind)
            operator.builtinOptions = getattr(self._schema, f"{kind}T")()
            for name, value in fields.items():
                assert hasattr(operator.builtinOptions, name)
                setattr(operator.builtinOptions, name, value)
        return operator

    def _weighted(
        self, code: str, options: Options, x: int, shape: tuple[int, ...],
        made: tuple[int, ...], axis: int | None,
    ) -> int:  # fmt: skip
        """Add a layer of weights and biases, with a scale for each index of the axis."""
        channels = made[-1]
        fan_in = int(np.prod(shape)) // channels
        if self._dtype == "float32":
            read = [x, self._add(self._floats(shape, fan_in)),
                    self._add(self._floats((channels,), 1))]  # fmt: skip
            result = self._add(Given(made))
            self._steps.append((code, read, [result], options))
            return result
        per_channel = axis is not None and self._dtype != "uint8"
        # Results are then about as large as operands.
        spread = 1 / (73 * np.sqrt(fan_in))
        scales = spread * self._random.uniform(0.5, 1.5, channels if per_channel else 1)
        told = tuple(float(np.float32(scale)) for scale in scales)
        zero_point = 121 if self._dtype == "uint8" else 0
        products = tuple(self._scale(x) * scale for scale in told)
        size = float(np.mean(products)) * 73 * 60 * self._steps_each * np.sqrt(fan_in)
        bias = self._random.normal(0, 0.3 * size, channels) / np.asarray(products)
        kernel = weights(self._drawn(shape), scales=told, zero_point=zero_point,
                         axis=(axis or 0) if per_channel else 0)  # fmt: skip
        wide = np.int64 if self._dtype == "int16" else np.int32
        biases = weights(bias.astype(wide), scales=products)
        read = [x, self._add(kernel), self._add(biases)]
        result = self._add(self._activation(made, size / 50, -9))
        self._steps.append((code, read, [result], options))
        return result

    @staticmethod
    def _strided(shape: Sequence[int], stride: int, channels: int) -> tuple[int, ...]:
        return (shape[0], -(-shape[1] // stride), -(-shape[2] // stride), channels)

    def _add(self, given: Given) -> int:
        self._tensors.append(given)
        return len(self._tensors) - 1

    def _scale(self, index: int) -> float:
        scales = self._tensors[index].scales
        return scales[0] if scales else 1.0

    def _drawn(self, shape: Sequence[int]) -> np.ndarray:
        lowest, beyond = (0, 256) if self._dtype == "uint8" else (-127, 128)
        return self._random.integers(lowest, beyond, shape).astype(
            "uint8" if self._dtype == "uint8" else "int8"
        )

    def _floats(self, shape: Sequence[int], fan_in: int) -> Given:
        return weights(self._random.normal(0, fan_in**-0.5, shape).astype(np.float32))

    def _activation(
        self, shape: Sequence[int], scale: float, zero_point: int, *, exact: bool = False
    ) -> Given:
        """Return a tensor that is computed; a zero point of int8 unless it is exact."""
        if self._dtype == "float32":
            return Given(shape)
        if self._dtype == "int16":
            told = (2.0**-15 if exact else float(np.float32(scale / self._steps_each)),)
            return Given(shape, "int16", None, told, 0)
        shift = 128 if self._dtype == "uint8" and not exact else 0
        told = (float(np.float32(scale)),)
        return Given(shape, self._dtype, None, told, zero_point + shift)

    @property
    def _steps_each(self) -> int:
        """Integers of its activations for one of 8 bits."""
        return 256 if self._dtype == "int16" else 1

    def _like(self, given: Given, shape: Sequence[int]) -> Given:
        return Given(shape, given.dtype, None, given.scales, given.zero_point)


def classifier(dtype: str = "int8") -> bytes:
    """Two tensors of 6 KiB at once as int8: an arena of 12 to 13 KiB, on a chip that has 16."""
    maker = NetworkMaker(dtype)
    x = maker.input(1, 24, 32, 1)
    first = maker.convolution(x, 8, 3)
    inner = maker.convolution(maker.depthwise(first), 8, 1, activation=0)
    both = maker.add(first, inner)
    halved = maker.pool(both, "MAX", 2, 2)
    deep = maker.convolution(halved, 16, 1)
    mean = maker.pool(deep, "AVERAGE", 4, 4)
    scores = maker.fully_connected(maker.reshape(mean, 1, 192), 5)
    return maker.model([x], [maker.softmax(scores)])


def detector() -> bytes:
    """A picture of 96 by 96 pixels: 55,296 B at once, on a chip that has 64 KiB."""
    maker = NetworkMaker()
    x = maker.input(1, 96, 96, 3)
    wide = maker.convolution(maker.depthwise(maker.convolution(x, 8, 3, 2)), 16, 1)
    less = maker.convolution(maker.depthwise(wide, 2), 32, 1)
    least = maker.convolution(maker.depthwise(less, 2), 32, 1)
    mean = maker.pool(least, "AVERAGE", 4, 4)
    scores = maker.fully_connected(maker.reshape(mean, 1, 288), 2)
    return maker.model([x], [maker.softmax(scores)])


def tower(dtype: str = "int8") -> bytes:
    """Strides, a sum of two branches, and a mean that can be summed up row by row."""
    maker = NetworkMaker(dtype, seed=3)
    x = maker.input(1, 22, 14, 3)
    first = maker.convolution(x, 8, 3, 2)
    inner = maker.convolution(maker.depthwise(maker.convolution(first, 12, 1)), 8, 1, activation=0)
    both = maker.add(first, inner)
    deep = maker.convolution(maker.depthwise(both, 2), 16, 1)
    return maker.model([x], [maker.softmax(maker.fully_connected(maker.mean(deep), 4))])


def summed(dtype: str = "int8") -> bytes:
    """A sum of two tensors, and a mean of it: it has no channels to make in groups."""
    maker = NetworkMaker(dtype, seed=6)
    x = maker.input(1, 22, 14, 3)
    first = maker.convolution(x, 12, 3)
    both = maker.add(first, maker.convolution(first, 12, 1, activation=0))
    return maker.model([x], [maker.softmax(maker.fully_connected(maker.mean(both), 4))])


def pooled(dtype: str = "int8") -> bytes:
    """Largest values, then averages over all rows of some columns."""
    maker = NetworkMaker(dtype, seed=4)
    x = maker.input(1, 26, 18, 2)
    halved = maker.pool(maker.convolution(x, 10, 3), "MAX", 2, 2)
    means = maker.pool(maker.convolution(halved, 12, 3), "AVERAGE", 13, 3)
    scores = maker.fully_connected(maker.reshape(means, 1, 36), 5)
    return maker.model([x], [maker.softmax(scores)])


def tall(dtype: str = "int8") -> bytes:
    """An image whose rows pass one by one: 36 KiB at once, a few KiB in bands."""
    maker = NetworkMaker(dtype, seed=5)
    x = maker.input(1, 64, 48, 1)
    wide = maker.convolution(maker.depthwise(maker.convolution(x, 12, 3)), 16, 1)
    less = maker.convolution(maker.depthwise(wide, 2), 24, 1)
    both = maker.add(less, maker.convolution(less, 24, 3, activation=0))
    deep = maker.convolution(maker.depthwise(both, 2), 32, 1)
    return maker.model([x], [maker.softmax(maker.fully_connected(maker.mean(deep), 5))])


def encoder(dtype: str = "int8", seed: int = 6) -> bytes:
    """A block of a transformer: two heads of attention, a gate of two activations, an MLP."""
    maker, tokens, width, heads = NetworkMaker(dtype, seed), 12, 16, 2
    x = maker.input(tokens, width)
    query, key, value = (
        maker.transpose(
            maker.reshape(maker.fully_connected(x, width), 1, tokens, heads, width // heads),
            0, 2, 1, 3,
        )
        for _ in range(3)
    )  # fmt: skip
    turned = ("BatchMatMulOptions", {"adjX": False, "adjY": True})
    scores = maker.softmax(
        maker.of_two("BATCH_MATMUL", query, key, 0.4, 5, turned, (1, heads, tokens, tokens))
    )
    mixed = maker.of_two(
        "BATCH_MATMUL", scores, value, 0.03, -3, ("BatchMatMulOptions", {}),
        (1, heads, tokens, width // heads),
    )  # fmt: skip
    rows = maker.reshape(maker.transpose(mixed, 0, 2, 1, 3), tokens, width)
    first = maker.normalised(maker.add(x, maker.fully_connected(rows, width), activation=0))
    alike = maker.of_two(
        "FULLY_CONNECTED", first, x, 0.3, 4, ("FullyConnectedOptions", {}), (tokens, tokens)
    )
    deep = maker.fully_connected(maker.softmax(alike), width)
    inner = maker.fully_connected(maker.add(first, deep), 2 * width, activation=RELU)
    last = maker.normalised(maker.add(first, maker.fully_connected(inner, width), activation=0))
    return maker.model([x], [last])


def keyword(dtype: str = "int8") -> bytes:
    """Two layers that remember what they were fed."""
    maker = NetworkMaker(dtype, seed=1)
    x = maker.input(1, 40)
    heard = maker.svdf(x, 24, 10)
    again = maker.svdf(maker.fully_connected(heard, 32, activation=RELU), 12, 6, 2)
    return maker.model([x], [maker.softmax(maker.fully_connected(again, 4))])


def autoencoder(dtype: str = "int8") -> bytes:
    """Fully connected layers, narrow in the middle; it gives back what it was fed."""
    maker = NetworkMaker(dtype, seed=2)
    x = maker.input(1, 160)
    y = x
    for units in (32, 32, 8, 32, 32):
        y = maker.fully_connected(y, units, activation=RELU)
    return maker.model([x], [maker.fully_connected(y, 160)])


def hidden(dtype: str = "int8") -> bytes:
    """Two layers that are wide between narrow ones, one behind a function of its own."""
    maker = NetworkMaker(dtype, seed=7)
    x = maker.input(1, 48)
    narrow = maker.fully_connected(maker.fully_connected(x, 512, activation=RELU), 30)
    wide = maker.activation(maker.fully_connected(narrow, 384))
    return maker.model([x], [maker.fully_connected(wide, 10, activation=RELU)])


def widened(dtype: str = "int8", height: int = 1, width: int = 1) -> bytes:
    """An image, of one pixel by default, widened, filtered by channel, and narrowed again."""
    maker = NetworkMaker(dtype, seed=8)
    x = maker.input(1, height, width, 16)
    wide = maker.depthwise(maker.convolution(x, 192, 1))
    return maker.model([x], [maker.convolution(wide, 9, 1, activation=RELU)])
