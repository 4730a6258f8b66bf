"""The 8-bit tensors of an ONNX model and their quantisation.

The kernels for filters with a scale per channel need signed images, so every unsigned tensor
has a **twin**: the same numbers as signed integers, with a zero point that is 128 lower.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import Array, DType, Program, Quantisation, Step, Tensor, TensorKind
from arenite.planner.importers.onnx import Constants
from arenite.planner.programs import Names

_OFFSET = 128
"""Difference between an unsigned zero point and that of its signed twin."""

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
        array: The integers as int8, axes in the model's order.
        scales: One scale, or one for each index of `axis`.
        zero_point: The integer that represents 0.
        axis: The axis that the scales belong to, if there are several.
    """

    array: Array
    scales: tuple[float, ...]
    zero_point: int
    axis: int


@dataclass(frozen=True, slots=True)
class Quantised8Bit:
    """A model whose 8-bit tensors have their quantisation and their twins.

    Attributes:
        program: The model. Its unsigned tensors have twins beside them.
        known: The 8-bit tensors with one scale, twins included.
        twins: For each unsigned tensor the signed one of the same numbers.
    """

    program: Program
    known: Mapping[str, Quantisation]
    twins: Mapping[str, str]

    def twin(self, name: str) -> str:
        """Return the signed tensor of the same numbers; the tensor itself if it is signed."""
        return self.twins.get(name, name)


def with_quantisations(model: Program) -> Quantised8Bit:
    """Give the 8-bit tensors of a model the quantisation that its operators state.

    A tensor that is read with two scales, or with a scale for each channel, is left out.
    """
    known = _stated(model)
    names = Names(model.tensors)
    twins: dict[str, str] = {}
    tensors = dict(model.tensors)
    for name, quantisation in list(known.items()):
        tensors[name] = replace(tensors[name], quantisation=quantisation)
        if tensors[name].dtype is DType.INT8:
            continue
        twin = twins[name] = names.take(f"{name}/signed")
        known[twin] = replace(quantisation, zero_point=quantisation.zero_point - _OFFSET)
        tensors[twin] = Tensor(
            twin, DType.INT8, tensors[name].shape, TensorKind.ACTIVATION,
            quantisation=known[twin],
        )  # fmt: skip
    return Quantised8Bit(replace(model, tensors=tensors), known, twins)


def _stated(model: Program) -> dict[str, Quantisation]:
    found: dict[str, Quantisation] = {}
    doubtful: set[str] = set()
    constants = constants_of(model)
    for step in model.steps:
        for name, quantisation in _stated_by(step, constants, found):
            if model.tensors[name].dtype not in (DType.INT8, DType.UINT8):
                continue
            (scale,) = quantisation.scales
            is_scale = 0 < scale < math.inf  # integer kernels and the program file need one
            if not is_scale or found.setdefault(name, quantisation) != quantisation:
                doubtful.add(name)
    _take_back(model, found, doubtful)
    return {name: each for name, each in found.items() if name not in doubtful}


def _take_back(model: Program, found: dict[str, Quantisation], doubtful: set[str]) -> None:
    """Give what a table holds, and others only move, the scale of where it is moved to.

    Operators that take the integers as numbers would be misled by one.
    """
    makers = {name: step.operator.label for step in model.steps for name in step.outputs}
    readers: dict[str, set[str]] = {}
    for step in model.steps:
        for name in step.inputs:
            readers.setdefault(name, set()).add(step.operator.label)
    for step in reversed(model.steps):
        is_move = step.operator.label in MOVES and step.outputs[0] not in doubtful
        moved = found.get(step.outputs[0]) if is_move else None
        source = step.inputs[0] if step.inputs else ""
        is_constant = moved is not None and model.tensors[source].kind is TensorKind.CONSTANT
        if (
            moved is None
            or source in model.output_tensors
            or model.tensors[source].dtype not in (DType.INT8, DType.UINT8)
            or not (is_constant or makers.get(source) in {"Gather", *MOVES})
            or not readers[source] <= {"DequantizeLinear", *MOVES}
        ):
            continue
        if found.setdefault(source, moved) != moved:
            doubtful.add(source)


def constants_of(model: Program) -> Constants:
    """Return the constants of an ONNX model, with how they are computed."""
    assert isinstance(model.constants, Constants)
    return model.constants


def _stated_by(
    step: Step, constants: Constants, found: Mapping[str, Quantisation]
) -> Iterator[tuple[str, Quantisation]]:
    inputs, kind = step.inputs, step.operator.label
    places: tuple[tuple[int | None, int, int], ...] = _PLACES.get(kind, ())
    if kind == _CONCAT:
        firsts = range(2, len(inputs), 3)
        places = ((None, 0, 1), *((first, first + 1, first + 2) for first in firsts))
    for tensor, scale, zero_point in places:
        name = step.outputs[0] if tensor is None else inputs[tensor]
        zero = inputs[zero_point] if zero_point < len(inputs) else ""
        scales = constants.value(inputs[scale])
        zeros = np.zeros(1, np.int8) if not zero else constants.value(zero)
        if scales is None or zeros is None or scales.size != 1 or zeros.size != 1:
            continue
        yield name, Quantisation((float(scales.flat[0]),), int(zeros.flat[0]))
    if kind in MOVES or kind == "MaxPool":
        quantisation = found.get(inputs[0])
        if quantisation is not None:
            yield from ((name, quantisation) for name in step.writes)


def dequantised(model: Program, name: str) -> Weights | None:
    """Return the integers that a constant was unpacked from, if they are known."""
    computation = constants_of(model).computation(name)
    if computation is None:
        return None
    node, inputs = computation
    if node.op_type != "DequantizeLinear":
        return None
    source, scale, *zero_point = inputs
    axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
    return integers(model, source, scale, zero_point[0] if zero_point else "", axis)


def integers(
    model: Program, name: str, scale: str, zero_point: str, axis: int = 0
) -> Weights | None:
    """Return constant integers as signed ones, None if they are not of 8 bits.

    Args:
        model: The model that they belong to.
        name: Name of the tensor of integers.
        scale: Name of the tensor of their scale or scales.
        zero_point: Name of the tensor of zero points, which must be equal; "" for 0.
        axis: The axis that several scales belong to.
    """
    constants = constants_of(model)
    array, scales = constants.value(name), constants.value(scale)
    if array is None or scales is None or array.dtype not in (np.int8, np.uint8):
        return None
    zeros = constants.value(zero_point) if zero_point else np.zeros(1, array.dtype)
    if zeros is None or np.unique(zeros).size != 1 or scales.ndim > 1:
        return None
    if not all(0 < float(scale) < math.inf for scale in scales.flat):
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
