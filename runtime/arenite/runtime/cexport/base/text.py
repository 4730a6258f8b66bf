"""Numbers, comments and identifiers as C writes them."""

import math
import re
from collections.abc import Iterable

import numpy as np

from arenite.planner import Array
from arenite.planner.sizes import Size

_WIDTH = 96
TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t",
    "uint16": "uint16_t", "int32": "int32_t", "int64": "int64_t", "float32": "float",
}  # fmt: skip
"""C's name of each element type."""


def number(value: float) -> str:
    """Return a number of the type that Python has it in; a float as float32."""
    if isinstance(value, Size):
        return str(value)
    if isinstance(value, bool | int | np.integer):
        whole = int(value)
        if whole == -(2**31):
            return "(-2147483647 - 1)"
        return str(whole) if -(2**31) < whole < 2**31 else f"INT64_C({whole})"
    value = float(np.float32(value))
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = repr(np.float32(value).item()) if value == int(value) else f"{value:.9g}"
    return f"{text}f" if any(mark in text for mark in ".en") else f"{text}.0f"


def elements(array: Array) -> str:
    """Return the elements of an array on indented lines, separated by commas."""
    return wrapped([number(each) for each in array.reshape(-1).tolist()])


def wrapped(items: Iterable[str]) -> str:
    """Return items on indented lines, separated by commas."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {item},"
    lines.append(line)
    return "\n".join(lines).rstrip(",")


def comment(text: str) -> str:
    """Return any text, such as a name of a model, so that it may stand in a comment."""
    return ascii(text).replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


_OUTSIDE = re.compile(r"[^A-Za-z0-9]+")
_KEYWORDS = frozenset(
    {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch",
        "typedef", "union", "unsigned", "void", "volatile", "while", "bool", "class", "delete",
        "new", "operator", "private", "public", "this", "template", "throw", "true", "false",
        "try", "catch", "main", "and", "and_eq", "asm", "bitand", "bitor", "compl", "constexpr",
        "explicit", "export", "friend", "mutable", "namespace", "noexcept", "not", "not_eq",
        "nullptr", "or", "or_eq", "protected", "typename", "using", "virtual", "xor", "xor_eq",
    }
)  # fmt: skip
_HEADERS = frozenset(
    {
        "assert", "complex", "ctype", "endian", "errno", "features", "fenv", "float", "inttypes",
        "iso646", "limits", "locale", "malloc", "math", "memory", "sched", "setjmp", "signal",
        "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib",
        "stdnoreturn", "string", "strings", "tgmath", "threads", "time", "uchar", "unistd",
        "wchar", "wctype",
    }
)  # fmt: skip
"""Headers of C libraries, which the folder of an export would hide from compilers."""


def identifier(name: str, otherwise: str = "model") -> str:
    """Return a name as a C identifier in lower case letters, digits and underscores."""
    found = _OUTSIDE.sub("_", name).strip("_").lower() or otherwise
    if found[0].isdigit():
        found = f"{otherwise}_{found}"
    return f"{found}_" if found in _KEYWORDS else found


def component_name(name: str) -> str:
    """Return a name as an identifier whose header hides none of the C library."""
    found = identifier(name)
    return f"{found}_" if found in _HEADERS else found


def distinct(names: Iterable[str], otherwise: str) -> tuple[str, ...]:
    """Return identifiers of names, no two alike."""
    found: list[str] = []
    for name in names:
        wanted = identifier(name, otherwise)
        number, unique = 1, wanted
        while unique in found:
            number += 1
            unique = f"{wanted}_{number}"
        found.append(unique)
    return tuple(found)
