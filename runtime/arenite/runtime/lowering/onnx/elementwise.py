"""Operators that compute each element from the same element of each input."""

import math
from collections.abc import Mapping

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.operators import AttributeValue
from arenite.planner.sizes import same_lengths
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue, broadcast
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.lowering.onnx.written_out import translate_activation, translate_norm
from arenite.runtime.lowering.onnx.written_rotary import translate_rotary
from arenite.runtime.lowering.translation import InputLayout, fold_channels, fold_clamp
from arenite.runtime.operators.elementwise import (
    Binary,
    BinaryFunction,
    Convert,
    Select,
    Unary,
    UnaryFunction,
)

F = UnaryFunction

_PLAIN = {
    "Abs": F.ABSOLUTE, "Ceil": F.CEILING, "Cos": F.COSINE, "Erf": F.ERF, "Exp": F.EXPONENTIAL,
    "Floor": F.FLOOR, "HardSwish": F.HARD_SWISH, "IsNaN": F.IS_NAN, "Log": F.LOGARITHM,
    "Mish": F.MISH, "Neg": F.NEGATE, "Not": F.LOGICAL_NOT, "Reciprocal": F.RECIPROCAL,
    "Round": F.ROUND, "Sigmoid": F.SIGMOID, "Sign": F.SIGN, "Sin": F.SINE,
    "Softplus": F.SOFTPLUS, "Softsign": F.SOFTSIGN, "Sqrt": F.SQUARE_ROOT,
    "Tanh": F.HYPERBOLIC_TANGENT,
}  # fmt: skip
# Attributes that become alpha and beta, with their defaults.
_WITH_NUMBERS: Mapping[str, tuple[UnaryFunction, tuple[tuple[str, float], ...]]] = {
    "Celu": (F.CELU, (("alpha", 1.0),)),
    "Elu": (F.ELU, (("alpha", 1.0),)),
    "HardSigmoid": (F.HARD_SIGMOID, (("alpha", 0.2), ("beta", 0.5))),
    "LeakyRelu": (F.LEAKY_RELU, (("alpha", 0.01),)),
    "Selu": (F.SELU, (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875))),
    "Swish": (F.SWISH, (("alpha", 1.0),)),
    "ThresholdedRelu": (F.THRESHOLDED_RELU, (("alpha", 1.0),)),
}
UNARY = frozenset({*_PLAIN, *_WITH_NUMBERS, "Gelu"})

B = BinaryFunction
BINARY = {
    "Add": B.ADD, "And": B.LOGICAL_AND, "Div": B.DIVIDE, "Equal": B.EQUAL,
    "Greater": B.GREATER, "GreaterOrEqual": B.GREATER_EQUAL, "Less": B.LESS,
    "LessOrEqual": B.LESS_EQUAL, "Mul": B.MULTIPLY, "Or": B.LOGICAL_OR, "PRelu": B.PRELU,
    "Pow": B.POWER, "Sub": B.SUBTRACT, "Xor": B.LOGICAL_XOR,
}  # fmt: skip
VARIADIC = {"Max": B.MAXIMUM, "Mean": B.ADD, "Min": B.MINIMUM, "Sum": B.ADD}
_MOST_EXPONENT = 120
"""Of powers of two whose reciprocals are far from the bounds of floats."""
_COMPUTED_TYPES = (DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL)


@translates(*UNARY, "com.microsoft.Gelu")
def unary(t: OnnxTranslation) -> None:
    """Translate an activation or a function of one number."""
    value = t.value()
    require_type(value.dtype, *_COMPUTED_TYPES)
    operator = unary_operator(t.kind.rpartition(".")[2], t.attributes)
    t.finish(t.emit(operator, [value], shape=value.shape, order=value.order))


def unary_operator(kind: str, attributes: Mapping[str, AttributeValue]) -> Unary:
    """Return the operator of the core for a function of one number.

    Raises:
        NotLoweredError: There is no kernel for it.
    """
    if kind in _PLAIN:
        return Unary(function=_PLAIN[kind])
    if kind == "Gelu":
        is_tanh = attributes.get("approximate", "none") == "tanh"
        return Unary(function=F.GELU_TANH if is_tanh else F.GELU)
    if kind not in _WITH_NUMBERS:
        raise NotLoweredError(f"no kernel for the function {kind}")
    function, numbers = _WITH_NUMBERS[kind]
    given = [_number(attributes.get(name, default)) for name, default in numbers]
    return Unary(function=function, alpha=given[0], beta=given[1] if len(given) > 1 else 0.0)


def _number(value: AttributeValue) -> float:
    if not isinstance(value, int | float):
        raise NotLoweredError(f"attribute value {value!r} is not a number")
    return float(value)


