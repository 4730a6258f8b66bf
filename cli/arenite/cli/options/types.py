"""Types of option values: sizes, dimensions, times, percentages."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import click

from arenite.cli.console.results import STANDARD_OUTPUT
from arenite.planner import AliasKind, Budget
from arenite.planner.errors import SizeError
from arenite.planner.programs import SAFE_KINDS
from arenite.planner.sizes import Dimension, Length
from arenite.planner.units import parse_size
from arenite.runtime.rewrites import WeightBudget

_MAX_NUMBER = 2**63 - 1
_T = TypeVar("_T")


class Parsed(click.ParamType[_T]):
    """A value that a function reads from text; the text of its ValueError is the message."""

    def __init__(self, name: str, parse: Callable[[str], _T]) -> None:
        self.name = name
        self.parse = parse

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> _T:
        if not isinstance(value, str):
            return cast(_T, value)  # a default
        try:
            return self.parse(value)
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)


def _program_file(text: str) -> Path:
    from arenite.pipeline.making import SUFFIX  # most commands write no program

    path = Path(text)
    if path.suffix != SUFFIX and path != STANDARD_OUTPUT:
        raise ValueError(f"{text!r} must end in {SUFFIX}")
    return path


PROGRAM_FILE = Parsed("file", _program_file)
"""A program file to write, as other commands tell it by its name."""


def size_of(text: str) -> int:
    size = parse_size(text)
    if not 1 <= size <= _MAX_NUMBER:
        raise ValueError(f"{text!r} is not a size between 1 B and 2^63 - 1 B")
    return size


SIZE = Parsed("size", size_of)
"""Bytes, such as `65536` or `64KiB`."""


def number_type(least: int = 0, most: int = 2**31 - 1) -> Parsed[int]:
    """Return the type of whole numbers in a range that the help need not state."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise ValueError(f"{text!r} is not a whole number from {least} to {most}")
        return number

    return Parsed("number", parse)


WEIGHT_BUDGET = Parsed("weight budget", lambda text: WeightBudget.parse(text.strip()))
"""Bytes of weights, such as `4MiB`, or a part of them all, such as `25%`."""

BUDGET = Parsed("budget", lambda text: Budget.parse(text.strip()))
"""Bytes such as `256KiB`, or a percentage of the size without a budget."""


def _alignment(text: str) -> int:
    alignment = size_of(text)
    if alignment & (alignment - 1):
        raise ValueError(f"{alignment} is not a power of two")
    return alignment


ALIGNMENT = Parsed("size", _alignment)


def _dim(text: str) -> tuple[str, int]:
    name, equals, number = text.rpartition("=")
    if not (name and equals and _is_dimension(number)):
        raise ValueError(f"{text!r} is not NAME=N with N of at least 0, such as batch=1")
    return name, int(number)


DIM = Parsed("name=n", _dim)


def _ranged_dim(text: str) -> tuple[str, str]:
    """Return the name and the text of its length, which may name other dimensions."""
    name, equals, length = text.rpartition("=")
    if not (name and equals):
        raise ValueError(
            f"{text!r} is not NAME=N or NAME=LOW..HIGH[:STEP] with numbers of at least 0, such as "
            "batch=1, seq=1..512 or seq=64..512:64; past=0..511+ for a cache that grows"
        )
    return name, length


RANGED_DIM = Parsed("name=n", _ranged_dim)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, shape = text.rpartition("=")
    dimensions = shape.split("x")
    if not (name and equals and all(map(_is_dimension, dimensions))):
        raise ValueError(
            f"{text!r} is not INPUT=SHAPE with dimensions of at least 0, such as image=1x3x224x224"
        )
    return name, tuple(map(int, dimensions))


SHAPE = Parsed("input=shape", _shape)


def _ranged_shape(text: str) -> tuple[str, tuple[Length, ...]]:
    name, equals, shape = text.rpartition("=")
    lengths = shape.split("x")
    if not (name and equals) or "," in shape:
        raise ValueError(
            f"{text!r} is not INPUT=SHAPE with lengths or ranges LOW..HIGH[:STEP] of at least 0, "
            "such as image=1x3x224x224 or image=1x3x32..1080x32..1920"
        )
    return name, tuple(_length(f"{name}:{axis}", length) for axis, length in enumerate(lengths))


RANGED_SHAPE = Parsed("input=shape", _ranged_shape)


def _sizes(text: str) -> dict[str, int]:
    """Return values of dimensions, such as `seq=17,past=3`."""
    sizes: dict[str, int] = {}
    for each in text.split(","):
        name, value = _dim(each)
        if name in sizes:
            raise ValueError(f"{text!r} names {name!r} twice")
        sizes[name] = value
    return sizes


SIZES = Parsed("name=n", _sizes)
"""Values of dimensions that have a range; others have their highest value."""


def _length(name: str, text: str) -> Length:
    try:
        return Dimension.parse(name, text)
    except SizeError as error:
        raise ValueError(error.reason) from error


def _input_value(text: str) -> tuple[str, float]:
    """Return the name and the number, whole where it is written so; true is 1."""
    name, equals, stated = text.rpartition("=")
    number = _number(stated.strip().lower())
    if not (name and equals) or number is None:
        raise ValueError(f"{text!r} is not INPUT=NUMBER, such as sr=16000")
    return name, number


INPUT_VALUE = Parsed("input=value", _input_value)


def positive_number(text: str) -> float | None:
    """Return a finite number above 0; None if the text states none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def _seconds(text: str) -> float:
    seconds = positive_number(text)
    if seconds is None:
        raise ValueError(f"{text!r} is not a positive number of seconds")
    return seconds


SECONDS = Parsed("seconds", _seconds)


def _percent(text: str) -> float:
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0 <= percent < math.inf:
        raise ValueError(f"{text!r} is not a percentage such as 2%")
    return percent / 100


PERCENT = Parsed("percent", _percent)
"""A share: 0.02 for `2%`."""


def _aliases(text: str) -> tuple[AliasKind, ...]:
    """Return the kinds, in the order they are defined."""
    if text == "none":
        return ()
    kinds: set[str] = set()
    for word in text.split(","):
        if word != "all" and word not in tuple(AliasKind):
            known = ", ".join(("none", "all", *AliasKind))
            raise ValueError(f"{word!r} is not one of {known}")
        kinds.update(SAFE_KINDS if word == "all" else (word,))
    return tuple(kind for kind in AliasKind if kind in kinds)


ALIASES = Parsed("kinds", _aliases)
"""Kinds of sharing: `none`, or names such as `views,in-place` and `all,overlap`."""


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
