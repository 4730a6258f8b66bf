"""How TensorFlow Lite turns scales into integers.

Source: the reference kernels of TensorFlow Lite and of TensorFlow Lite Micro, whose results the
C kernels repeat to the bit. Scales are 32-bit floats, products of them 64-bit.
"""

import math

import numpy as np

from arenite.planner.tensors import Tensor
from arenite.runtime.cexport.errors import NotWrittenError
from arenite.runtime.cexport.fixed_point import high_product, shifted_right

_LEAST_SHIFT = -31


def quantised_multiplier(value: float) -> tuple[int, int]:
    """Return a factor of 31 fractional bits and a power of two that multiply to a number."""
    if value == 0:
        return 0, 0
    mantissa, shift = math.frexp(value)
    factor = math.floor(abs(mantissa) * 2**31 + 0.5) * (1 if mantissa > 0 else -1)
    if factor == 2**31:
        factor, shift = factor // 2, shift + 1
    return (0, 0) if shift < _LEAST_SHIFT else (factor, shift)


def scale_of(tensor: Tensor) -> float:
    """Return the one scale of a tensor, a 32-bit float.

    Raises:
        NotWrittenError: It has none, or several.
    """
    stated = tensor.quantisation
    if stated is None or len(stated.scales) != 1:
        count = "several scales" if stated is not None else "no scale"
        raise NotWrittenError(f"{tensor.name!r} has {count}")
    return float(np.float32(stated.scales[0]))


def zero_of(tensor: Tensor) -> int:
    """Return the integer that stands for 0."""
    return 0 if tensor.quantisation is None else tensor.quantisation.zero_point


def clamp_of(low: float, high: float, result: Tensor) -> tuple[int, int]:
    """Return the integers that a result of bytes is clamped to.

    Args:
        low: Least number.
        high: Largest number.
        result: The tensor.
    """
    scale, zero = scale_of(result), zero_of(result)

    def quantised(value: float) -> int:
        # Halves are rounded away from zero, as C's round does, in 32 bits.
        steps = float(np.float32(value) / np.float32(scale))
        return zero + int(math.copysign(math.floor(abs(steps) + 0.5), steps))

    least = -128 if math.isinf(low) else max(-128, quantised(low))
    return least, 127 if math.isinf(high) else min(127, quantised(high))


def requantised(value: int, factor: int, shift: int, *, single_rounding: bool = False) -> int:
    """Return value * factor * 2^(shift - 31), as the C kernels round it."""
    if single_rounding:
        return (value * factor + (1 << (30 - shift))) >> (31 - shift)
    left, right = max(shift, 0), max(-shift, 0)
    return shifted_right(high_product(value << left, factor), right)
