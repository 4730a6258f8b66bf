"""Networks of the zoo quantised to 8 bits: as TFLite models, and by `onnxruntime.quantization`."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from bench.harness.inputs import zoo_file
from bench.sweep.tflite_file import Operator, Options, Tensor, constant, file_of_network
from bench.zoo.sequences import transformer

Array: TypeAlias = NDArray[Any]
Attributes: TypeAlias = Mapping[str, Any]
_ACTIVATIONS = {"Relu": 1, "Clip": 3}
"""Of TFLite, by operators of ONNX; a `Clip` is from 0 to 6."""
_SAME, _VALID = 0, 1
_ALIKE = ("MaxPool", "AveragePool", "Reshape", "Concat")
_PROBABILITIES = (0.0, 255 / 256)


def quantised_tflite(network: onnx.ModelProto) -> bytes:
    """Return a network as a TFLite model of 8-bit integers.

    Args:
        network: Of the zoo: convolutions of all channels or each channel, pools, sums,
            concatenations, matrices.
    """
    return _Conversion(network).file()


class _Conversion:
    """A network on its way, its tensors by the names of ONNX."""

    def __init__(self, network: onnx.ModelProto) -> None:
        graph = network.graph
        self._graph = graph
        self._constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        self._nodes = list(_fused(graph.node))
        numbers = _numbers(network)
        self._shapes = {name: _channels_last(each.shape) for name, each in numbers.items()}
        self._ranges = _shared_ranges(self._nodes, numbers)
        self._tensors: dict[str, Tensor] = {}
        self._operators: list[Operator] = []

    def file(self) -> bytes:
        """Return the bytes of the model."""
        fed = self._made(self._graph.input[0].name)
        for node, activation in self._nodes:
            attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
            self._add(node, attributes, activation)
        results = [self._tensors[each.name] for each in self._graph.output]
        return file_of_network(self._operators, [fed], results)

    def _add(self, node: onnx.NodeProto, attributes: Attributes, activation: int) -> None:
        x = self._tensors[node.input[0]]
        fused = {"fusedActivationFunction": activation}
        operands: tuple[Tensor, ...] = (x,)
        options: Options
        match node.op_type:
            case "Conv":
                assert attributes["group"] in (1, x.shape[3]), "it has groups"
                is_depthwise = attributes["group"] > 1
                x, window = self._window(x, attributes)
                operands = (x, *self._weights(x, node, (0, 2, 3, 1), is_depthwise=is_depthwise))
                if is_depthwise:
                    options = ("DepthwiseConv2DOptions", window | fused | {"depthMultiplier": 1})
                    code = "DEPTHWISE_CONV_2D"
                else:
                    options, code = ("Conv2DOptions", window | fused), "CONV_2D"
            case "Gemm":
                options = ("FullyConnectedOptions", fused)
                operands = (x, *self._weights(x, node, (0, 1)))
                code = "FULLY_CONNECTED"
            case "MaxPool" | "AveragePool":
                x, window = self._window(x, attributes)
                height, width = attributes["kernel_shape"]
                options = (
                    "Pool2DOptions",
                    window | {"filterHeight": height, "filterWidth": width},
                )
                operands = (x,)
                code = "MAX_POOL_2D" if node.op_type == "MaxPool" else "AVERAGE_POOL_2D"
            case "GlobalAveragePool":
                options = ("ReducerOptions", {"keepDims": True})
                operands = (x, constant(np.array([1, 2], np.int32)))
                code = "MEAN"
            case "Reshape":
                options = None
                operands = (x, constant(self._constants[node.input[1]].astype(np.int32)))
                code = "RESHAPE"
            case "Add" | "Concat":
                operands = tuple(self._tensors[name] for name in node.input)
                is_sum = node.op_type == "Add"
                options = (
                    ("AddOptions", fused) if is_sum else ("ConcatenationOptions", {"axis": 3})
                )
                code = "ADD" if is_sum else "CONCATENATION"
            case "Softmax":
                options, code = ("SoftmaxOptions", {"beta": 1.0}), "SOFTMAX"
            case other:
                raise ValueError(f"no layer of 8-bit integers is known for {other}")
        self._operators.append(Operator(code, operands, (self._made(node.output[0]),), options))

    def _made(self, name: str) -> Tensor:
        """Return the new tensor of a name."""
        least, largest = self._ranges[name]
        scale = (largest - least) / 255
        zero = round(-128 - least / scale)
        made = Tensor(self._shapes[name], "int8", scales=(scale,), zero_point=zero)
        self._tensors[name] = made
        return made

    def _window(self, x: Tensor, attributes: Attributes) -> tuple[Tensor, dict[str, object]]:
        """Return what windows slide over, padded if need be, and how."""
        pads = tuple(attributes["pads"])
        kernel, strides = attributes["kernel_shape"], attributes["strides"]
        padding = _VALID
        if any(pads):
            before, after = [], []
            for size, extent, stride in zip(x.shape[1:3], kernel, strides, strict=True):
                total = max((-(-size // stride) - 1) * stride + extent - size, 0)
                before.append(total // 2)
                after.append(total - total // 2)
            if pads == (*before, *after):
                padding = _SAME
            else:
                x = self._padded(x, pads)
        down, right = strides
        return x, {"padding": padding, "strideH": down, "strideW": right}

    def _padded(self, x: Tensor, pads: Sequence[int]) -> Tensor:
        """Return a tensor with what stands for zero around it."""
        top, left, bottom, right = pads
        batch, height, width, channels = x.shape
        shape = (batch, height + top + bottom, width + left + right, channels)
        made = Tensor(shape, "int8", scales=x.scales, zero_point=x.zero_point)
        margins = constant(np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
        self._operators.append(Operator("PAD", (x, margins), (made,), ("PadOptions", {})))
        return made

    def _weights(
        self,
        x: Tensor,
        node: onnx.NodeProto,
        order: tuple[int, ...],
        *,
        is_depthwise: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return weights, output channels first, or last of a depthwise layer, and the bias."""
        weights = self._constants[node.input[1]].transpose(order)
        rows = np.abs(weights).reshape(len(weights), -1)
        scales = rows.max(axis=1).astype(np.float64) / 127
        integers = np.rint(weights / scales.reshape(-1, *[1] * (weights.ndim - 1)))
        of_sums = x.scales[0] * scales
        bias = np.rint(self._constants[node.input[2]] / of_sums).astype(np.int32)
        if is_depthwise:
            integers = integers.transpose(3, 1, 2, 0)
        axis = integers.ndim - 1 if is_depthwise else 0
        return (
            constant(integers.astype(np.int8), scales=tuple(scales.tolist()), axis=axis),
            constant(bias, scales=tuple(of_sums.tolist())),
        )


