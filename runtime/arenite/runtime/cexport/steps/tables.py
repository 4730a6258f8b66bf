"""Tables of functions of a byte, from TensorFlow Lite's reference kernels or our runtime."""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from arenite.planner import (
    Array,
    DType,
    Plan,
    Port,
    Program,
    Rules,
    Step,
    Tensor,
    TensorKind,
    derive,
)
from arenite.runtime.cexport.base import fixed_point
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import (
    clamp_of,
    quantised_multiplier,
    requantised,
    scale_of,
    zero_of,
)
from arenite.runtime.cexport.base.options import Rounding
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Convert, Unary, UnaryFunction
from arenite.runtime.program import assemble, program_pieces
from arenite.runtime.session.session import Session

F = UnaryFunction
_INTEGER_BITS = 4
"""Integer bits of the fixed-point numbers whose logistic function is computed."""


def of_bytes(function: Callable[[int], int]) -> Array:
    """Return the values of a function of int8 for 0 to 127, then for -128 to -1."""
    values = [function(byte - 256 if byte > 127 else byte) for byte in range(256)]
    return np.array([min(127, max(-128, value)) & 255 for value in values], np.uint8)


def rescaled(source: Tensor, result: Tensor, rounding: Rounding) -> Array:
    """Return the table that turns one quantisation into another."""
    if rounding == "even":
        return _of_step(Convert(), source, result)
    pair = quantised_multiplier(scale_of(source) / scale_of(result))
    return of_bytes(
        lambda q: (
            requantised(q - zero_of(source), *pair, single_rounding=rounding == "single")
            + zero_of(result)
        )
    )


def difference_scale(scale: float, beta: float) -> tuple[int, int, int]:
    """Return factor and shift of the differences in a softmax, and the largest that counts.

    Raises:
        NotWrittenError: The scale is too small.
    """
    factor, shift = quantised_multiplier(min(beta * scale * 2.0**26, 2.0**31 - 1))
    if shift < 0:
        raise NotWrittenError(f"input scale {scale:g} is too small")
    return factor, shift, math.floor((2**5 - 1) * 2.0**26 / 2.0**shift)


def exponentials(scale: float, beta: float) -> Array:
    """Return exp of minus 0, 1, and so on, as far as they count in a softmax; 31 bits each."""
    factor, shift, least = difference_scale(scale, beta)
    count = min(256, least + 1)
    return np.array(
        [
            fixed_point.exp_of_negative(requantised(-difference, factor, shift), 5)
            for difference in range(count)
        ],
        np.int32,
    )


def unary(operator: Unary, source: Tensor, result: Tensor, rounding: Rounding) -> Array:
    """Return the table of a function of one number.

    Raises:
        NotWrittenError: It is no function of numbers.
    """
    function = operator.function
    if rounding == "even":
        return _of_step(operator, source, result)
    if function is F.CLAMP:
        return _clamp(operator, source, result, rounding)
    if function is F.LEAKY_RELU:
        return _leaky(operator, source, result, rounding)
    if function in (F.SIGMOID, F.HYPERBOLIC_TANGENT):
        return of_bytes(partial(_sigmoid, function, source, result))
    if function is F.HARD_SWISH:
        return _hard_swish(source, result)
    if function is F.RECIPROCAL_SQUARE_ROOT:
        return _reciprocal_root(source, result)
    if function not in _NUMBERS:
        raise NotWrittenError(f"function={function.value} of int8 is unsupported")
    real = partial(_NUMBERS[function], operator)

    def value(q: int) -> int:
        number = scale_of(source) * (q - zero_of(source))
        try:
            found = real(number) / scale_of(result)
        except (ValueError, ZeroDivisionError, OverflowError):
            found = 0.0
        found = max(-1e6, min(1e6, found))
        return int(math.copysign(math.floor(abs(found) + 0.5), found)) + zero_of(result)

    return of_bytes(value)


def _of_step(operator: RuntimeOperator, source: Tensor, result: Tensor) -> Array:
    """Run an operator in our runtime on each of the 256 bytes, and return its results in order."""
    bytes_ = np.arange(256, dtype=np.uint8)
    tensors = {
        name: Tensor(name, DType.INT8, bytes_.shape, kind, quantisation=each.quantisation)
        for name, kind, each in (
            ("x", TensorKind.INPUT, source), ("y", TensorKind.OUTPUT, result),
        )
    }  # fmt: skip
    steps = (Step(operator.label, operator, ("x",), ("y",)),)
    program = Program("table", tensors, steps, (Port("x", "x"),), (Port("y", "y"),))
    problem = derive(program, Rules((), alignment=bytes_.size)).problem
    plan = Plan.of(problem, tuple(range(0, problem.naive, bytes_.size)), "naive")
    pieces = program_pieces(assemble(program, problem, plan, digest="", producer=""))
    with Session.of_pieces(list(pieces), program.name) as session:
        return session.run({"x": bytes_.view(np.int8)})["y"].view(np.uint8)


def _clamp(operator: Unary, source: Tensor, result: Tensor, rounding: Rounding) -> Array:
    pair = quantised_multiplier(scale_of(source) / scale_of(result))
    low, high = clamp_of(operator.alpha, operator.beta, result)

    def value(q: int) -> int:
        moved = requantised(q - zero_of(source), *pair, single_rounding=rounding == "single")
        return min(high, max(low, moved + zero_of(result)))

    return of_bytes(value)


def _leaky(operator: Unary, source: Tensor, result: Tensor, rounding: Rounding) -> Array:
    ratio = scale_of(source) / scale_of(result)
    alpha = float(np.float32(operator.alpha))
    above, below = quantised_multiplier(ratio), quantised_multiplier(ratio * alpha)

    def value(q: int) -> int:
        number = q - zero_of(source)
        pair = above if number >= 0 else below
        return requantised(number, *pair, single_rounding=rounding == "single") + zero_of(result)

    return of_bytes(value)


