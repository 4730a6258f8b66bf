"""Fixed-point arithmetic, to the bit that of TensorFlow Lite's reference kernels.

Numbers are 32-bit integers with a stated number of integer bits. Scales are 32-bit floats, their
products 64-bit floats.

Source: gemmlowp, fixedpoint/fixedpoint.h; the reference kernels of TensorFlow Lite and of
TensorFlow Lite Micro.
"""

import math

import numpy as np

from arenite.planner import Tensor
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.options import Rounding

_HIGHEST = 2**31 - 1


def high_product(one: int, other: int) -> int:
    """Return twice the product, its upper half, rounded."""
    if one == other == -(2**31):
        return _HIGHEST
    product = one * other
    nudge = 2**30 if product >= 0 else 1 - 2**30
    total = product + nudge
    return total // 2**31 if total >= 0 else -(-total // 2**31)


def shifted_right(value: int, exponent: int) -> int:
    """Return a number over a power of two, halves away from zero."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (value < 0)
    return (value >> exponent) + ((value & mask) > threshold)


def _scaled(value: int, exponent: int) -> int:
    """Return a number times a power of two, saturated where it is multiplied."""
    if exponent <= 0:
        return shifted_right(value, -exponent)
    return max(-(2**31), min(_HIGHEST, value << exponent))


def _exp_near_zero(value: int) -> int:
    """Return exp of a number of 31 fractional bits in [-1/4, 0)."""
    x = value + 2**28
    x2 = high_product(x, x)
    x3 = high_product(x2, x)
    x4 = high_product(x2, x2)
    x4_over_4 = shifted_right(x4, 2)
    rest = shifted_right(high_product(x4_over_4 + x3, 715827883) + x2, 1)
    return min(_HIGHEST, 1895147668 + high_product(1895147668, x + rest))


_FACTORS = (
    (-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535),
    (3, 720401), (4, 242),
)  # fmt: skip
"""exp of minus powers of two, by the power."""


def exp_of_negative(value: int, integer_bits: int) -> int:
    """Return exp of a number that is not positive, with 31 fractional bits."""
    if value == 0:
        return _HIGHEST
    fractional = 31 - integer_bits
    quarter = 1 << (fractional - 2)
    remainder = (value & (quarter - 1)) - quarter
    result = _exp_near_zero(_scaled(remainder, integer_bits))
    distance = remainder - value
    for power, factor in _FACTORS:
        if integer_bits > power and distance & (1 << (fractional + power)):
            result = high_product(result, factor)
    if integer_bits > 5 and value < -(1 << (fractional + 5)):
        return 0
    return result


def _half_sum(one: int, other: int) -> int:
    total = one + other
    return (total + 1) // 2 if total >= 0 else -((-total + 1) // 2)


def _newton(value: int) -> int:
    """Return 2 / (1 + x), 29 fractional bits, of x with 31 in [0, 1)."""
    half = _half_sum(value, _HIGHEST)
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        rest = 2**29 - high_product(half, x)
        x += _scaled(high_product(x, rest), 2)
    return x


def logistic(value: int, integer_bits: int) -> int:
    """Return the logistic function of a number, with 31 fractional bits."""
    if value == 0:
        return 2**30
    result = _scaled(_newton(exp_of_negative(-abs(value), integer_bits)), 1)
    # 1 / (1 + exp(-x)) is half of what Newton's method finds of 2 / (1 + exp(-x)).
    return result if value > 0 else _HIGHEST - result


def tanh(value: int, integer_bits: int) -> int:
    """Return the hyperbolic tangent of a number, with 31 fractional bits."""
    if value == 0:
        return 0
    exponential = exp_of_negative(-abs(value), integer_bits + 1)
    half = _half_sum(exponential, _HIGHEST)
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        rest = 2**29 - high_product(half, x)
        x += _scaled(high_product(x, rest), 2)
    result = _scaled(x - 2**29, 2)
    return result if value > 0 else -result


def reciprocal_root(number: int) -> tuple[int, int]:
    """Return a factor of 31 fractional bits and a power of two that make 1 / sqrt of a number.

    Args:
        number: 1 to 2^29 - 1.
    """
    if number <= 1:
        return _HIGHEST, 0
    pairs = (31 - number.bit_length()) // 2 - 1
    shift = 11 - pairs
    half = shifted_right(number << (2 * pairs) >> 1, 1)  # of 28 fractional bits, as x is
    x = 1 << 28
    for _ in range(5):
        cube = _scaled(high_product(high_product(x, x), x), 6)
        x = _scaled(high_product(3 << 27, x) - high_product(half, cube), 3)
    x = high_product(x, 1518500250)  # sqrt(2) / 2
    return (x << -shift, 0) if shift < 0 else (x, -shift)


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
        count = "no" if stated is None else len(stated.scales)
        raise NotWrittenError(f"tensor {tensor.name!r} has {count} scales, supported: one")
    return float(np.float32(stated.scales[0]))


def zero_of(tensor: Tensor) -> int:
    """Return the integer that stands for 0."""
    return 0 if tensor.quantisation is None else tensor.quantisation.zero_point


def nearest_even(value: float | np.float32) -> int:
    """Return the nearest integer, of two equally near the even one, within 2^22."""
    return 0 if np.isnan(value) else int(np.rint(np.clip(value, -(2.0**22), 2.0**22)))


def clamp_of(
    low: float, high: float, result: Tensor, rounding: Rounding = "double"
) -> tuple[int, int]:
    """Return the integers that a result of 8 or 16 bits is clamped to.

    Args:
        low: Least number.
        high: Largest number.
        result: The tensor.
        rounding: How numbers are rounded.
    """
    scale, zero = scale_of(result), zero_of(result)
    most = (1 << (result.dtype.bits - 1)) - 1

    def quantised(value: float) -> int:
        if rounding == "even":
            return zero + nearest_even(np.float32(value) / np.float32(scale))
        # Halves are rounded away from zero, as C's round does, in 32 bits.
        steps = float(np.float32(value) / np.float32(scale))
        return zero + int(math.copysign(math.floor(abs(steps) + 0.5), steps))

    least = -most - 1 if math.isinf(low) else max(-most - 1, quantised(low))
    return least, most if math.isinf(high) else min(most, quantised(high))


def requantised(value: int, factor: int, shift: int, *, single_rounding: bool = False) -> int:
    """Return value * factor * 2^(shift - 31), as the C kernels round it."""
    if single_rounding:
        return (value * factor + (1 << (30 - shift))) >> (31 - shift)
    left, right = max(shift, 0), max(-shift, 0)
    return shifted_right(high_product(value << left, factor), right)
