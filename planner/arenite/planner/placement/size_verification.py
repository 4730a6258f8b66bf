"""Prove a plan for every size of a range, sharing no code with the arithmetic of sizes.

A plan places each record with its bytes at the highest sizes. If no size of a record, at any
value of the dimensions, exceeds these bytes, the record lies in their front part, and the checks
of `verify` hold for all values. A tensor whose place in its record depends on dimensions must lie,
at every value, in bytes that the record has at all steps at which the tensor is in use. A
permitted overlap is that of the highest sizes: its records begin as far apart at all sizes, and
that is as far as any of them needs.

::

    InvalidPlanError
    ├── OversizedError          a record takes more than its bytes at some value
    ├── UnreachedSizeError      a record takes less than its bytes at every value
    ├── UndefinedSizeError      an expression is negative, divides by 0 or exceeds 63 bits
    ├── MisplacedPartError      a part lies in bytes that its record does not have at some step
    └── UnprovedSizeError       too many values to try
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.problem import MovingPart, Problem, UsageRecord
from arenite.planner.sizes import Dimension, Tree

_MOST_NUMBER: Final = (1 << 62) - 1
_MOST_POINTS: Final = 1 << 20
"""Values that one expression may be tried at."""
_MOST_TRIED: Final = 1 << 26
"""Values that all expressions of a plan together may be tried at: some seconds."""

_Grid: TypeAlias = NDArray[np.int64] | np.int64


class OversizedError(InvalidPlanError):
    """A record takes more bytes at some value of the dimensions than it was placed with."""


class UnreachedSizeError(InvalidPlanError):
    """A record takes fewer bytes at every value of the dimensions than it was placed with."""


class UndefinedSizeError(InvalidPlanError):
    """An expression has no value at some value of the dimensions, or none that is a size."""


class MisplacedPartError(InvalidPlanError):
    """A part takes bytes, at some value of the dimensions, that its record has not."""


class UnprovedSizeError(InvalidPlanError):
    """The dimensions have too many values to try, and monotonicity proves nothing."""


def verify_sizes(problem: Problem, dimensions: Sequence[Dimension]) -> None:
    """Check that the size of every record is what its expression is at most, and never negative.

    Check also that every part lies in bytes of its record, at the steps at which it is in use.
    Bounds of intervals prove it for expressions in which each dimension pulls one way. Otherwise
    all values of the dimensions that the expression names are tried.

    Raises:
        InvalidPlanError: By the subclass of the first rule broken.

    Cost: O(the nodes of all expressions), times the values tried.
    """
    ranges = {each.name: each for each in dimensions}
    proved: dict[tuple[Tree, int], None] = {}
    budget = _MOST_TRIED
    for record in problem.records:
        if record.expression is not None and (record.expression, record.size) not in proved:
            budget -= _check(record, record.expression, ranges, budget)
            proved[record.expression, record.size] = None
        for part in record.parts:
            budget -= _check_part(record, part, ranges, budget)


def size_at(record: UsageRecord, sizes: Mapping[str, int]) -> int:
    """Return the bytes of a record where the dimensions have these values."""
    if record.expression is None:
        return record.size
    return int(_grid(record.expression, {name: np.int64(at) for name, at in sizes.items()}))


def _check(
    record: UsageRecord, expression: Tree, ranges: Mapping[str, Dimension], budget: int
) -> int:
    """Check one record, and return how many values were tried."""
    _require_ranges(record, expression, ranges)
    low, high, is_sure = _interval(expression, ranges)
    if max(-low, high) > _MOST_NUMBER:
        raise UndefinedSizeError(f"{record.name!r}: its expression exceeds 2^62", [record.name])
    if is_sure and low >= 0 and high == record.size:
        # The bound is attained if the expression has this value where all dimensions are highest.
        highest = {name: np.int64(each.high) for name, each in ranges.items()}
        if int(_grid(expression, highest)) == record.size:
            return 0
    grid, tried = _all_values(record, _names(expression), ranges, budget)
    found = np.broadcast_to(_grid(expression, grid, record.name), (tried,))
    _refuse_first(record, found < 0, found, grid, UndefinedSizeError, "at least 0 expected")
    _refuse_first(
        record, found > record.size, found, grid, OversizedError,
        f"it was placed with {record.size} B",
    )  # fmt: skip
    if not np.any(found == record.size):
        raise UnreachedSizeError(
            f"{record.name!r} takes {int(found.max())} B at most, it was placed with "
            f"{record.size} B",
            [record.name],
        )
    return tried


def _check_part(
    record: UsageRecord, part: MovingPart, ranges: Mapping[str, Dimension], budget: int
) -> int:
    """Check a part of a record, and return how many values were tried."""
    for each in (part.begin, part.stop):
        _require_ranges(record, each, ranges)
    low, high = _room(record, part, {name: each.high for name, each in ranges.items()})
    begins, stops = (_interval(each, ranges) for each in (part.begin, part.stop))
    if begins[2] and stops[2] and begins[0] >= low and stops[1] <= high:
        return 0
    names = _names(part.begin) | _names(part.stop)
    grid, tried = _all_values(record, names, ranges, budget)
    begin, stop = (
        np.broadcast_to(_grid(each, grid, record.name), (tried,))
        for each in (part.begin, part.stop)
    )
    wrong = (begin < stop) & ((begin < low) | (stop > high))
    if np.any(wrong):
        index = int(np.argmax(wrong))
        raise MisplacedPartError(
            f"{part.tensor!r} lies at bytes {int(begin[index])} to {int(stop[index])} of "
            f"{record.name!r} at {_where(grid, index)}; in steps [{part.start}, {part.end}) that "
            f"has bytes {low} to {high}",
            sorted((part.tensor, record.name)),
        )
    return tried


def _room(record: UsageRecord, part: MovingPart, highest: Mapping[str, int]) -> tuple[int, int]:
    """Return the bytes around a part that its record has at all its steps, the highest size."""
    at = int(_grid(part.begin, {name: np.int64(each) for name, each in highest.items()}))
    low = high = None
    for stair in sorted(record.stairs, key=lambda each: each.offset):
        if stair.start > part.start or stair.end < part.end:
            continue
        if high != stair.offset:
            if high is not None and at < high:
                break
            low = stair.offset
        high = stair.offset + stair.size
    return (0, 0) if low is None or high is None or not low <= at <= high else (low, high)


def _require_ranges(record: UsageRecord, tree: Tree, ranges: Mapping[str, Dimension]) -> None:
    for name in sorted(_names(tree) - ranges.keys()):
        raise UndefinedSizeError(
            f"{record.name!r}: its expression names {name!r}, which has no range", [record.name]
        )


def _all_values(
    record: UsageRecord, names: Iterable[str], ranges: Mapping[str, Dimension], budget: int
) -> tuple[dict[str, NDArray[np.int64]], int]:
    """Return all values of some dimensions, and how many there are.

    Raises:
        UnprovedSizeError: There are more than may be tried.
    """
    named = [ranges[name] for name in sorted(names)]
    tried = math.prod(map(len, named))
    if tried > min(budget, _MOST_POINTS):
        raise UnprovedSizeError(
            f"{record.name!r}: its expression is not monotone, and {', '.join(map(str, named))} "
            f"have {tried:,} values to try; give a larger step or a smaller range",
            [record.name],
        )
    return dict(zip((each.name for each in named), _values(named), strict=True)), tried


def _where(grid: Mapping[str, NDArray[np.int64]], index: int) -> str:
    return ", ".join(f"{name}={values[index]}" for name, values in grid.items())


def _refuse_first(
    record: UsageRecord,
    is_wrong: NDArray[np.bool_],
    found: NDArray[np.int64],
    grid: Mapping[str, NDArray[np.int64]],
    error: type[InvalidPlanError],
    expected: str,
) -> None:
    """Return if nothing is wrong; else raise the error for the first values where it is."""
    if np.any(is_wrong):
        index = int(np.argmax(is_wrong))
        raise error(
            f"{record.name!r} takes {int(found[index])} B at {_where(grid, index)}; {expected}",
            [record.name],
        )


def _values(dimensions: Sequence[Dimension]) -> list[NDArray[np.int64]]:
    axes = [np.arange(each.low, each.high + 1, each.step, dtype=np.int64) for each in dimensions]
    return [each.ravel() for each in np.meshgrid(*axes, indexing="ij")]


def _names(tree: Tree) -> set[str]:
    if isinstance(tree, str):
        return {tree}
    return set().union(*map(_names, tree[1:])) if isinstance(tree, tuple) else set()


def _interval(tree: Tree, ranges: Mapping[str, Dimension]) -> tuple[int, int, bool]:
    """Return bounds of an expression over the ranges, and whether all divisors are above 0."""
    if isinstance(tree, int):
        return tree, tree, True
    if isinstance(tree, str):
        return ranges[tree].low, ranges[tree].high, True
    sign, *operands = tree
    bounds = [_interval(each, ranges) for each in operands]
    low, high, is_sure = bounds[0]
    for other_low, other_high, other_is_sure in bounds[1:]:
        is_sure = is_sure and other_is_sure
        if sign == "/" and other_low < 1:
            most = max(abs(low), abs(high))
            low, high, is_sure = -most - 1, most, False
            continue
        corners = [
            _INTEGERS[str(sign)](one, other)
            for one in (low, high)
            for other in (other_low, other_high)
        ]
        low, high = min(corners), max(corners)
        if max(-low, high) > _MOST_NUMBER:
            break
    extremes = (low, high, *(each for bound in bounds for each in bound[:2]))
    if max(map(abs, extremes)) > _MOST_NUMBER:  # a part that overflows makes the whole overflow
        return -_MOST_NUMBER - 1, _MOST_NUMBER + 1, False
    return low, high, is_sure


_INTEGERS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": lambda one, other: one + other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one // other,
    "max": max,
    "min": min,
}
SIGNS: Final = frozenset(_INTEGERS)


def _grid(tree: Tree, values: Mapping[str, _Grid], name: str = "") -> Any:
    """Return the value of an expression at many values of the dimensions.

    Raises:
        UndefinedSizeError: A divisor is below 1.
    """
    if isinstance(tree, int):
        return np.int64(tree)
    if isinstance(tree, str):
        return values[tree]
    sign, *operands = tree
    found = _grid(operands[0], values, name)
    for each in operands[1:]:
        other = _grid(each, values, name)
        if sign == "+":
            found = found + other
        elif sign == "*":
            found = found * other
        elif sign == "max":
            found = np.maximum(found, other)
        elif sign == "min":
            found = np.minimum(found, other)
        else:
            if np.any(other < 1):
                raise UndefinedSizeError(f"{name!r}: its expression divides by 0 or less", [name])
            found = found // other
    return found
