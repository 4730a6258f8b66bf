"""Layers of 16-bit integers, with weights of 8 bits where they have any.

Source: the reference kernels of TensorFlow Lite and of TensorFlow Lite Micro.
"""

import math
from collections.abc import Callable

import numpy as np

from arenite.planner import Array, Tensor
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import quantised_multiplier, scale_of, zero_of
from arenite.runtime.cexport.steps import tables
from arenite.runtime.cexport.steps.packing import blocks, in_pairs_of_inputs
from arenite.runtime.cexport.steps.writer import StepWriter
from arenite.runtime.operators.base import Clamped
from arenite.runtime.operators.elementwise import Unary, UnaryFunction
from arenite.runtime.operators.normalisation import Softmax

_BITS_OF_FACTORS = 15
_MOST_WIDTH = 1 << 16
_RANGE = 65535.0


def conv_layer(
    t: StepWriter, kernel: str, geometry: dict[str, int], filter_: Array, operator: Clamped
) -> tuple[str, str]:
    """Return the name of a kernel of a convolution, and the address of its layer.

    Args:
        t: The step.
        kernel: `conv`, `depthwise` or `transposed`.
        geometry: What a layer states of images and windows.
        filter_: outputs, rows, columns, inputs; of depthwise ones rows, columns, outputs.
        operator: States the bounds of the result.

    Raises:
        NotWrittenError: The filter is not of bytes that a zero point of 0 stands for.
    """
    t.refuse_even("int16")
    stated, outputs = t.input(1).quantisation, geometry["out_depth"]
    if stated is None or stated.zero_point or filter_.dtype != np.int8:
        raise NotWrittenError("a filter without 8-bit quantisation of zero point 0 is unsupported")
    _check_zeros(t.input(), t.output())
    bias = t.array(2).reshape(-1) if t.has(2) else np.zeros(outputs, np.int64)
    if bias.size != outputs or bias.dtype not in (np.int32, np.int64):
        raise NotWrittenError(
            f"bias of {bias.size} {bias.dtype} elements is unsupported, "
            f"supported: {outputs} of int32 or int64"
        )
    ratio = scale_of(t.input()), scale_of(t.output())
    pairs = [
        quantised_multiplier(ratio[0] * float(np.float32(each)) / ratio[1])
        for each in stated.scales
    ]
    factors = np.array([factor for factor, _ in pairs], np.int32)
    shifts = np.array([shift for _, shift in pairs])
    name = f"{kernel}_narrow"
    if bias.dtype == np.int64:  # sums of 64 bits, by the upper half of a factor
        is_short = np.abs(bias).max(initial=0) < 2**31
        name, bias = (kernel, bias.astype(np.int32)) if is_short else (f"{kernel}_wide", bias)
        upper = np.minimum((factors.astype(np.int64) + (1 << 15)) >> 16, 2**15 - 1)
        factors, shifts = upper.astype(np.int16), _BITS_OF_FACTORS - shifts
        if shifts.min() < 1:
            raise NotWrittenError("scales that are so far apart are unsupported")
    if kernel == "conv":
        filter_ = in_pairs_of_inputs(blocks(filter_, geometry["groups"]))
    low, high = t.clamp(operator.min, operator.max)
    return f"{name}_s16", t.layer(
        "conv_layer_s16",
        **geometry,
        low=low,
        high=high,
        factor_step=int(len(factors) > 1),
        filter=t.constant(filter_, "weights"),
        bias=t.constant(bias, "bias"),
        factors=t.constant(factors, "factors"),
        shifts=t.constant(shifts.astype(np.int8), "shifts"),
    )


def _check_zeros(*tensors: Tensor) -> None:
    if any(map(zero_of, tensors)):
        raise NotWrittenError("a zero point of int16 other than 0 is unsupported")


