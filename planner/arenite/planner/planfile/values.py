"""Typed access to the values of an untrusted document."""

from collections.abc import Sequence
from typing import TypeAlias

from arenite.planner.planfile.errors import (
    MissingFieldError,
    OutOfRangeError,
    UnknownFieldError,
    WrongTypeError,
)

MAX_NUMBER = (1 << 63) - 1

Object: TypeAlias = dict[str, object]


def check_fields(
    value: Object, where: str, required: Sequence[str], optional: Sequence[str] = ()
) -> None:
    for name in required:
        if name not in value:
            raise MissingFieldError(f"{where} has no {name!r}")
    for name in value:
        if name not in required and name not in optional:
            raise UnknownFieldError(f"{where} has an unknown field {name!r}")


def wrong_type(name: str, value: object, expected: str) -> WrongTypeError:
    return WrongTypeError(f"{name} is {type(value).__name__}, {expected} expected")


def text(parent: Object, name: str) -> str:
    return as_text(parent[name], name)


def as_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, value, "text")
    return value


def texts(parent: Object, name: str) -> tuple[str, ...]:
    return tuple(as_text(item, f"an item of {name}") for item in items(parent, name))


def choice(parent: Object, name: str, choices: Sequence[str]) -> str:
    """Return a field that is one of a few texts."""
    value = text(parent, name)
    if value not in choices:
        raise WrongTypeError(f"{name} is {value!r}, one of {', '.join(choices)} expected")
    return value


def number(parent: Object, name: str, least: int = 0) -> int:
    """Return a field that is a whole number of at least `least`."""
    return as_number(parent[name], name, least)


def as_number(value: object, name: str, least: int = 0) -> int:
    """Return a value that is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(name, value, "a whole number")
    if not least <= value <= MAX_NUMBER:
        raise OutOfRangeError(f"{name} is {value}, {least} to 2^63 - 1 expected")
    return value


def alignment(parent: Object, name: str) -> int:
    """Return a field that is a power of two."""
    value = number(parent, name, 1)
    if value & (value - 1):
        raise OutOfRangeError(f"{name} is {value}, a power of two expected")
    return value


def flag(parent: Object, name: str) -> bool:
    """Return a field that is true or false."""
    value = parent[name]
    if not isinstance(value, bool):
        raise wrong_type(name, value, "true or false")
    return value


def items(parent: Object, name: str) -> list[object]:
    value = parent[name]
    if not isinstance(value, list):
        raise wrong_type(name, value, "a list")
    return value


def member(parent: Object, name: str) -> Object:
    return as_object(parent[name], name)


def as_object(value: object, name: str) -> Object:
    if not isinstance(value, dict):
        raise wrong_type(name, value, "an object")
    return value
