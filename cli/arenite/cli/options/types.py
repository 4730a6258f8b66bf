"""Types of option values: sizes, dimensions, times, percentages."""

import math

import click

from arenite.planner import AliasKind, Budget
from arenite.planner.programs import SAFE_KINDS
from arenite.planner.units import parse_size
from arenite.runtime.rewrites import WeightBudget

_MAX_NUMBER = 2**63 - 1


class SizeType(click.ParamType[int]):
    """Bytes, such as `65536` or `64KiB`."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            size = parse_size(str(value))
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)
        if not 1 <= size <= _MAX_NUMBER:
            self.fail(f"{value!r} is not a size between 1 B and 2^63 - 1 B", param, ctx)
        return size


class NumberType(click.ParamType[int]):
    """A whole number in a range that speaks for itself; the help does not state it."""

    name = "number"

    def __init__(self, least: int = 0, most: int = 2**31 - 1) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            number = int(str(value))
        except ValueError:
            number = self._least - 1
        if not self._least <= number <= self._most:
            self.fail(
                f"{value!r} is not a whole number from {self._least} to {self._most}", param, ctx
            )
        return number


class WeightBudgetType(click.ParamType[WeightBudget]):
    """Bytes of weights, such as `4MiB`, or a part of them all, such as `25%`."""

    name = "weight budget"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> WeightBudget:
        if isinstance(value, WeightBudget):
            return value
        try:
            return WeightBudget.parse(str(value).strip())
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)


class BudgetType(click.ParamType[Budget]):
    """Bytes such as `256KiB`, or a percentage of the size without a budget."""

    name = "budget"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Budget:
        if isinstance(value, Budget):
            return value
        try:
            return Budget.parse(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


class AlignmentType(SizeType):
    """A power of two of bytes."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        alignment = super().convert(value, param, ctx)
        if alignment & (alignment - 1):
            self.fail(f"{alignment} is not a power of two", param, ctx)
        return alignment


class DimType(click.ParamType[tuple[str, int]]):
    """The value of a free dimension, such as `batch=1`."""

    name = "name=n"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        name, equals, number = str(value).rpartition("=")
        if not (name and equals and _is_dimension(number)):
            self.fail(f"{value!r} is not NAME=N with N of at least 0, such as batch=1", param, ctx)
        return name, int(number)


class ShapeType(click.ParamType[tuple[str, tuple[int, ...]]]):
    """The shape of a graph input, such as `image=1x3x224x224`."""

    name = "input=shape"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        name, equals, shape = str(value).rpartition("=")
        dimensions = shape.split("x")
        if not (name and equals and all(map(_is_dimension, dimensions))):
            self.fail(
                f"{value!r} is not INPUT=SHAPE with dimensions of at least 0, such as "
                "image=1x3x224x224",
                param,
                ctx,
            )
        return name, tuple(map(int, dimensions))


class InputValueType(click.ParamType[tuple[str, float]]):
    """A fixed value of a graph input, such as `sr=16000`."""

    name = "input=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Return the name and the number, whole where it is written so; true is 1."""
        name, equals, text = str(value).rpartition("=")
        number = _number(text.strip().lower())
        if not (name and equals) or number is None:
            self.fail(f"{value!r} is not INPUT=NUMBER, such as sr=16000", param, ctx)
        return name, number


def positive_number(text: str) -> float | None:
    """Return a finite number above 0; None if the text states none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


class SecondsType(click.ParamType[float]):
    """A positive time."""

    name = "seconds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = positive_number(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a positive number of seconds", param, ctx)
        return seconds


class PercentType(click.ParamType[float]):
    """A percentage that is not negative, such as `2%`."""

    name = "percent"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share: 0.02 for `2%`."""
        if isinstance(value, float):
            return value
        try:
            percent = float(str(value).strip().removesuffix("%"))
        except ValueError:
            percent = math.nan
        if not 0 <= percent < math.inf:
            self.fail(f"{value!r} is not a percentage such as 2%", param, ctx)
        return percent / 100


class AliasType(click.ParamType[tuple[AliasKind, ...]]):
    """Kinds of sharing: `none`, or names such as `views,in-place` and `all,overlap`."""

    name = "kinds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[AliasKind, ...]:
        """Return the kinds, in the order they are defined."""
        if isinstance(value, tuple):
            return value
        text = str(value)
        if text == "none":
            return ()
        kinds: set[str] = set()
        for word in text.split(","):
            if word != "all" and word not in tuple(AliasKind):
                known = ", ".join(("none", "all", *AliasKind))
                self.fail(f"{word!r} is not one of {known}", param, ctx)
            kinds.update(SAFE_KINDS if word == "all" else (word,))
        return tuple(kind for kind in AliasKind if kind in kinds)


def _number(text: str) -> float | None:
    if text in ("true", "false"):
        return int(text == "true")
    try:
        whole = int(text)
    except ValueError:
        pass
    else:
        return whole if abs(whole) <= _MAX_NUMBER else None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_dimension(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