def unary(t: StepWriter, operator: Unary) -> None:
    """Write a function of each number.

    Raises:
        NotWrittenError: No kernel has it.
    """
    t.refuse_even("int16")
    source, result, function = t.input(), t.output(), operator.function
    _check_zeros(source, result)
    if function in (UnaryFunction.SIGMOID, UnaryFunction.HYPERBOLIC_TANGENT):
        is_tangent = function is UnaryFunction.HYPERBOLIC_TANGENT
        if scale_of(result) != 2.0**-15:
            raise NotWrittenError(
                f"output scale {scale_of(result):g} is unsupported, supported: 1/32768"
            )
        factor, shift = _table_scale(scale_of(source), most_left=int(is_tangent))
        layer = t.layer(
            "logistic_layer_s16", width=t.width, factor=factor, shift=shift,
            table=t.constant(tables.logistic_16(), "logistic"),
        )  # fmt: skip
        t.call("tanh_s16" if is_tangent else "logistic_s16", layer, *t.row_pairs())
        return
    ratio = scale_of(source) / scale_of(result)
    if function is UnaryFunction.CLAMP:
        slope, (low, high) = 1.0, t.clamp(operator.alpha, operator.beta)
    elif function is UnaryFunction.LEAKY_RELU:
        slope, (low, high) = float(np.float32(operator.alpha)), t.clamp(-math.inf, math.inf)
    else:
        raise NotWrittenError(f"function={function.value} of int16 is unsupported")
    above, below = quantised_multiplier(ratio), quantised_multiplier(ratio * abs(slope))
    layer = t.layer(
        "rescale_layer_s16", width=t.width, factor=above[0], shift=above[1],
        factor_below=below[0], shift_below=below[1], sign=-1 if slope < 0 else 1, low=low,
        high=high,
    )  # fmt: skip
    t.call("rescale_s16", layer, *t.row_pairs())


def _table_scale(scale: float, most_left: int) -> tuple[int, int]:
    """Return factor and shift to the right that make multiples of 1 / (3 * 4096).

    Args:
        scale: Of the operand, a 32-bit float.
        most_left: Bits that a power of two may be shifted to the left.
    """
    power = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
    nearest = np.round(power)
    if abs(power - nearest) < np.float32(1e-3) and 0 <= nearest + 12 <= most_left:
        return 3 << int(nearest + 12), 0
    number, shift = scale * 4096.0 * 3.0, 0
    while number <= 32767.0 / 2.0 and shift <= 30:
        number, shift = number * 2.0, shift + 1
    if number >= 65536:
        raise NotWrittenError(f"input scale {scale:g} is too large")
    return int(number), shift


def softmax(t: StepWriter, operator: Softmax) -> None:
    """Write a softmax over the last axis, by lines of the exponential and of reciprocals.

    Raises:
        NotWrittenError: Sums of a row may exceed 32 bits.
    """
    t.refuse_even("int16")
    source = t.input()
    width = source.shape[-1]
    if width >= _MOST_WIDTH:
        raise NotWrittenError(f"rows of {width} are unsupported, supported: up to 65535")
    beta = float(np.float32(operator.beta))
    factor, shift = quantised_multiplier(scale_of(source) * beta / (10.0 / _RANGE))
    layer = t.layer(
        "softmax_layer_s16", width=width, factor=factor, shift=shift,
        exponentials=t.constant(_lines(math.exp, -10.0, 10.0), "exponentials"),
        reciprocals=t.constant(_lines(lambda x: 1 / (1 + x), 0.0, 1.0), "reciprocals"),
    )  # fmt: skip
    t.call("softmax_s16", layer, *t.row_pairs((source.num_elements // width, width)))


def _lines(function: Callable[[float], float], least: float, span: float) -> Array:
    """Return the 513 ends of lines of a function, 16 bits for numbers from -1 to 1.

    Args:
        function: Of numbers.
        least: The first of them.
        span: From the first to the last.
    """
    count = 512
    step, inverse = span / count, 65536 / (2.0 / _RANGE * 65535)
    found = []
    for place in range(count):
        at = least + place * step
        value = _rounded(function(at) * inverse)
        following = function(least + (place + 1) * step) * inverse
        error = _rounded((following + value) / 2) - _rounded(function(at + step / 2) * inverse)
        found.append(value - _rounded(error / 2))
    found.append(_rounded(function(least + span) * inverse))
    return np.clip(found, -(2**15), 2**15 - 1).astype(np.int16)


def _rounded(value: float) -> int:
    """Return the nearest integer, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))