def apply_activation(
    t: OnnxTranslation, value: StoredValue, kind: str, attributes: Mapping[str, AttributeValue]
) -> StoredValue:
    """Emit the activation that ONNX Runtime fused into an operator."""
    numbers = attributes.get("activation_params", ())
    if not isinstance(numbers, tuple):
        raise unsupported("activation_params", numbers, "a list of numbers")
    if kind in ("Relu", "Clip"):
        low, high = (0.0, math.inf) if kind == "Relu" else (float(numbers[0]), float(numbers[1]))
        operator = Unary(function=F.CLAMP, alpha=low, beta=high)
    else:
        names = [name for name, _ in _WITH_NUMBERS.get(kind, (F.CLAMP, ()))[1]]
        operator = unary_operator(kind, dict(zip(names, numbers, strict=False)))
    return t.emit(operator, [value], shape=value.shape, order=value.order)


@translates("Relu", layout=InputLayout.ANY)
def relu(t: OnnxTranslation) -> None:
    clamp(t, 0.0, math.inf)


@translates("Clip", layout=InputLayout.ANY)
def clip(t: OnnxTranslation) -> None:
    """Translate Clip, its bounds attributes or inputs."""
    limits = [(B.MAXIMUM, 1), (B.MINIMUM, 2)] if t.opset >= 11 else []
    bounds = [(function, t.value(position)) for function, position in limits if t.has(position)]
    # The bounds of a clamp are 32-bit floats.
    if t.dtype in (DType.INT32, DType.INT64) or any(b.array is None for _, b in bounds):
        value = t.value()
        for number, (function, bound) in enumerate(bounds, 1):
            name = t.target if number == len(bounds) else f"{t.target}/{function}"
            value = combine(t, function, value, bound, name)
        t.finish(value)
    else:
        clamp(t, *clip_bounds(t))


def clip_bounds(t: OnnxTranslation) -> tuple[float, float]:
    bounds = []
    for position, (name, default) in enumerate((("min", -math.inf), ("max", math.inf)), 1):
        given = t.optional_array(position) if t.opset >= 11 else None
        bounds.append(float(given) if given is not None else t.attribute(name, default))
    return bounds[0], bounds[1]


def clamp(t: OnnxTranslation, low: float, high: float) -> None:
    """Clamp the input, within the step that makes it if possible."""
    value = t.value()
    require_type(value.dtype, *_COMPUTED_TYPES)
    if value.dtype is DType.FLOAT32 and fold_clamp(t.builder, t.source(), t.target, low, high):
        return
    operator = Unary(function=F.CLAMP, alpha=low, beta=high)
    t.finish(t.emit(operator, [value], shape=value.shape, order=value.order))


@translates(*BINARY, layout=InputLayout.ANY)
def binary(t: OnnxTranslation) -> None:
    """Translate a function of two numbers."""
    function = BINARY[t.kind]
    if function in (B.MULTIPLY, B.DIVIDE) and (
        translate_norm(t, function) or translate_activation(t)
    ):
        return
    if function is B.ADD and translate_rotary(t):
        return
    if _fold_constant(t, function):
        return
    if function is B.POWER and _power(t):
        return
    if function is B.DIVIDE and _multiply_instead(t):
        return
    t.finish(combine(t, function, t.value(0), t.value(1), t.target))


def _multiply_instead(t: OnnxTranslation) -> bool:
    """Translate a division by one power of two, of which the reciprocal is exact."""
    divisor = t.builder.array(t.source(1))
    if divisor is None or divisor.size != 1 or t.dtype is not DType.FLOAT32:
        return False
    mantissa, exponent = np.frexp(divisor)
    if np.abs(mantissa) != 0.5 or abs(int(exponent.reshape(()))) > _MOST_EXPONENT:
        return False
    factor = t.builder.constant(np.float32(1) / divisor, t.source(1), shape=divisor.shape)
    t.finish(combine(t, B.MULTIPLY, t.value(0), factor, t.target))
    return True


def _power(t: OnnxTranslation) -> bool:
    """Translate a power that is a square, a square root or a reciprocal."""
    exponent = t.builder.array(t.source(1))
    if exponent is None or exponent.size != 1:
        return False
    if not same_lengths(t.value(0).shape, t.shape):
        return False
    functions = {2.0: F.SQUARE, 0.5: F.SQUARE_ROOT, -1.0: F.RECIPROCAL}
    function = functions.get(float(exponent.reshape(())))
    if function is None or t.dtype is not DType.FLOAT32:
        return False
    value = t.value(0)
    t.finish(t.emit(Unary(function=function), [value], shape=value.shape, order=value.order))
    return True


@translates("Mod")
def modulus(t: OnnxTranslation) -> None:
    """Translate Mod of integers, with the sign of the divisor."""
    if t.attribute("fmod", 0):
        raise unsupported("fmod", 1, 0)
    require_type(t.dtype, DType.INT32, DType.INT64)
    t.finish(combine(t, B.MODULUS, t.value(0), t.value(1), t.target))


