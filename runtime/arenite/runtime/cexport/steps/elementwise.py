"""Functions of each element."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, TypeAlias

import numpy as np

from arenite.planner import Array, DType, Tensor
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import quantised_multiplier, scale_of, zero_of
from arenite.runtime.cexport.base.text import number
from arenite.runtime.cexport.steps import sixteen_bits, tables
from arenite.runtime.cexport.steps.writer import StepWriter, writes
from arenite.runtime.operators.elementwise import (
    Binary,
    BinaryFunction,
    Convert,
    MultiplyAdd,
    Select,
    Unary,
    UnaryFunction,
)

Axis: TypeAlias = tuple[int, tuple[int, ...]]
"""The length of an axis, and for each operand and the result the elements from one index to the
next: 0 where one element serves all indices."""


@dataclass(frozen=True, slots=True)
class BroadcastRows:
    """Rows of a result, and how the operands repeat for them.

    Attributes:
        rows: Number of rows.
        width: Elements of a row.
        pitches: For each operand, elements from one row to the next.
        steps: For each operand, 1, or 0 where one element serves a whole row.
        outer: The axes that the rows repeat along, in loops round the kernel.
    """

    rows: int
    width: int
    pitches: tuple[int, ...]
    steps: tuple[int, ...]
    outer: tuple[Axis, ...] = ()


def broadcast_axes(operands: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> list[Axis]:
    """Return the axes of operands that broadcast to a result, at least two; equal ones are merged.

    Raises:
        NotWrittenError: They do not broadcast.
    """
    groups: list[tuple[int, tuple[bool, ...]]] = []
    reversed_shapes = (shape[::-1] for shape in (result, *operands))
    for length, *own in list(zip_longest(*reversed_shapes, fillvalue=1))[::-1]:
        if length == 1:
            continue
        if any(each not in (1, length) for each in own):
            raise NotWrittenError(f"operands {[*operands]} do not broadcast to {result}")
        varies = (*(each == length for each in own), True)
        if groups and groups[-1][1] == varies:
            groups[-1] = (groups[-1][0] * length, varies)
        else:
            groups.append((length, varies))
    while len(groups) < 2:
        groups.insert(0, (1, (True,) * (len(operands) + 1)))
    steps = [1] * (len(operands) + 1)
    axes: list[Axis] = []
    for length, varies in reversed(groups):
        axes.insert(0, (length, tuple(s * v for s, v in zip(steps, varies, strict=True))))
        steps = [s * length if v else s for s, v in zip(steps, varies, strict=True)]
    return axes


def meet(operands: Sequence[Tensor], result: Tensor, rows: tuple[int, int]) -> BroadcastRows:
    """Return how operands that broadcast to a result meet.

    Args:
        rows: Rows and elements of each where no operand repeats.

    Raises:
        NotWrittenError: They do not broadcast.
    """
    if all(each.shape == result.shape for each in operands):
        return BroadcastRows(*rows, (rows[1],) * len(operands), (1,) * len(operands))
    *outer, (count, pitches), (width, steps) = broadcast_axes(
        [each.shape for each in operands], result.shape
    )
    return BroadcastRows(count, width, pitches[:-1], steps[:-1], tuple(outer))


F = UnaryFunction

EXPRESSIONS: Final[Mapping[UnaryFunction, str]] = {
    F.CLAMP: "x < alpha ? alpha : x > beta ? beta : x",
    F.ABSOLUTE: "fabsf(x)",
    F.NEGATE: "-x",
    F.SQUARE: "x * x",
    F.SQUARE_ROOT: "sqrtf(x)",
    F.RECIPROCAL_SQUARE_ROOT: "1.0f / sqrtf(x)",
    F.RECIPROCAL: "1.0f / x",
    F.FLOOR: "floorf(x)",
    F.CEILING: "ceilf(x)",
    F.ROUND: "rintf(x)",
    F.SIGN: "(float)((x > 0.0f) - (x < 0.0f))",
    F.EXPONENTIAL: "expf(x)",
    F.LOGARITHM: "logf(x)",
    F.SINE: "sinf(x)",
    F.COSINE: "cosf(x)",
    F.HYPERBOLIC_TANGENT: "tanhf(x)",
    F.SIGMOID: "1.0f / (1.0f + expf(-x))",
    F.HARD_SIGMOID: "fmaxf(0.0f, fminf(1.0f, alpha * x + beta))",
    F.HARD_SWISH: "x * fmaxf(0.0f, fminf(6.0f, x + 3.0f)) / 6.0f",
    F.SWISH: "x / (1.0f + expf(-alpha * x))",
    F.ELU: "x > 0.0f ? x : alpha * expm1f(x)",
    F.CELU: "x > 0.0f ? x : alpha * expm1f(x / alpha)",
    F.SELU: "beta * (x > 0.0f ? x : alpha * expm1f(x))",
    F.LEAKY_RELU: "x >= 0.0f ? x : alpha * x",
    F.THRESHOLDED_RELU: "x > alpha ? x : 0.0f",
    F.SOFTPLUS: "fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)))",
    F.SOFTSIGN: "x / (1.0f + fabsf(x))",
    F.MISH: "x * tanhf(fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))))",
    F.ERF: "erff(x)",
    F.GELU: "0.5f * x * (1.0f + erff(x * 0.707106781f))",
    F.GELU_TANH: "0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)))",
}
"""What has none, truths and tests for NaN, is refused."""


def definition(function: UnaryFunction) -> tuple[str, str]:
    """Return the name of a function in C, and its definition."""
    name, expression = f"{function.value}_of", EXPRESSIONS[function]
    unused = [each for each in ("alpha", "beta") if each not in expression]
    body = "".join(f"    (void){each};\n" for each in unused)
    return name, (
        f"static float {name}(float x, float alpha, float beta)\n{{\n{body}"
        f"    return {expression};\n}}\n"
    )


B = BinaryFunction

_NUMBERS = (
    B.ADD, B.SUBTRACT, B.MULTIPLY, B.DIVIDE, B.MAXIMUM, B.MINIMUM, B.SQUARED_DIFFERENCE, B.PRELU,
)  # fmt: skip
_COMPARISONS = (B.EQUAL, B.NOT_EQUAL, B.LESS, B.LESS_EQUAL, B.GREATER, B.GREATER_EQUAL)
_INTEGERS = (B.ADD, B.SUBTRACT, B.MULTIPLY, B.MAXIMUM, B.MINIMUM)
_FUNCTIONS: Final[Mapping[tuple[str, str], Sequence[BinaryFunction]]] = {
    ("float32", "float32"): (*_NUMBERS, B.POWER, B.MODULUS, B.FLOOR_DIVIDE),
    ("float32", "bool"): _COMPARISONS,
    ("int32", "int32"): (*_INTEGERS, B.FLOOR_DIVIDE),
    ("int32", "bool"): _COMPARISONS,
    ("int64", "int64"): _INTEGERS,
    ("int64", "bool"): _COMPARISONS,
    ("bool", "bool"): (B.LOGICAL_AND, B.LOGICAL_OR, B.LOGICAL_XOR, B.EQUAL, B.NOT_EQUAL),
}
"""Functions of two numbers that have a kernel, by the types of operands and results."""

ADD_SHIFT = 20
"""Bits that bytes are shifted left by before they are added."""
_ADD_SHIFT_16 = 15
"""The same of numbers of 16 bits."""

_SUFFIXES = {"int8": "s8", "int16": "s16"}
_PLAIN_SUFFIXES = {"bool": "bool", "int32": "s32", "int64": "s64", "float32": "f32"}
_ALL_SUFFIXES = {**_SUFFIXES, **_PLAIN_SUFFIXES}
_REQUANTISED = {
    ("int8", "int16"): "requantise_s8_s16", ("int16", "int8"): "requantise_s16_s8",
    ("int16", "int16"): "requantise_s16_s16", ("int16", "int32"): "requantise_s16_s32",
    ("int32", "int8"): "requantise_s32_s8", ("int32", "int16"): "requantise_s32_s16",
}  # fmt: skip


@writes(Unary)
def unary(t: StepWriter) -> None:
    """Write a function of one number: of bytes a table."""
    operator = t.operator
    assert isinstance(operator, Unary)
    kind = t.types("int8", "int16", "float32", "bool")
    if kind == "int16":
        sixteen_bits.unary(t, operator)
        return
    if kind == "bool" and operator.function is F.LOGICAL_NOT:
        look_up(t, (np.arange(256) == 0).astype(np.uint8))
        return
    if kind == "int8":
        look_up(t, tables.unary(operator, t.input(), t.output(), t.file.rounding))
        return
    if kind == "bool" or operator.function not in EXPRESSIONS:
        raise NotWrittenError(f"function={operator.function.value} of {kind} is unsupported")
    function, text = definition(operator.function)
    t.define(text)
    numbers = number(float(operator.alpha)), number(float(operator.beta))
    t.call("map_f32", function, *numbers, t.width, *t.row_pairs())


@writes(Convert)
def convert(t: StepWriter) -> None:
    """Write a change of type or of quantisation."""
    source, result = t.input(), t.output()
    kinds, even = (source.dtype.label, result.dtype.label), "even_" if t.is_even else ""
    if kinds == ("int8", "int8"):
        look_up(t, tables.rescaled(source, result, t.file.rounding))
    elif set(kinds) == {"int8", "uint8"}:
        _check_shift(source, result)
        look_up(t, np.arange(256, dtype=np.uint8) ^ np.uint8(0x80))
    elif source.quantisation is None and result.quantisation is None and _has_plain(*kinds):
        kernel = f"convert_{_ALL_SUFFIXES[kinds[0]]}_{_ALL_SUFFIXES[kinds[1]]}"
        t.call(kernel, t.width, *t.row_pairs())
    elif kinds[0] == "float32" and kinds[1] in _SUFFIXES:
        _through_scale(t, f"quantise_{even}{_SUFFIXES[kinds[1]]}", result)
    elif kinds[1] == "float32" and kinds[0] in _SUFFIXES:
        _through_scale(t, f"dequantise_{_SUFFIXES[kinds[0]]}", source)
    elif kinds in _REQUANTISED:
        _requantise(t, _REQUANTISED[kinds])
    else:
        raise NotWrittenError(f"conversion from {kinds[0]} to {kinds[1]} is unsupported")


def _has_plain(one: str, other: str) -> bool:
    kinds = {one, other}
    return one != other and (kinds <= _PLAIN_SUFFIXES.keys() or kinds == {"int16", "int32"})


def _check_shift(source: Tensor, result: Tensor) -> None:
    sign = 128 if result.dtype.label == "uint8" else -128
    zero = zero_of(source) + sign
    if source.quantisation is None or replace(source.quantisation, zero_point=zero) != (
        result.quantisation
    ):
        raise NotWrittenError(
            "conversion between int8 and uint8 with another scale is unsupported"
        )


def _requantise(t: StepWriter, kernel: str) -> None:
    source, result = t.input(), t.output()
    factor, shift = quantised_multiplier(scale_of(source) / scale_of(result))
    if source.dtype is DType.INT32 and (shift > 0 or zero_of(source)):
        raise NotWrittenError(
            f"conversion from int32 of scale {scale_of(source):g} and zero point "
            f"{zero_of(source)} to scale {scale_of(result):g} is unsupported, "
            "supported: a scale below the result's, and zero point 0"
        )
    t.call(
        kernel, zero_of(source), factor, shift, zero_of(result), t.width, *t.row_pairs(),
    )  # fmt: skip


def _through_scale(t: StepWriter, kernel: str, quantised: Tensor) -> None:
    t.call(kernel, number(scale_of(quantised)), zero_of(quantised), t.width, *t.row_pairs())


def look_up(t: StepWriter, table: Array, source: Tensor | None = None) -> None:
    """Write a function of bytes by its table.

    Args:
        t: The step.
        table: Of 256 values.
        source: What is looked up; by default the first input.
    """
    t.call("lookup_8", t.constant(table, "table"), t.width, *t.row_pairs(source=source))


@writes(MultiplyAdd)
def multiply_add(t: StepWriter) -> None:
    """Write a factor and a term for each channel of floats."""
    operator = t.operator
    assert isinstance(operator, MultiplyAdd)
    t.types("float32")
    depth = t.input().shape[-1]
    layer = t.layer(
        "multiply_add_layer_f32",
        width=t.width,
        depth=depth,
        low=operator.min,
        high=operator.max,
        factors=t.constant(np.broadcast_to(t.array(1).reshape(-1), (depth,)), "factors"),
        terms=t.constant(np.broadcast_to(t.array(2).reshape(-1), (depth,)), "terms"),
    )
    t.call("multiply_add_f32", layer, *t.row_pairs())


@writes(Binary)
def binary(t: StepWriter) -> None:
    """Write a function of two numbers."""
    operator = t.operator
    assert isinstance(operator, Binary)
    one, other, result = t.input(0), t.input(1), t.output()
    types = one.dtype.label, other.dtype.label, result.dtype.label
    found = meet((one, other), result, t.rows(result))
    function = operator.function
    if types[0] == types[1] and function in _FUNCTIONS.get(types[1:], ()):
        _call(
            t, f"{function.value}_{_PLAIN_SUFFIXES[types[0]]}", _layer(t, operator, found), found
        )
    elif types not in (("int8",) * 3, ("int16",) * 3):
        raise NotWrittenError(
            f"function={function.value} of {types[0]} and {types[1]} to {types[2]} is unsupported"
        )
    elif t.is_even:
        _binary_even(t, operator, found)
    elif types[0] == "int8" and function in (B.SQUARED_DIFFERENCE, B.PRELU):
        factors = _squares if function is B.SQUARED_DIFFERENCE else _slopes
        layer = _with_factors(t, operator, found, factors(one, other, result))
        _call(t, f"{function.value}_s8", layer, found)
    elif function in (B.ADD, B.SUBTRACT):
        _call(t, f"add_{_SUFFIXES[types[0]]}", _sum(t, operator, found), found)
    elif function is B.MULTIPLY:
        _call(t, f"multiply_{_SUFFIXES[types[0]]}", _product(t, operator, found), found)
    elif function in (B.MAXIMUM, B.MINIMUM):
        layer = _pair(t, operator, found)
        _call(t, f"{function.value}_{_SUFFIXES[types[0]]}", layer, found)
    else:
        raise NotWrittenError(f"function={function.value} of {types[0]} is unsupported")


def _layer(t: StepWriter, operator: Binary, found: BroadcastRows) -> str:
    """Return the layer of plain numbers."""
    fields = {"width": found.width, "step_a": found.steps[0], "step_b": found.steps[1]}
    if t.output().dtype is DType.FLOAT32:
        return t.layer("binary_layer_f32", **fields, low=operator.min, high=operator.max)
    if (operator.min, operator.max) != (-math.inf, math.inf):
        raise NotWrittenError(f"a clamp of {t.output().dtype.label} is unsupported")
    return t.layer("binary_layer", **fields)


def _call(t: StepWriter, kernel: str, layer: str, found: BroadcastRows) -> None:
    *operands, result = [*map(t.input, range(len(found.pitches))), t.output()]
    sizes = [each.dtype.bits // 8 for each in (*operands, result)]
    *shifts, out_shift = t.loops(found.outer, sizes)
    row_bytes = [n * size for n, size in zip(found.pitches, sizes, strict=False)]
    t.call(
        kernel,
        layer,
        *(
            t.rows_of(each, stride, count=found.rows, shift=shift)
            for each, stride, shift in zip(operands, row_bytes, shifts, strict=True)
        ),
        t.rows_to(result, found.width * sizes[-1], shift=out_shift),
        0,
        found.rows,
    )


@writes(Select)
def select(t: StepWriter) -> None:
    """Write a choice of elements by a condition."""
    values, result = (t.input(1), t.input(2)), t.output()
    if t.input().dtype is not DType.BOOL:
        raise NotWrittenError(f"a condition of {t.input().dtype.label} is unsupported")
    if {each.quantisation for each in values} != {result.quantisation}:
        raise NotWrittenError("operands with different scales are unsupported")
    found = meet((t.input(), *values), result, t.rows(result))
    steps = dict(zip(("step_a", "step_b", "step_c"), found.steps, strict=True))
    layer = t.layer("select_layer", width=found.width, **steps)
    _call(t, f"select_{result.dtype.bits}", layer, found)


def addends(one: Tensor, other: Tensor, result: Tensor) -> tuple[tuple[int, int], ...]:
    """Return factor and shift of two integers, each shifted left, and of their sum."""
    most = 2.0 * max(scale_of(one), scale_of(other))
    shift = _ADD_SHIFT_16 if result.dtype is DType.INT16 else ADD_SHIFT
    return (
        quantised_multiplier(scale_of(one) / most),
        quantised_multiplier(scale_of(other) / most),
        quantised_multiplier(most / (2.0**shift * scale_of(result))),
    )


def _squares(one: Tensor, other: Tensor, result: Tensor) -> tuple[tuple[int, int], ...]:
    """Return the same for the square of a difference, the bytes shifted left by 7 bits."""
    most = 2.0 * max(scale_of(one), scale_of(other))
    return (
        quantised_multiplier(scale_of(one) / most),
        quantised_multiplier(scale_of(other) / most),
        quantised_multiplier(most * most / (2.0**14 * scale_of(result))),
    )


def _slopes(one: Tensor, other: Tensor, result: Tensor) -> tuple[tuple[int, int], ...]:
    """Return factor and shift of numbers, of nothing, and of negative ones times their slope."""
    return (
        quantised_multiplier(scale_of(one) / scale_of(result)),
        (0, 0),
        quantised_multiplier(scale_of(one) * scale_of(other) / scale_of(result)),
    )


def _sum(t: StepWriter, operator: Binary, found: BroadcastRows) -> str:
    factors = addends(t.input(0), t.input(1), t.output())
    return _with_factors(t, operator, found, factors)


def _with_factors(
    t: StepWriter, operator: Binary, found: BroadcastRows, factors: tuple[tuple[int, int], ...]
) -> str:
    """Return the layer of two operands and a result that have a factor each."""
    (factor_a, shift_a), (factor_b, shift_b), (factor, shift) = factors
    return t.layer(
        "add_layer",
        **_of_bytes(t, operator, found),
        factor_a=factor_a,
        shift_a=shift_a,
        factor_b=factor_b,
        shift_b=shift_b,
        sign=-1 if operator.function is B.SUBTRACT else 1,
        factor=factor,
        shift=shift,
    )


def _product(t: StepWriter, operator: Binary, found: BroadcastRows) -> str:
    one, other, result = t.input(0), t.input(1), t.output()
    factor, shift = quantised_multiplier(scale_of(one) * scale_of(other) / scale_of(result))
    return t.layer("multiply_layer", **_of_bytes(t, operator, found), factor=factor, shift=shift)


def _binary_even(t: StepWriter, operator: Binary, found: BroadcastRows) -> None:
    """Write a function of two bytes as our runtime computes it, halves to the even integer."""
    if t.input().dtype is DType.INT16:
        t.refuse_even("int16")
    one, other, result = t.input(0), t.input(1), t.output()
    scales = [np.float32(scale_of(each)) for each in (one, other, result)]
    ratios = [float(each / scales[2]) for each in scales[:2]]
    function, layout = operator.function, _of_bytes(t, operator, found)
    if function in (B.ADD, B.SUBTRACT) and 2.0**-10 <= max(ratios) < 2.0**8:
        shift = 21 - math.frexp(max(ratios))[1]
        factor_a, factor_b = (round(each * 2.0**shift) for each in ratios)
        if function is B.SUBTRACT:
            factor_b = -factor_b
        bias = factor_a * layout.pop("offset_a") + factor_b * layout.pop("offset_b")
        layer = t.layer(
            "add_even_layer", **layout, bias=bias + (1 << (shift - 1)), factor_a=factor_a,
            factor_b=factor_b, shift=shift,
        )  # fmt: skip
        _call(t, "add_even_s8", layer, found)
    elif function is B.MULTIPLY:
        layer = t.layer(
            "multiply_even_layer", **layout, ratio=float(scales[0] * scales[1] / scales[2])
        )
        _call(t, "multiply_even_s8", layer, found)
    elif function in _NUMBERS:
        layer = t.layer(
            "numbers_layer", width=found.width, step_a=found.steps[0], step_b=found.steps[1],
            zero_a=zero_of(one), zero_b=zero_of(other), out_zero=zero_of(result),
            scale_a=scale_of(one), scale_b=scale_of(other), out_scale=scale_of(result),
            low=operator.min, high=operator.max,
        )  # fmt: skip
        _call(t, f"{function.value}_numbers_s8", layer, found)
    else:
        raise NotWrittenError(f"function={function.value} of int8 is unsupported")


def _of_bytes(t: StepWriter, operator: Binary, found: BroadcastRows) -> dict[str, int]:
    """Return what a layer states of two operands and a result, each with a scale of its own."""
    low, high = t.clamp(operator.min, operator.max)
    return {
        "width": found.width,
        "step_a": found.steps[0],
        "step_b": found.steps[1],
        "offset_a": -zero_of(t.input(0)),
        "offset_b": -zero_of(t.input(1)),
        "out_zero": zero_of(t.output()),
        "low": low,
        "high": high,
    }


def _pair(t: StepWriter, operator: Binary, found: BroadcastRows) -> str:
    result = t.output()
    if any(t.input(i).quantisation != result.quantisation for i in range(2)):
        raise NotWrittenError("operands with different scales are unsupported")
    low, high = (-128, 127) if result.dtype is DType.INT8 else (-(2**15), 2**15 - 1)
    if result.quantisation is not None:
        low, high = t.clamp(operator.min, operator.max)
    return t.layer(
        "pair_layer", width=found.width, step_a=found.steps[0], step_b=found.steps[1], low=low,
        high=high,
    )  # fmt: skip
