"""Products of 8-bit integers that are quantised in the run.

A product, its conversion to floats and their scale become one step; a bias, and a clamp, go into
it. Products of which the scale is not found stay sums of 32 bits.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.sizes import same_lengths
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Order, Shape, StoredValue, as_written, channels_last
from arenite.runtime.lowering.onnx.convolution import as_image_filter
from arenite.runtime.lowering.onnx.microsoft_attention import attend_to_itself
from arenite.runtime.lowering.onnx.quantisation import signed
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates, window
from arenite.runtime.lowering.translation import InputLayout
from arenite.runtime.operators.convolution import Conv2D
from arenite.runtime.operators.elementwise import DynamicQuantise
from arenite.runtime.operators.linear import FullyConnected

_PRODUCTS = ("MatMulInteger", "ConvInteger")


@dataclass(frozen=True, slots=True)
class _Scales:
    """What turns sums into floats.

    Attributes:
        source: Scale of the first operand; None for 1.
        weights: Scale of the weights: one, or one for each output.
        bias: One number for each output, if there is a bias.
    """

    source: StoredValue | None
    weights: Array
    bias: Array | None = None


@dataclass(frozen=True, slots=True)
class _Factors:
    """The operands of a product.

    Attributes:
        source: The first operand.
        zero_point: Its zero point; None for 0.
        weights: The second operand: inputs, outputs; or a filter as ONNX has it.
        weight_zeros: Its zero points; None for 0.
    """

    source: StoredValue
    zero_point: StoredValue | None
    weights: Array
    weight_zeros: Array | None


@translates("DynamicQuantizeLinear", layout=InputLayout.ANY)
def dynamic_quantise(t: OnnxTranslation) -> None:
    """Translate a quantisation by the range of the run."""
    for name, made in zip(t.step.outputs, quantised(t, t.value(), t.step.outputs), strict=True):
        if name:
            t.builder.bind(name, made)


def quantised(
    t: OnnxTranslation, value: StoredValue, names: tuple[str, ...]
) -> tuple[StoredValue, StoredValue, StoredValue]:
    """Return a value as integers, their scale and their zero point."""
    require_type(value.dtype, DType.FLOAT32)
    shapes: list[tuple[Shape, Order]] = [(value.shape, value.order), ((), ()), ((), ())]
    hints = ("quantised", "scale", "zero_point")
    outputs = [
        (name or f"{t.target}/{hint}", shape, order)
        for name, hint, (shape, order) in zip(names, hints, shapes, strict=True)
    ]
    types = (DType.UINT8, DType.FLOAT32, DType.UINT8)
    integers, scale, zero_point = t.builder.emit(DynamicQuantise(), [value], outputs, dtype=types)
    return integers, scale, zero_point


@translates(*_PRODUCTS, layout=InputLayout.ANY)
def product_of_integers(t: OnnxTranslation) -> None:
    """Translate a product of integers with constant weights to sums of 32 bits."""
    t.finish(_product(t, _factors(t), None, t.target))


def scaled_product(t: OnnxTranslation) -> bool:
    """Translate a Mul that scales the sums of integers; return whether it is one."""
    if t.dtype is not DType.FLOAT32:
        return False
    for position in (0, 1):
        cast = t.producers.get(t.source(position))
        if cast is None or cast.operator.label != "Cast":
            continue
        product = t.producers.get(cast.inputs[0])
        if product is None or product.operator.label not in _PRODUCTS:
            continue
        inner = replace(t, step=product)
        scales = _found_scales(inner, t.source(1 - position))
        if scales is not None and same_lengths(inner.shape, t.shape):
            try:
                made = _product(inner, _factors(inner), scales, t.target)
            except NotLoweredError:
                return False
            t.finish(made)
            return True
    return False


def _found_scales(t: OnnxTranslation, name: str) -> _Scales | None:
    """Return the scales of which a tensor is the product, None if they do not fit."""
    factor = t.producers.get(name)
    names = (name,) if factor is None or factor.operator.label != "Mul" else factor.inputs
    weights = np.ones(1, np.float32)
    source: StoredValue | None = None
    channel_axis = 1 if t.kind == "ConvInteger" else len(t.shape) - 1
    for each in names:
        array = t.builder.array(each)
        if array is None and source is None and t.builder.has(each):
            source = t.builder.value(each)
        elif array is None or array.dtype != np.float32:
            return None
        elif array.size == 1 or array.shape[channel_axis - len(t.shape)] == array.size:
            weights = weights * array.reshape(-1)
        else:
            return None
    if source is not None and math.prod(source.shape) != 1:
        return None
    fits = weights.size in (1, t.shape[channel_axis])
    return _Scales(source, weights) if fits else None


def _factors(t: OnnxTranslation, places: tuple[int, int, int, int] = (0, 1, 2, 3)) -> _Factors:
    """Return the operands of a product.

    Args:
        t: The operator.
        places: Of source, weights and their zero points among the inputs.
    """
    source, weights, source_zero, weight_zero = places
    array = t.array(weights)
    if array.dtype not in (np.int8, np.uint8):
        raise unsupported(f"type of input {weights}", array.dtype.name, "int8", "uint8")
    value = t.value(source)
    require_type(value.dtype, DType.INT8, DType.UINT8)
    zero = t.value(source_zero) if t.has(source_zero) else None
    if zero is not None and (math.prod(zero.shape) != 1 or zero.dtype is not value.dtype):
        raise unsupported(f"shape of input {source_zero}", zero.shape, "one zero point")
    given = t.optional_array(weight_zero)
    zeros = np.zeros(1, np.int32) if given is None else given.reshape(-1).astype(np.int32)
    zeros = zeros - 128 * (array.dtype == np.uint8)
    return _Factors(value, zero, signed(array), zeros if zeros.any() else None)


def _product(
    t: OnnxTranslation, factors: _Factors, scales: _Scales | None, name: str
) -> StoredValue:
    """Add a product of integers: floats with scales, else sums of 32 bits."""
    source, weights = factors.source, factors.weights
    operator: Conv2D | FullyConnected
    if t.kind == "ConvInteger":
        operator, source, weights, shape = _convolution(t, weights)
        order = channels_last(4)
        num_outputs = shape[1]
    else:
        if weights.ndim != 2 or len(source.shape) < 2 or source.shape[-1] != weights.shape[0]:
            raise NotLoweredError(
                f"weights {weights.shape} do not fit an input {source.shape}, a matrix does"
            )
        operator, source = FullyConnected(), t.builder.as_written(source, name)
        weights, num_outputs = weights.T, weights.shape[1]
        shape = (*source.shape[:-1], num_outputs)
        order = as_written(len(shape))

    def vector(array: Array | None, dtype: type, hint: str) -> StoredValue | None:
        if array is None:
            return None
        if array.size not in (1, num_outputs):
            raise NotLoweredError(f"{hint} of {array.size} elements for {num_outputs} outputs")
        made: Array = np.broadcast_to(array.reshape(-1), (num_outputs,)).astype(dtype)
        return t.builder.constant(made, f"{name}/{hint}")

    inputs: list[StoredValue | None] = [
        source,
        t.builder.constant(weights, t.source(1)),
        vector(scales.bias, np.float32, "bias") if scales is not None else None,
        None,
        vector(scales.weights, np.float32, "scales") if scales is not None else None,
        scales.source if scales is not None else None,
        factors.zero_point,
        vector(factors.weight_zeros, np.int32, "zero_points"),
    ]
    dtype = DType.INT32 if scales is None else DType.FLOAT32
    return t.emit(operator, inputs, shape=shape, order=order, dtype=dtype, name=name)


def _convolution(t: OnnxTranslation, weights: Array) -> tuple[Conv2D, StoredValue, Array, Shape]:
    """Return operator, image, filter and shape of a convolution."""
    image, weights = t.image(), as_image_filter(weights)
    groups = t.attribute("group", 1)
    num_outputs, depth, *kernel = weights.shape
    if groups < 1 or num_outputs % groups or depth * groups != image.shape[1]:
        raise NotLoweredError(
            f"group={groups} does not fit {image.shape[1]} channels and weights {weights.shape}"
        )
    if depth == 1 and groups > 1:  # panels of 16 outputs would be all but empty
        raise unsupported("group", groups, "groups of several channels")
    opening = window(t, image.shape, (kernel[0], kernel[1]))
    operator = Conv2D(
        strides=opening.strides, dilations=opening.dilations, padding=opening.padding,
        groups=groups,
    )  # fmt: skip
    shape = (image.shape[0], num_outputs, *opening.output)
    return operator, image, weights.transpose(0, 2, 3, 1), shape


@translates("com.microsoft.MatMulIntegerToFloat")
def product_to_floats(t: OnnxTranslation) -> None:
    """Translate a product of integers with its scales and an optional bias."""
    scales = _Scales(t.value(2), t.array(3), t.optional_array(6))
    t.finish(_product(t, _factors(t, (0, 1, 4, 5)), scales, t.target))


@translates("com.microsoft.DynamicQuantizeMatMul")
def dynamically_quantised_product(t: OnnxTranslation) -> None:
    """Translate a product of floats, quantised in the run, with weights of integers."""
    source, scale, zero_point = quantised(t, t.value(), ("", "", ""))
    t.builder.bind(integers := t.builder.new_name(f"{t.target}/quantised"), source)
    t.builder.bind(zero := t.builder.new_name(f"{t.target}/zero_point"), zero_point)
    names = [integers, t.source(1), zero, t.source(3) if t.has(3) else ""]
    factors = _factors(replace(t, step=replace(t.step, inputs=tuple(names))))
    scales = _Scales(scale, t.array(2), t.optional_array(4))
    t.finish(_product(t, factors, scales, t.target))


@translates("com.microsoft.QAttention")
def attention_of_integers(t: OnnxTranslation) -> None:
    """Translate attention whose projections are a product of integers."""
    scales = _Scales(t.value(3), t.array(4), t.array(2))
    factors = _factors(t, (0, 1, 6, 7))
    if len(factors.source.shape) != 3:
        raise unsupported("input rank", len(factors.source.shape), 3)
    width = factors.weights.shape[-1]

    def projected(columns: slice, name: str) -> StoredValue:
        part = replace(
            factors,
            weights=factors.weights[:, columns],
            weight_zeros=_part(factors.weight_zeros, columns),
        )
        own = _Scales(
            scales.source, _all_or_part(scales.weights, columns), _part(scales.bias, columns)
        )
        return _product(t, part, own, f"{t.target}/{name}")

    attend_to_itself(t, projected, width, mask=5, past=8, bias=None)


def _part(array: Array | None, columns: slice) -> Array | None:
    """Return the elements for some columns of an array of one element for each, or for all."""
    return None if array is None else _all_or_part(array, columns)


def _all_or_part(array: Array, columns: slice) -> Array:
    return array if array.size == 1 else array.reshape(-1)[columns]
