"""Values that are expressions of dimensions: the arithmetic of shapes that exporters emit.

They are arrays of objects: integers, sizes, truth values and, where the model computes in floating
point, fractions of sizes. Elements are moved by the onnx package, which is given their positions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.call import Call, Objects, text
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.sizes import Ranges, Size, Sizes, at, depends
from arenite.planner.tensors import DType

MOST_SIZED = 1024
"""Elements of a value that is kept as expressions."""

_EXACT = {DType.FLOAT16: 1 << 11, DType.FLOAT32: 1 << 24, DType.FLOAT64: 1 << 53}
"""Integers below which a type has all of them."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number of a floating-point type: an exact fraction of sizes, its denominator above 0."""

    numerator: int
    denominator: int


Number: TypeAlias = int | Fraction | Ratio


def objects(elements: Any, shape: tuple[int, ...]) -> Objects:
    """Return an array of objects, which numpy would make numbers of otherwise."""
    made = np.empty(shape, object)
    made.ravel()[:] = elements  # a new array is contiguous: a view
    return made


def of_array(array: Any) -> Objects | None:
    """Return a constant as exact numbers; None if it has elements that are none."""
    if array.dtype.kind not in "biuf" or array.size > MOST_SIZED:
        return None
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            return None
        return objects([Fraction(each) for each in array.ravel().tolist()], array.shape)
    return objects(array.ravel().tolist(), array.shape)


def varies(array: Objects) -> bool:
    """Tell whether an element depends on a dimension."""
    return any(isinstance(each, (Size, Ratio)) for each in array.ravel().tolist())


def number_at(value: Any, sizes: Sizes) -> int | float:
    """Return what an element is where the dimensions have these values."""
    if isinstance(value, Ratio):
        return at(value.numerator, sizes) / at(value.denominator, sizes)
    return float(value) if isinstance(value, Fraction) else at(value, sizes)


def parts_of(value: Any) -> tuple[int, int]:
    """Return numerator and denominator of an element."""
    if isinstance(value, (Ratio, Fraction)):
        return value.numerator, value.denominator
    return value, 1


def _ratio(ranges: Ranges, numerator: int, denominator: int) -> Number:
    """Return a fraction, as a number if it is the same at all sizes."""
    if not depends(numerator) and not depends(denominator):
        return Fraction(numerator, denominator)
    if ranges.sign(denominator) == -1:
        numerator, denominator = -numerator, -denominator
    if ranges.sign(denominator) != 1:
        raise SizeError(f"it divides by {text(denominator)}, which may be 0")
    if denominator:
        here = Fraction(int(numerator), int(denominator))
        if ranges.same(numerator * here.denominator, denominator * here.numerator):
            return here
    return Ratio(numerator, denominator)


def _sum(ranges: Ranges, one: Number, other: Number, *, sign: int) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        return one + other * sign
    (a, b), (c, d) = parts_of(one), parts_of(other)
    return _ratio(ranges, a * d + c * b * sign, b * d)


def _product(ranges: Ranges, one: Number, other: Number) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        return one * other
    (a, b), (c, d) = parts_of(one), parts_of(other)
    return _ratio(ranges, a * c, b * d)


def _quotient(ranges: Ranges, one: Number, other: Number) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        _require_sign(ranges, other, 1, "divisor")
        _require_sign(ranges, one, 0, "dividend")
        return one // other
    (a, b), (c, d) = parts_of(one), parts_of(other)
    return _ratio(ranges, a * d, b * c)


def _remainder(ranges: Ranges, one: Number, other: Number) -> Number:
    if not (isinstance(one, int) and isinstance(other, int)):
        raise SizeError("a remainder of floating-point numbers depends on the sizes")
    _require_sign(ranges, other, 1, "divisor")
    _require_sign(ranges, one, 0, "dividend")
    return one % other


def _require_sign(ranges: Ranges, value: int, least: int, what: str) -> None:
    if ranges.bounds(value)[0] < least:
        raise SizeError(f"the {what} {text(value)} is below {least} at some sizes")