@translates(*VARIADIC)
def variadic(t: OnnxTranslation) -> None:
    """Translate Sum, Mean, Max or Min of any number of inputs."""
    function = VARIADIC[t.kind]
    value = t.value(0)
    last = len(t.step.inputs) - 1
    is_mean = t.kind == "Mean"
    for position in range(1, last + 1):
        is_last = position == last and not is_mean
        name = t.target if is_last else f"{t.target}/{position}"
        value = combine(t, function, value, t.value(position), name)
    if is_mean and last:
        factor = t.builder.constant(np.float32(1 / (last + 1)).reshape(1), t.target)
        value = combine(t, B.MULTIPLY, value, factor, t.target)
    t.finish(value)


def combine(
    t: OnnxTranslation, function: BinaryFunction, one: StoredValue, other: StoredValue, name: str
) -> StoredValue:
    """Emit a function of two values that broadcast."""
    require_type(one.dtype, *_COMPUTED_TYPES)
    require_type(other.dtype, *_COMPUTED_TYPES)
    dtype = t.dtype if name == t.target else one.dtype
    rank = max(len(one.shape), len(other.shape))
    one, other = one.aligned(rank), other.aligned(rank)
    leader = max(one, other, key=lambda v: (v.array is None, math.prod(v.shape)))
    order = leader.order
    operands = [t.builder.in_order(v, order, name) for v in (one, other)]
    shape = broadcast(one.shape, other.shape)
    return t.emit(
        Binary(function=function), operands,
        shape=shape, order=order, dtype=dtype, name=name,
    )  # fmt: skip


@translates("Where")
def where(t: OnnxTranslation) -> None:
    values = [t.value(position) for position in range(3)]
    require_type(values[1].dtype, *_COMPUTED_TYPES)
    rank = max(len(value.shape) for value in values)
    padded = [value.aligned(rank) for value in values]
    leader = max(padded, key=lambda v: (v.array is None, math.prod(v.shape)))
    operands = [t.builder.in_order(value, leader.order, t.target) for value in padded]
    t.finish(t.emit(Select(), operands, order=leader.order))


@translates("Cast", layout=InputLayout.ANY)
def cast(t: OnnxTranslation) -> None:
    """Translate a conversion between types that the core knows."""
    value = t.value()
    known = (*_COMPUTED_TYPES, DType.FLOAT16, DType.FLOAT64, DType.INT8, DType.UINT8, DType.INT16)
    if value.dtype not in known or t.dtype not in known:
        raise NotLoweredError(
            f"conversion from {value.dtype.label} to {t.dtype.label} is unsupported"
        )
    if value.dtype is t.dtype:
        t.finish(value)
        return
    t.finish(t.emit(Convert(), [value], shape=value.shape, order=value.order))


@translates("Dropout")
def dropout(t: OnnxTranslation) -> None:
    """Translate Dropout outside training: it drops nothing, and its mask is all ones."""
    t.finish(t.value())
    for mask in t.step.outputs[1:2]:
        if mask:
            tensor = t.builder.model.tensors[mask]
            ones = np.ones(tensor.shape, np.dtype(tensor.dtype.label))
            t.builder.bind(mask, t.builder.constant(ones, mask, shape=tensor.shape))


@translates("Identity", layout=InputLayout.ANY)
def view(t: OnnxTranslation) -> None:
    """Translate an operator that changes nothing."""
    t.finish(t.value())


def _fold_constant(t: OnnxTranslation, function: BinaryFunction) -> bool:
    """Fold a scale or shift of channels into the step before, if possible."""
    constants = [t.builder.array(name) for name in t.step.inputs]
    if t.dtype is not DType.FLOAT32 or (constants[0] is None) is (constants[1] is None):
        return False
    position = 0 if constants[0] is None else 1
    constant = constants[1 - position]
    assert constant is not None
    value = t.value(position)
    vector = _channel_vector(constant, value)
    if vector is None or not same_lengths(t.shape, value.shape):
        return False
    scale: Array | None = None
    shift: Array | None = None
    if function is B.ADD:
        shift = vector
    elif function is B.MULTIPLY:
        scale = vector
    elif function is B.SUBTRACT:
        shift = -vector if position == 0 else vector
        scale = None if position == 0 else np.float32(-1).reshape(1)
    elif function is B.DIVIDE and position == 0 and np.all(vector != 0):
        scale = np.float32(1) / vector
    else:
        return False
    return fold_channels(t.builder, t.source(position), t.target, scale, shift)


def _channel_vector(constant: Array, value: StoredValue) -> Array | None:
    """Return the constant as one number per channel, or one for all; None if it is neither."""
    if constant.size == 1:
        return constant.reshape(1)
    if constant.ndim > len(value.shape) or not value.order:
        return None
    shape = (*(1,) * (len(value.shape) - constant.ndim), *constant.shape)
    channel = value.order[-1]
    only = all(length == 1 or axis == channel for axis, length in enumerate(shape))
    return constant.reshape(-1) if only else None
