"""Builds a network as an ONNX graph, layer by layer, with seeded weights.

Batch normalisation after a convolution is folded into its bias, as deployed models have
it. Tensors are (N, C, H, W); shapes are worked out here, so that padding is explicit.
"""

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 10
"""Of the years around 2024: older runtimes read them too."""

Activation: TypeAlias = Literal["relu", "relu6"]
Padding: TypeAlias = int | Literal["same", "valid"]
Size: TypeAlias = int | tuple[int, int]


class NetworkBuilder:
    """A network in the making; layers take and give names of tensors.

    Attributes:
        name: Of the graph.
        shapes: Of every tensor made so far.
    """

    def __init__(self, name: str, seed: int = 0, *, opset: int = OPSET) -> None:
        self.name = name
        self._opset = opset
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._initialisers: dict[str, onnx.TensorProto] = {}
        self._inputs: list[str] = []
        self._outputs: dict[str, str] = {}

    def input(self, name: str, *shape: int) -> str:
        """Return a graph input of this shape."""
        self.shapes[name] = shape
        self._inputs.append(name)
        return name

    def output(self, tensor: str, name: str) -> None:
        """Make `tensor` a graph output, called `name`."""
        self._outputs[tensor] = name

    def conv(
        self,
        x: str,
        channels: int,
        kernel: Size = 1,
        stride: int = 1,
        *,
        dilation: int = 1,
        groups: int = 1,
        padding: Padding = "same",
        activation: Activation | None = None,
    ) -> str:
        """Convolve to `channels`, add a bias and apply the activation, if any."""
        height, width = _pair(kernel)
        extents = tuple(dilation * (extent - 1) + 1 for extent in (height, width))
        pads, (out_height, out_width) = self._window(x, extents, stride, padding)
        fan_in = self.shapes[x][1] // groups
        y = self.node(
            "Conv",
            [
                x,
                self._weight((channels, fan_in, height, width), activation),
                self.constant(0.01 * self.normal(channels)),
            ],
            (1, channels, out_height, out_width),
            kernel_shape=[height, width],
            strides=[stride, stride],
            dilations=[dilation, dilation],
            group=groups,
            pads=pads,
        )
        return self.activate(y, activation)

    def depthwise(
        self, x: str, stride: int = 1, *, dilation: int = 1, activation: Activation | None = None
    ) -> str:
        """Convolve each channel by itself, 3 x 3."""
        channels = self.shapes[x][1]
        return self.conv(
            x, channels, 3, stride, dilation=dilation, groups=channels, activation=activation
        )

    def up_conv(self, x: str, channels: int) -> str:
        """Double height and width by a transposed convolution, 2 x 2."""
        _, in_channels, height, width = self.shapes[x]
        scale = math.sqrt(1 / in_channels)
        weight = self.constant(scale * self.normal(in_channels, channels, 2, 2))
        bias = self.constant(0.01 * self.normal(channels))
        shape = (1, channels, 2 * height, 2 * width)
        return self.node("ConvTranspose", [x, weight, bias], shape, strides=[2, 2])

    def activate(self, x: str, activation: Activation | None) -> str:
        """Apply the activation; None leaves the tensor as it is."""
        match activation:
            case None:
                return x
            case "relu":
                return self.node("Relu", [x], self.shapes[x])
            case "relu6":
                low, high = (
                    self.constant(np.float32(0), "zero"),
                    self.constant(np.float32(6), "six"),
                )
                return self.node("Clip", [x, low, high], self.shapes[x])

    def prelu(self, x: str) -> str:
        """Keep what is positive, and scale what is negative by a slope of its channel."""
        slopes = np.abs(0.25 * self.normal(self.shapes[x][1], 1, 1))
        return self.node("PRelu", [x, self.constant(slopes)], self.shapes[x])

    def batch_norm(self, x: str, *, activation: Activation | None = None) -> str:
        """Normalise by stored statistics: mean 0, variance 1, scales around 1."""
        channels = self.shapes[x][1]
        parameters = [
            self.constant(1 + 0.01 * self.normal(channels)),
            self.constant(0.01 * self.normal(channels)),
            self.constant(np.zeros(channels, np.float32)),
            self.constant(np.ones(channels, np.float32)),
        ]
        y = self.node("BatchNormalization", [x, *parameters], self.shapes[x])
        return self.activate(y, activation)

    def add(self, a: str, b: str, *, activation: Activation | None = None) -> str:
        """Add two tensors of one shape."""
        return self.activate(self.node("Add", [a, b], self.shapes[a]), activation)

    def sum(self, tensors: Sequence[str]) -> str:
        """Add any number of tensors of one shape."""
        return (
            tensors[0] if len(tensors) == 1 else self.node("Sum", tensors, self.shapes[tensors[0]])
        )

    def concat(self, tensors: Sequence[str], axis: int = 1) -> str:
        """Join the tensors along `axis`."""
        shape = list(self.shapes[tensors[0]])
        shape[axis] = sum(self.shapes[tensor][axis] for tensor in tensors)
        return self.node("Concat", tensors, tuple(shape), axis=axis)

    def max_pool(self, x: str, kernel: int, stride: int, padding: Padding = "same") -> str:
        """Take the largest of each window."""
        return self._pool("MaxPool", x, kernel, stride, padding)

    def average_pool(self, x: str, kernel: int, stride: int, padding: Padding = "same") -> str:
        """Average each window, its padding left out."""
        return self._pool("AveragePool", x, kernel, stride, padding)

    def global_average_pool(self, x: str) -> str:
        """Average each channel to 1 x 1."""
        return self.node("GlobalAveragePool", [x], (*self.shapes[x][:2], 1, 1))

    def pad_channels(self, x: str, channels: int) -> str:
        """Append channels of zeros up to `channels`."""
        batch, present, height, width = self.shapes[x]
        pads = np.array([0, 0, 0, 0, 0, channels - present, 0, 0], np.int64)
        return self.node("Pad", [x, self.constant(pads)], (batch, channels, height, width))

    def resize(self, x: str, height: int, width: int, *, corners: bool = True) -> str:
        """Interpolate linearly, corners on corners or by the centres of pixels."""
        shape = (*self.shapes[x][:2], height, width)
        return self.node(
            "Resize",
            [x, "", "", self.constant(np.array(shape, np.int64))],
            shape,
            mode="linear",
            coordinate_transformation_mode="align_corners" if corners else "half_pixel",
        )

    def reshape(self, x: str, *shape: int) -> str:
        """Read the same elements in another shape."""
        return self.node("Reshape", [x, self.constant(np.array(shape, np.int64))], shape)

    def transpose(self, x: str, *order: int) -> str:
        """Permute the dimensions."""
        shape = tuple(self.shapes[x][axis] for axis in order)
        return self.node("Transpose", [x], shape, perm=order)

    def dense(self, x: str, units: int) -> str:
        """Multiply the rows of a matrix by weights and add a bias."""
        rows, features = self.shapes[x]
        weight = self._weight((units, features), None)
        bias = self.constant(0.01 * self.normal(units))
        return self.node("Gemm", [x, weight, bias], (rows, units), transB=1)

    def recurrent(
        self,
        x: str,
        op_type: Literal["LSTM", "GRU"],
        units: int,
        direction: Literal["forward", "bidirectional"],
    ) -> str:
        """Run a recurrent layer over the first axis; its directions are joined at the end."""
        steps, batch, features = self.shapes[x]
        directions = 1 if direction == "forward" else 2
        rows = {"LSTM": 4, "GRU": 3}[op_type] * units
        scale = math.sqrt(1 / units)
        inputs = [
            self.constant(scale * self.normal(directions, rows, features)),
            self.constant(scale * self.normal(directions, rows, units)),
            self.constant(0.01 * self.normal(directions, 2 * rows)),
        ]
        shape = (steps, directions, batch, units)
        reset = {"linear_before_reset": 1} if op_type == "GRU" else {}
        y = self.node(
            op_type, [x, *inputs], shape, hidden_size=units, direction=direction, **reset
        )
        if directions == 1:
            return self.reshape(y, steps, batch, units)
        return self.reshape(self.transpose(y, 0, 2, 1, 3), steps, batch, directions * units)

    def sigmoid(self, x: str) -> str:
        """Squash each element to between 0 and 1."""
        return self.node("Sigmoid", [x], self.shapes[x])

    def softmax(self, x: str) -> str:
        """Turn the last dimension into probabilities."""
        return self.node("Softmax", [x], self.shapes[x], axis=-1)

    def node(
        self,
        op_type: str,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        **attributes: float | str | Sequence[int],
    ) -> str:
        """Apply an operator whose result has this shape."""
        (name,) = self.nodes(op_type, inputs, (shape,), **attributes)
        return name

    def nodes(
        self,
        op_type: str,
        inputs: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
        **attributes: float | str | Sequence[int],
    ) -> list[str]:
        """Apply an operator whose results have these shapes."""
        name = f"{op_type.lower()}_{len(self._nodes)}"
        names = [name if not index else f"{name}_{index}" for index in range(len(shapes))]
        self._nodes.append(helper.make_node(op_type, inputs, names, name, **attributes))
        self.shapes.update(zip(names, shapes, strict=True))
        return names

    def constant(self, array: npt.ArrayLike, name: str | None = None) -> str:
        """Return the initialiser of this name, made once, or a new one."""
        name = name or f"constant_{len(self._initialisers)}"
        if name not in self._initialisers:
            array = np.asarray(array)
            self._initialisers[name] = numpy_helper.from_array(array, name)
            self.shapes[name] = array.shape
        return name

    def build(self) -> onnx.ModelProto:
        """Return the network; the same bytes every time."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [self._outputs.get(name, name) for name in names]
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [self._value(name, name) for name in self._inputs],
            [self._value(name, tensor) for tensor, name in self._outputs.items()],
            list(self._initialisers.values()),
        )
        return helper.make_model(
            graph,
            producer_name="arenite-zoo",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", self._opset)],
        )

    def _pool(self, op_type: str, x: str, kernel: int, stride: int, padding: Padding) -> str:
        pads, extents = self._window(x, (kernel, kernel), stride, padding)
        return self.node(
            op_type,
            [x],
            (*self.shapes[x][:2], *extents),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=pads,
        )

    def _window(
        self, x: str, extents: Sequence[int], stride: int, padding: Padding
    ) -> tuple[list[int], tuple[int, int]]:
        """Return the pads (top, left, bottom, right) and the (height, width) that result.

        "same" is TensorFlow's: the result is the size over the stride, rounded up, and an
        odd pixel of padding goes to the end.
        """
        before, after, sizes = [], [], []
        for size, extent in zip(self.shapes[x][2:], extents, strict=True):
            match padding:
                case "same":
                    total = max((-(-size // stride) - 1) * stride + extent - size, 0)
                case "valid":
                    total = 0
                case int(each_side):
                    total = 2 * each_side
            before.append(total // 2)
            after.append(total - total // 2)
            sizes.append((size + total - extent) // stride + 1)
        return [*before, *after], (sizes[0], sizes[1])

    def _weight(self, shape: tuple[int, ...], activation: Activation | None) -> str:
        """Return weights that keep the variance: after He where a ReLU halves it."""
        gain = 1 if activation is None else 2
        return self.constant(math.sqrt(gain / math.prod(shape[1:])) * self.normal(*shape))

    def normal(self, *shape: int) -> npt.NDArray[np.float32]:
        """Return the next random numbers."""
        return self._random.standard_normal(shape, np.float32)

    def _value(self, name: str, tensor: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[tensor])


def _pair(size: Size) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)


def with_batch_norms(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a network with a batch norm behind every convolution, as it was published."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    weights = {each.name: each for each in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != "Conv":
            continue
        result = node.output[0]
        node.output[0] = f"{result}/before"
        parameters = []
        for name, value in (("scale", 1.0), ("shift", 0.0), ("mean", 0.0), ("variance", 1.0)):
            array = np.full(weights[node.input[1]].dims[0], value, np.float32)
            parameters.append(f"{result}/{name}")
            graph.initializer.append(numpy_helper.from_array(array, parameters[-1]))
        inputs = [node.output[0], *parameters]
        nodes.append(helper.make_node("BatchNormalization", inputs, [result], f"{result}/norm"))
    written = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(written)
    return found