def _decided(holds: Callable[[int], bool], ranges: Ranges, one: Number, other: Number) -> bool:
    """Return whether the difference of two numbers is such that a comparison holds.

    Args:
        holds: Tells it of a difference; from one difference on, or for one alone.

    Raises:
        SizeError: It differs among the sizes.
    """
    (a, b), (c, d) = parts_of(one), parts_of(other)
    difference = a * d - c * b
    low, high = ranges.bounds(difference)
    is_one_sided = low >= 0 or high <= 0 or holds(-1) != holds(1)
    if holds(low) == holds(high) and (is_one_sided or low == high):
        return holds(low)
    if not is_one_sided and ranges.bounds(difference * difference)[0] > 0:
        return holds(1)
    raise _differing(ranges, difference, holds, f"{text(a * d)} and {text(c * b)}")


def _differing(
    ranges: Ranges, difference: int, holds: Callable[[int], bool], what: str
) -> SizeError:
    """Return the error for a comparison, with the place to split the range if that is simple."""
    names = difference.expression.names if isinstance(difference, Size) else frozenset()
    used = [each for each in ranges.dimensions if each.name in names]
    hint = "split the range"
    if len(used) == 1:
        (dimension,) = used
        found = [(v, holds(at(difference, {dimension.name: v}))) for v in dimension.values]
        changes = [str(value) for (_, before), (value, here) in pairwise(found) if before != here]
        hint = f"split the range of {dimension.name} before {' and '.join(changes[:2])}"
    return SizeError(f"a comparison of {what} differs among the sizes; {hint}")


_NOT_BELOW = partial(_decided, lambda difference: difference >= 0)


def _least(ranges: Ranges, one: Number, other: Number) -> Number:
    return _extreme(ranges, one, other, is_largest=False)


def _most(ranges: Ranges, one: Number, other: Number) -> Number:
    return _extreme(ranges, one, other, is_largest=True)


def _extreme(ranges: Ranges, one: Number, other: Number, *, is_largest: bool) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        return ranges.largest(one, other) if is_largest else ranges.smallest(one, other)
    return one if _NOT_BELOW(ranges, one, other) == is_largest else other


