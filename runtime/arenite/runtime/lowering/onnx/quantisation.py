"""How integers of an ONNX model stand for numbers, and the 8-bit tensors it has.

The kernels for filters with a scale for each channel want signed images, so every unsigned
tensor has a **twin**: the same numbers as signed integers, its zero point 128 lower.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.graph import Graph, Operator, Tensor, TensorKind
from arenite.planner.importers.onnx.reader import OnnxModel
from arenite.runtime.lowering.lowered import Array, Quantisation

_OFFSET = 128
"""By which a signed zero point is lower than an unsigned one."""

_ONE_INPUT = ((0, 1, 2), (None, 3, 4))
_TWO_INPUTS = ((0, 1, 2), (3, 4, 5), (None, 6, 7))
# Positions of a tensor, its scale and its zero point among the inputs; None is the output.
_PLACES: Mapping[str, tuple[tuple[int | None, int, int], ...]] = {
    "DequantizeLinear": ((0, 1, 2),),
    "QLinearConv": _TWO_INPUTS,
    "QLinearMatMul": _TWO_INPUTS,
    "QuantizeLinear": ((None, 1, 2),),
    "com.microsoft.DequantizeLinear": ((0, 1, 2),),
    "com.microsoft.QGemm": ((0, 1, 2), (3, 4, 5), (None, 7, 8)),
    "com.microsoft.QLinearAdd": _TWO_INPUTS,
    "com.microsoft.QLinearAveragePool": _ONE_INPUT,
    "com.microsoft.QLinearGlobalAveragePool": _ONE_INPUT,
    "com.microsoft.QLinearLeakyRelu": _ONE_INPUT,
    "com.microsoft.QLinearMul": _TWO_INPUTS,
    "com.microsoft.QLinearSigmoid": _ONE_INPUT,
    "com.microsoft.QLinearSoftmax": _ONE_INPUT,
    "com.microsoft.QuantizeLinear": ((None, 1, 2),),
}
_CONCAT = "com.microsoft.QLinearConcat"

MOVES = frozenset(
    {"DepthToSpace", "Flatten", "Identity", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze",
     "Tile", "Transpose", "Unsqueeze"}
)  # fmt: skip
"""Operators that move the elements of their first input and compute nothing."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Constant integers, signed.

    Attributes:
        array: int8, in the model's order.
        scales: One, or one for each index of `axis`.
        zero_point: The integer that stands for 0.
        axis: That the scales belong to, if they are many.
    """

    array: Array
    scales: tuple[float, ...]
    zero_point: int
    axis: int


def stated_quantisations(model: OnnxModel) -> dict[str, Quantisation]:
    """Return how the 8-bit tensors of a model stand for numbers, and their twins.

    A tensor that is read with two scales, or with a scale for each channel, is left out.
    """
    found: dict[str, Quantisation] = {}
    doubtful: set[str] = set()
    for operator in model.graph.operators:
        for name, quantisation in _stated(model, operator, found):
            if model.graph.tensors[name].dtype not in (DType.INT8, DType.UINT8):
                continue
            if found.setdefault(name, quantisation) != quantisation:
                doubtful.add(name)
    for name in list(found):
        if name in doubtful:
            del found[name]
        elif twin(model.graph, name) != name:
            zero_point = found[name].zero_point - _OFFSET
            found[twin(model.graph, name)] = replace(found[name], zero_point=zero_point)
    return found


def _stated(
    model: OnnxModel, operator: Operator, found: Mapping[str, Quantisation]
) -> Iterator[tuple[str, Quantisation]]:
    inputs = operator.inputs
    places: tuple[tuple[int | None, int, int], ...] = _PLACES.get(operator.op_type, ())
    if operator.op_type == _CONCAT:
        firsts = range(2, len(inputs), 3)
        places = ((None, 0, 1), *((first, first + 1, first + 2) for first in firsts))
    for tensor, scale, zero_point in places:
        name = operator.outputs[0] if tensor is None else inputs[tensor]
        zero = inputs[zero_point] if zero_point < len(inputs) else ""
        scales = model.values.get(inputs[scale])
        zeros = np.zeros(1, np.int8) if not zero else model.values.get(zero)
        if scales is not None and zeros is not None and scales.size == 1 and zeros.size == 1:
            yield name, Quantisation((float(scales.flat[0]),), int(zeros.flat[0]))
    if operator.op_type in MOVES or operator.op_type == "MaxPool":
        quantisation = found.get(inputs[0])
        if quantisation is not None:
            yield from ((name, quantisation) for name in operator.writes)


def twin(graph: Graph, name: str) -> str:
    """Return the name of the signed tensor of the same numbers; its own if it is signed."""
    return name if graph.tensors[name].dtype is DType.INT8 else f"{name}/signed"


def with_twins(graph: Graph, quantisations: Mapping[str, Quantisation]) -> Graph:
    """Return the graph with the twins beside its unsigned tensors."""
    twins = [
        Tensor(twin(graph, name), DType.INT8, graph.tensors[name].shape, TensorKind.ACTIVATION)
        for name in quantisations
        if name in graph.tensors and twin(graph, name) != name
    ]
    tensors = {**graph.tensors, **{tensor.name: tensor for tensor in twins}}
    return replace(graph, tensors=tensors)


def dequantised(model: OnnxModel, name: str) -> Weights | None:
    """Return the integers that a constant was unpacked from, if they are known."""
    computation = model.values.computation(name)
    if computation is None:
        return None
    node, inputs = computation
    if node.op_type != "DequantizeLinear":
        return None
    source, scale, *zero_point = inputs
    axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
    return integers(model, source, scale, zero_point[0] if zero_point else "", axis)


def integers(
    model: OnnxModel, name: str, scale: str, zero_point: str, axis: int = 0
) -> Weights | None:
    """Return constant integers as signed ones, None if they are not of 8 bits.

    Args:
        model: That they are of.
        name: Of the integers.
        scale: Of their scale or scales.
        zero_point: Of their zero point or points, which must be the same; "" is 0.
        axis: That many scales belong to.
    """
    array, scales = model.values.get(name), model.values.get(scale)
    if array is None or scales is None or array.dtype not in (np.int8, np.uint8):
        return None
    zeros = model.values.get(zero_point) if zero_point else np.zeros(1, array.dtype)
    if zeros is None or np.unique(zeros).size != 1 or scales.ndim > 1:
        return None
    offset = _OFFSET if array.dtype == np.uint8 else 0
    return Weights(
        signed(array),
        tuple(map(float, scales.reshape(-1))),
        int(zeros.flat[0]) - offset,
        axis % max(array.ndim, 1),
    )


def signed(array: Array) -> Array:
    """Return integers of 8 bits as signed ones, unsigned ones shifted."""
    offset = _OFFSET if array.dtype == np.uint8 else 0
    return (array.astype(np.int16) - offset).astype(np.int8)


def transposed(weights: Weights) -> Weights:
    """Return the weights of a matrix that is transposed."""
    return replace(weights, array=weights.array.T, axis=1 - weights.axis)
