"""All operators, and their tables in the schema of program files.

`scripts/write-schema.py` writes the tables into `runtime/core/program.fbs`.
"""

import dataclasses
import math
import textwrap
import typing
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Annotated, Any

from arenite.runtime.operators import (  # noqa: F401  # so that every class is defined
    attention,
    blocks,
    convolution,
    elementwise,
    linear,
    loops,
    movement,
    normalisation,
    recurrent,
    reduction,
    special,
)
from arenite.runtime.operators.base import UNSTORED, RuntimeOperator


@cache
def operators() -> tuple[type[RuntimeOperator], ...]:
    """Return the operators, by their number in the program file."""
    found = sorted(set(_concrete(RuntimeOperator)), key=lambda each: each.number)
    numbers = [each.number for each in found]
    assert len(set(numbers)) == len(numbers), f"duplicates: {numbers}"
    return tuple(found)


def _concrete(base: type[RuntimeOperator]) -> Iterator[type[RuntimeOperator]]:
    for each in base.__subclasses__():
        # Dataclasses with slots are made twice; the first has none.
        if {"number", "__slots__"} <= vars(each).keys():
            yield each
        yield from _concrete(each)


BEGIN = "// Operators: from here on written by scripts/write-schema.py, from runtime/operators.\n"
END = "// Operators end here.\n"

_SCALARS = {bool: "bool", int: "uint", float: "float", str: "string", bytes: "[ubyte]"}
_WIDTH = 96


def operator_tables() -> str:
    """Return the tables, enumerations and the union of all operators."""
    seen: set[type] = set()
    parts: list[str] = []
    for operator in operators():
        for needed in _needed(operator):
            if needed not in seen:
                seen.add(needed)
                parts.append(_enum(needed) if issubclass(needed, StrEnum) else _table(needed))
        parts.append(_table(operator))
    names = _wrapped(_members())
    return "\n".join([*parts, f"union Operator {{\n{names.rstrip(',')}\n}}\n"])


def _members() -> list[str]:
    """Return the members of the union, with their numbers behind a gap."""
    members: list[str] = []
    next_number = 1
    for operator in operators():
        number = "" if operator.number == next_number else f" = {operator.number}"
        members.append(f"{operator.__name__}{number},")
        next_number = operator.number + 1
    return members


def _needed(owner: type) -> Iterator[type]:
    """Yield the enumerations and tables that the fields of a table refer to."""
    for _, kind, _ in _fields(owner):
        if typing.get_origin(kind) is Annotated:  # the file has a number
            continue
        element = _element(kind)
        if dataclasses.is_dataclass(element) or issubclass(element, StrEnum):
            yield from _needed(element) if dataclasses.is_dataclass(element) else ()
            yield element


def _fields(owner: type) -> list[tuple[str, Any, Any]]:
    """Return name, type and default of each field, `dataclasses.MISSING` without a default."""
    if not dataclasses.is_dataclass(owner):
        return []
    kinds = typing.get_type_hints(owner, include_extras=True)
    return [
        (each.name, kinds[each.name], each.default)
        for each in dataclasses.fields(owner)
        if UNSTORED not in each.metadata
    ]


def _element(kind: Any) -> type:
    """Return the type of a field, of its elements if it is a list."""
    if typing.get_origin(kind) is Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
    assert isinstance(kind, type)
    return kind


def _table(owner: type) -> str:
    fields = [f"{name}: {_type(kind)}{_default(value)};" for name, kind, value in _fields(owner)]
    inside = f"\n{_wrapped(fields)}\n" if fields else ""
    return f"{_comment(owner)}table {owner.__name__} {{{inside}}}\n"


def _enum(owner: type[StrEnum]) -> str:
    names = _wrapped([f"{each.value} = {number}," for number, each in enumerate(owner)])
    return f"{_comment(owner)}enum {owner.__name__} : ubyte {{\n{names.rstrip(',')}\n}}\n"


def _wrapped(items: Iterable[str]) -> str:
    """Return items on indented lines, without breaking any."""
    lines = [" "]
    for item in items:
        if len(lines[-1]) + len(item) >= _WIDTH:
            lines.append(" ")
        lines[-1] += f" {item}"
    return "\n".join(lines)


def _comment(owner: type) -> str:
    """Return the class's docstring as a comment, without its section of attributes."""
    text = textwrap.dedent(f"    {owner.__doc__ or ''}").partition("\n\nAttributes:")[0]
    lines = [f"// {line}".rstrip() for line in text.strip().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _type(kind: Any) -> str:
    if typing.get_origin(kind) is Annotated:
        return str(typing.get_args(kind)[1])
    element = _element(kind)
    name = _SCALARS.get(element, element.__name__)
    return f"[{name}]" if typing.get_origin(kind) is tuple else name


def _default(value: Any) -> str:
    if value in (dataclasses.MISSING, 0, "", b"") or isinstance(value, tuple):
        return ""
    if isinstance(value, bool):
        return f" = {str(value).lower()}"
    if isinstance(value, float) and math.isinf(value):
        return " = inf" if value > 0 else " = -inf"
    return f" = {value:g}" if isinstance(value, float) else f" = {value}"


def with_tables(schema: str) -> str:
    """Return a schema with its section of operators regenerated.

    Raises:
        ValueError: It has no such section.
    """
    before, begin, rest = schema.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the schema has no section of operators")
    return f"{before}{BEGIN}\n{operator_tables()}\n{END}{after}"