def _fused(nodes: Sequence[onnx.NodeProto]) -> Iterator[tuple[onnx.NodeProto, int]]:
    """Yield nodes and their activation; an activation goes into the one before it."""
    for node, following in pairwise([*nodes, onnx.NodeProto()]):
        if node.op_type in _ACTIVATIONS:
            continue
        activation = _ACTIVATIONS.get(following.op_type, 0)
        if activation:
            node = onnx.NodeProto.FromString(node.SerializeToString())
            node.output[0] = following.output[0]
        yield node, activation


def _numbers(network: onnx.ModelProto) -> dict[str, Array]:
    """Return what ONNX Runtime computes of a random input, that included, by tensor."""
    import onnxruntime

    whole = onnx.ModelProto.FromString(network.SerializeToString())
    names = [name for node in whole.graph.node for name in node.output]
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(whole.SerializeToString())
    (given,) = session.get_inputs()
    fed = np.random.default_rng(0).uniform(-1, 1, given.shape).astype(np.float32)
    made = session.run(names, {given.name: fed})
    return {given.name: fed, **dict(zip(names, made, strict=True))}


def _shared_ranges(
    nodes: Sequence[tuple[onnx.NodeProto, int]], numbers: Mapping[str, Array]
) -> dict[str, tuple[float, float]]:
    """Return the least and the largest number by tensor, zero between them."""
    ranges = {
        name: (min(float(each.min()), 0.0), max(float(each.max()), 1e-6))
        for name, each in numbers.items()
    }
    changes = True
    while changes:
        changes = False
        for node, _ in nodes:
            if node.op_type not in _ALIKE:
                continue
            names = [name for name in (*node.input, *node.output) if name in ranges]
            both = min(ranges[n][0] for n in names), max(ranges[n][1] for n in names)
            changes = changes or any(ranges[name] != both for name in names)
            ranges.update(dict.fromkeys(names, both))
    for node, _ in nodes:
        if node.op_type == "Softmax":
            ranges[node.output[0]] = _PROBABILITIES
    return ranges


