"""The steps that run operators on signed 8-bit integers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arenite.planner import Array, DType, Quantisation
from arenite.runtime.lowering.errors import NotLoweredError, unsupported
from arenite.runtime.lowering.layout import (
    Order,
    Shape,
    StoredValue,
    as_written,
    broadcast,
    channels_last,
)
from arenite.runtime.lowering.moves import joined
from arenite.runtime.lowering.onnx.convolution import convolution_of, pool_of
from arenite.runtime.lowering.onnx.quantisation import Weights
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, window
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Convert, Unary
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.normalisation import Softmax
from arenite.runtime.operators.reduction import Pool2D, PoolKind


@dataclass(frozen=True, slots=True)
class IntegerCall:
    """An operator and the signed integers that it is to compute.

    Attributes:
        t: The operator, as the model has it.
        target: Name of the result.
        quantisation: Quantisation of the result.
        low: Smallest number of the result.
        high: Largest number of the result.
    """

    t: OnnxTranslation
    target: str
    quantisation: Quantisation
    low: float = -math.inf
    high: float = math.inf

    def emit(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[StoredValue | None],
        shape: Shape,
        order: Order,
    ) -> StoredValue:
        """Add the step that makes the target."""
        return self.t.builder.emit_one(
            operator, inputs, self.target, shape, order,
            dtype=DType.INT8, quantisation=self.quantisation,
        )  # fmt: skip


def rescaled(
    t: OnnxTranslation, value: StoredValue, quantisation: Quantisation, name: str
) -> StoredValue:
    """Return the value as integers with another scale and zero point."""
    if t.builder.quantisation(value) == quantisation:
        return value
    return t.builder.emit_one(
        Convert(), [value], f"{name}/rescaled", value.shape, value.order,
        dtype=DType.INT8, quantisation=quantisation,
    )  # fmt: skip


def convolution(
    call: IntegerCall, source: StoredValue, weights: Weights, bias: Array | None
) -> StoredValue:
    """Add a convolution over rows and columns.

    Args:
        call: The operator and its result.
        source: The image.
        weights: The filter, as ONNX has it.
        bias: int32, or numbers.
    """
    t = call.t
    if len(source.shape) != 4 or weights.array.ndim != 4:
        raise unsupported("input rank", len(source.shape), 4)
    factors = _product_scales(call, source, weights, axis=0)
    groups = t.attribute("group", 1)
    num_outputs, _, *kernel = weights.array.shape
    opening = window(t, source.shape, (kernel[0], kernel[1]))
    operator, order = convolution_of(opening, groups, source.shape[1], call.low, call.high)
    quantisation = Quantisation(weights.scales, weights.zero_point, order.index(0))
    image = t.builder.in_order(source, channels_last(4), call.target)
    inputs = [
        image,
        t.builder.constant(weights.array.transpose(order), f"{call.target}/filter", quantisation),
        _bias(call, bias, factors, num_outputs),
    ]
    shape = (source.shape[0], num_outputs, *opening.output)
    return call.emit(operator, inputs, shape, channels_last(4))


def linear(
    call: IntegerCall, source: StoredValue, weights: Weights, bias: Array | None
) -> StoredValue:
    """Add a product with weights: inputs, outputs.

    Args:
        call: The operator and its result.
        source: The first operand, multiplied along its last axis.
        weights: The second operand, as ONNX has it.
        bias: int32, or numbers.
    """
    t = call.t
    if weights.array.ndim != 2 or len(source.shape) < 2:
        raise unsupported("weight rank", weights.array.ndim, 2)
    factors = _product_scales(call, source, weights, axis=1)
    num_outputs = weights.array.shape[1]
    inputs = [
        t.builder.as_written(source, call.target),
        t.builder.constant(
            weights.array.T,
            f"{call.target}/weights",
            Quantisation(weights.scales, weights.zero_point, 0),
        ),
        _bias(call, bias, factors, num_outputs),
    ]
    shape = (*source.shape[:-1], num_outputs)
    operator = FullyConnected(min=call.low, max=call.high)
    return call.emit(operator, inputs, shape, as_written(len(shape)))


def _product_scales(call: IntegerCall, source: StoredValue, weights: Weights, axis: int) -> Array:
    """Return the scales of the sums, if a kernel takes them on to the output."""
    quantisation = call.t.builder.quantisation(source)
    assert quantisation is not None
    if len(weights.scales) > 1 and weights.axis != axis:
        raise unsupported("axis of the weight scales", weights.axis, axis)
    products = np.float64(quantisation.scales[0]) * np.asarray(weights.scales)
    factors = products / call.quantisation.scales[0]
    if not (factors.min() > 0 and factors.max() < 2.0**8):
        raise unsupported(
            "input scale * weight scale / output scale",
            f"{factors.min():g} to {factors.max():g}", "above 0 and below 2^8",
        )  # fmt: skip
    return products


def _bias(call: IntegerCall, bias: Array | None, scales: Array, count: int) -> StoredValue | None:
    if bias is None:
        return None
    if bias.size not in (1, count):
        raise NotLoweredError(f"bias of {bias.size} elements does not fit {count} outputs")
    if bias.dtype != np.int32:
        limits = np.iinfo(np.int32)
        bias = np.clip(np.rint(bias.reshape(-1) / scales), limits.min, limits.max)
    vector = np.broadcast_to(bias.reshape(-1), (count,)).astype(np.int32)
    return call.t.builder.constant(vector, f"{call.target}/bias")


def binary(
    call: IntegerCall, function: BinaryFunction, one: StoredValue, other: StoredValue
) -> StoredValue:
    """Add a function of two values that broadcast."""
    rank = max(len(one.shape), len(other.shape))
    operands = [one.aligned(rank), other.aligned(rank)]
    leader = max(operands, key=lambda v: (v.array is None, math.prod(v.shape)))
    shape = broadcast(operands[0].shape, operands[1].shape)
    inputs: list[StoredValue | None] = []
    for value in operands:
        moved = call.t.builder.in_order(value, leader.order, call.target)
        if moved.tensor != value.tensor and value.array is not None:
            quantisation = call.t.builder.quantisation(value)
            array = value.array.transpose(leader.order)
            constant = call.t.builder.constant(array, call.target, quantisation)
            moved = StoredValue(constant.tensor, value.dtype, value.shape, leader.order)
        inputs.append(moved)
    operator = Binary(function=function, min=call.low, max=call.high)
    return call.emit(operator, inputs, shape, leader.order)


def unary(call: IntegerCall, operator: Unary, value: StoredValue) -> StoredValue:
    """Add a function of one number."""
    return call.emit(operator, [value], value.shape, value.order)


def softmax(call: IntegerCall, value: StoredValue) -> StoredValue:
    """Add a softmax over the last axis."""
    rank = len(value.shape)
    default = 1 if call.t.opset < 13 else -1
    if call.t.axis(default, rank) != rank - 1:
        raise unsupported("axis", call.t.axis(default, rank), f"the last, {rank - 1}")
    value = call.t.builder.as_written(value, call.target)
    return call.emit(Softmax(), [value], value.shape, value.order)


def pool(call: IntegerCall, value: StoredValue, kind: PoolKind, *, is_global: bool) -> StoredValue:
    """Add a pool over rows and columns."""
    t = call.t
    if len(value.shape) != 4:
        raise unsupported("input rank", len(value.shape), 4)
    image = t.builder.in_order(value, channels_last(4), call.target)
    if is_global:
        whole = Pool2D.whole(kind, value.shape[2:])
        return call.emit(whole, [image], (*value.shape[:2], 1, 1), channels_last(4))
    if any(t.step.outputs[1:]):
        raise NotLoweredError("output Indices is unsupported for 8-bit integers")
    operator, shape = pool_of(t, value, kind)
    if kind is PoolKind.MAXIMUM:
        # Its kernels compare integers without requantising them.
        image = rescaled(t, image, call.quantisation, call.target)
    return call.emit(operator, [image], shape, channels_last(4))


def concat(call: IntegerCall, values: Sequence[StoredValue]) -> StoredValue:
    """Add a concatenation, each part in the scale of the result."""
    t = call.t
    axis = t.axis(1, len(t.shape))
    order = values[0].order
    parts: list[StoredValue] = []
    for position, value in enumerate(values):
        part = t.builder.in_order(value, order, call.target)
        parts.append(rescaled(t, part, call.quantisation, f"{call.target}/{position}"))
    return call.emit(joined(parts, t.shape, order, axis), parts, t.shape, order)