def _rounded_down(_ranges: Ranges, value: Number) -> Number:
    numerator, denominator = parts_of(value)
    return _as_float(numerator // denominator)


def _rounded_up(_ranges: Ranges, value: Number) -> Number:
    numerator, denominator = parts_of(value)
    return _as_float(-(-numerator // denominator))


def _as_float(value: int) -> Number:
    return Ratio(value, 1) if depends(value) else Fraction(value)


def _truncated(ranges: Ranges, value: Number) -> Number:
    if isinstance(value, int):
        return int(value) if isinstance(value, bool) else value
    numerator, denominator = parts_of(value)
    if ranges.bounds(numerator)[0] < 0:
        return (
            -(-numerator // denominator) if ranges.bounds(numerator)[1] <= 0 else _no_sign(value)
        )
    return numerator // denominator


def _no_sign(value: Number) -> Number:
    raise SizeError(f"{value} is below 0 at some sizes only, so that its rounding differs")


def _magnitude(ranges: Ranges, value: Number) -> Number:
    return value if _NOT_BELOW(ranges, value, 0) else _product(ranges, value, -1)


_Scalar: TypeAlias = Callable[..., Any]

_ELEMENTWISE: Mapping[str, _Scalar] = {
    "Abs": _magnitude,
    "Add": partial(_sum, sign=1),
    "And": lambda _, one, other: one and other,
    "Ceil": _rounded_up,
    "Div": _quotient,
    "Equal": partial(_decided, lambda difference: difference == 0),
    "Floor": _rounded_down,
    "Greater": partial(_decided, lambda difference: difference > 0),
    "GreaterOrEqual": _NOT_BELOW,
    "Less": partial(_decided, lambda difference: difference < 0),
    "LessOrEqual": partial(_decided, lambda difference: difference <= 0),
    "Max": _most,
    "Min": _least,
    "Mod": _remainder,
    "Mul": _product,
    "Neg": lambda ranges, value: _product(ranges, value, -1),
    "Not": lambda _, value: not value,
    "Or": lambda _, one, other: one or other,
    "Sub": partial(_sum, sign=-1),
    "Where": lambda _, chosen, one, other: one if chosen else other,
}

_FOLDS: Mapping[str, _Scalar] = {
    "ReduceMax": _most,
    "ReduceMin": _least,
    "ReduceProd": _product,
    "ReduceSum": partial(_sum, sign=1),
}

MOVES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
         "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
        (0,),
    ),
    "Concat": (),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
}  # fmt: skip
"""Operators that move elements, with the positions of the inputs that hold them; () for all."""

_ROUNDINGS = ("Cast", "Ceil", "Floor")
"""Operators that make integers of quotients."""


def sized_values(call: Call, types: list[TensorType]) -> list[Objects] | None:
    """Return the results of an arithmetic operator on sizes, None for any other operator.

    Args:
        types: Of the results, their shapes the same at all sizes.

    Raises:
        SizeError: A result differs among the sizes in a way that no expression states.
    """
    inputs = [call.value(position) for position in range(len(call.shapes)) if call.has(position)]
    if call.kind == "Shape":
        shape = call.shape()
        taken = shape[call.taken()]
        return [objects(taken, (len(taken),))]
    if call.kind == "Size":
        total = 1
        for length in call.shape():
            total = total * length
        return [objects([total], ())]
    given = [each for each in inputs if each is not None]
    if len(given) < len(inputs):
        return None
    (made, *_) = types
    for array in given:
        _require_exact(call.ranges, array, made.dtype, rounds=call.kind in _ROUNDINGS)
    if call.kind == "Range":
        start, _, delta = (each.ravel()[0] for each in given)
        places = [_sum(call.ranges, start, delta * n, sign=1) for n in range(made.shape[0])]
        return [objects(places, made.shape)]
    if call.kind == "Cast":
        to_float = made.dtype in _EXACT
        if not to_float and made.dtype not in (DType.INT32, DType.INT64):
            return None
        convert = _to_float if to_float else partial(_truncated, call.ranges)
        return [objects([convert(each) for each in given[0].ravel().tolist()], made.shape)]
    if call.kind in _FOLDS:
        stated = call.stated("axes", 1)
        if not stated and call.integer("noop_with_empty_axes", 0):
            return given[:1]
        axes = range(given[0].ndim) if not stated else [axis % given[0].ndim for axis in stated]
        fold = np.frompyfunc(partial(_FOLDS[call.kind], call.ranges), 2, 1)
        result = given[0]
        for axis in sorted(axes, reverse=True):
            result = objects(fold.reduce(result, axis=axis), _without(result.shape, axis))
        return [result.reshape(made.shape)]
    scalar = _ELEMENTWISE.get(call.kind)
    if scalar is None:
        return None
    if call.kind in ("Max", "Min") and len(given) != 2:
        return given if len(given) == 1 else None
    arrays = np.broadcast_arrays(*given)
    elements = zip(*(array.ravel().tolist() for array in arrays), strict=True)
    return [objects([scalar(call.ranges, *each) for each in elements], made.shape)]


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _to_float(value: Number) -> Number:
    return _as_float(value) if isinstance(value, int) else value


def _require_exact(ranges: Ranges, array: Objects, dtype: DType, *, rounds: bool) -> None:
    """Refuse fractions that a floating-point type has to round.

    Args:
        dtype: The type, or that of what is made of them.
        rounds: Whether they are rounded to integers, as is right for a quotient of exact numbers.
    """
    for each in array.ravel().tolist():
        if not isinstance(each, Ratio):
            continue
        low, high = ranges.bounds(each.numerator)
        power = not depends(each.denominator) and each.denominator & (each.denominator - 1) == 0
        if not (power or rounds) or max(-low, high) >= _EXACT.get(dtype, 1 << 24):
            raise SizeError(f"{text(each.numerator)}/{text(each.denominator)} is rounded")