def _channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    batch, *rest = shape
    return (batch, *rest[1:], rest[0]) if len(rest) == 3 else shape


class RandomCalibration:
    """What `onnxruntime.quantization` reads its inputs from.

    Args:
        model: A model of one input.
        length: Length of its open axes.
    """

    def __init__(self, model: onnx.ModelProto, length: int = 1) -> None:
        generator = np.random.default_rng(0)
        value = model.graph.input[0]
        shape = [axis.dim_value or length for axis in value.type.tensor_type.shape.dim]
        self._feeds = iter(
            [{value.name: generator.uniform(-1, 1, shape).astype(np.float32)} for _ in range(4)]
        )

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """Return the next inputs."""
        return next(self._feeds, None)


def quantised_file(name: str, folder: Path) -> Path:
    """Write a network of the zoo as a TFLite model of 8-bit integers, and return its path."""
    path = folder / f"{name}-int8.tflite"
    path.write_bytes(quantised_tflite(onnx.load(zoo_file(name, folder))))
    return path


def quantised_networks(folder: Path, networks: Sequence[str]) -> Iterator[Path]:
    """Yield networks of the zoo as QDQ models, signed and unsigned, and as QLinear ones.

    They are written to a folder, each when it is asked for.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.disable(logging.WARNING)  # the quantiser's advice, through the root logger
    for name in networks:
        source = zoo_file(name, folder)
        for label, form, activations, per_channel in (
            ("qdq-int8", QuantFormat.QDQ, QuantType.QInt8, True),
            ("qdq-uint8", QuantFormat.QDQ, QuantType.QUInt8, True),
            ("qlinear", QuantFormat.QOperator, QuantType.QUInt8, False),
        ):
            path = folder / f"{name}-{label}.onnx"
            quantize_static(
                source, path, RandomCalibration(onnx.load(source)), quant_format=form,
                activation_type=activations, weight_type=QuantType.QInt8, per_channel=per_channel,
            )  # fmt: skip
            yield path


def open_network(name: str, length: int, folder: Path) -> Path:
    """Write a network of the zoo whose axes are open as a QDQ model, and return its path.

    Args:
        length: Length of the open axes of inputs that the ranges of tensors are found with.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.disable(logging.WARNING)
    source, path = zoo_file(name, folder), folder / f"{name}-qdq-int8.onnx"
    quantize_static(
        source, path, RandomCalibration(onnx.load(source), length), quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8, per_channel=True,
    )  # fmt: skip
    return path


def dynamic_transformer(folder: Path) -> Path:
    """Write a small encoder with a large vocabulary, its products quantised in the run."""
    from onnxruntime.quantization import quantize_dynamic

    logging.disable(logging.WARNING)
    path = folder / "encoder, 8 bits in the run.onnx"
    floats = transformer(64, layers=2, features=128, heads=2, classes=30522)
    quantize_dynamic(floats, path)
    return path