def _hard_swish(source: Tensor, result: Tensor) -> Array:
    """Return x * relu6(x + 3) / 6 in numbers of 16 bits."""
    fine = scale_of(source) / 128
    output, exponent = quantised_multiplier(float(np.float32(fine / scale_of(result))))
    gate, gate_exponent = quantised_multiplier(float(np.float32(fine * 32768 / 3)))
    output, gate = (min(32767, (each + (1 << 15)) >> 16) for each in (output, gate))

    def value(q: int) -> int:
        number = (q - zero_of(source)) * 128
        scaled = _high_product16(number, output)
        share = number
        if gate_exponent > 0:
            share = _saturated16(share << (gate_exponent - 1))
        share = _high_product16(share, gate)
        if gate_exponent > 0:
            share = _saturated16(share << 1)
        elif gate_exponent < 0:
            share = fixed_point.shifted_right(share, -gate_exponent)
        share = (share + (1 << 15)) >> 1
        product = int(share * scaled / (1 << 15))
        moved = fixed_point.shifted_right(product, max(-exponent, 0)) << max(exponent, 0)
        return moved + zero_of(result)

    return of_bytes(value)


_ROOT_SHIFT = 20


def _reciprocal_root(source: Tensor, result: Tensor) -> Array:
    """Return 1 / sqrt(x) in fixed point, the most that there is where x is not positive."""
    ratio = 1.0 / (math.sqrt(scale_of(source)) * scale_of(result))
    factor, shift = quantised_multiplier(ratio)

    def value(q: int) -> int:
        number = q - zero_of(source)
        if number <= 0:
            return 127
        root, exponent = fixed_point.reciprocal_root(number)
        root = requantised(1, root, exponent + _ROOT_SHIFT)
        return requantised(root, factor, shift - _ROOT_SHIFT) + zero_of(result)

    return of_bytes(value)


def _high_product16(one: int, other: int) -> int:
    product = one * other
    nudge = 1 << 14 if product >= 0 else 1 - (1 << 14)
    return _saturated16(int((product + nudge) / (1 << 15)))


def _saturated16(value: int) -> int:
    return max(-32768, min(32767, value))


def _sigmoid(function: UnaryFunction, source: Tensor, result: Tensor, q: int) -> int:
    """Return the logistic function or the hyperbolic tangent, in fixed point throughout."""
    factor, shift = quantised_multiplier(scale_of(source) * 2.0 ** (31 - _INTEGER_BITS))
    radius = math.floor((2**_INTEGER_BITS - 1) * 2.0 ** (31 - _INTEGER_BITS) / 2.0**shift)
    number = q - zero_of(source)
    is_tangent = function is F.HYPERBOLIC_TANGENT
    if number <= -radius:
        return -128
    if number >= radius:
        return 127
    moved = requantised(number, factor, shift)
    if is_tangent:
        return fixed_point.shifted_right(fixed_point.tanh(moved, _INTEGER_BITS), 31 - 7)
    return fixed_point.shifted_right(fixed_point.logistic(moved, _INTEGER_BITS), 31 - 8) - 128


def float_exponentials(scale: float, beta: float) -> Array:
    """Return exp of minus 0, 1, and so on to 255, of differences of bytes times a scale."""
    steps = np.float32(beta) * (np.float32(scale) * np.arange(256, dtype=np.float32))
    return np.exp(-steps.astype(np.float64)).astype(np.float32)


def logistic_16() -> Array:
    """Return the logistic function at multiples of 1/24, with 16 fractional bits.

    Numbers between them are found on lines, which run below the function: half of the largest
    distance is added. The last is what larger numbers have.

    Source: TensorFlow Lite, kernels/internal/common.h, sigmoid_table_uint16.
    """
    step = 1 / 24
    y = 1 / (1 + np.exp(-step * np.arange(256)))
    raised = y + step**2 / 16 * y * (1 - y) * (2 * y - 1)
    table: Array = np.floor(raised * 65536 + 0.5).astype(np.uint16)
    table[-1] = 65535
    return table


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


_NUMBERS: Mapping[UnaryFunction, Callable[[Unary, float], float]] = {
    F.ABSOLUTE: lambda _, x: abs(x),
    F.NEGATE: lambda _, x: -x,
    F.SQUARE: lambda _, x: x * x,
    F.SQUARE_ROOT: lambda _, x: math.sqrt(x),
    F.RECIPROCAL: lambda _, x: 1.0 / x,
    F.FLOOR: lambda _, x: float(math.floor(x)),
    F.CEILING: lambda _, x: float(math.ceil(x)),
    F.EXPONENTIAL: lambda _, x: math.exp(x),
    F.LOGARITHM: lambda _, x: math.log(x),
    F.SINE: lambda _, x: math.sin(x),
    F.COSINE: lambda _, x: math.cos(x),
    F.HARD_SIGMOID: lambda o, x: max(0.0, min(1.0, o.alpha * x + o.beta)),
    F.SWISH: lambda o, x: x / (1.0 + math.exp(-o.alpha * x)),
    F.ELU: lambda o, x: x if x > 0 else o.alpha * math.expm1(x),
    F.SOFTPLUS: lambda _, x: _softplus(x),
    F.SOFTSIGN: lambda _, x: x / (1.0 + abs(x)),
    F.MISH: lambda _, x: x * math.tanh(_softplus(x)),
    F.ERF: lambda _, x: math.erf(x),
    F.GELU: lambda _, x: 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0))),
    F.GELU_TANH: lambda _, x: (
        0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
    ),
}
"""Functions of numbers; a table of bytes is rounded from them."""
