"""Names in C for what has any name in a model."""

import re
from collections.abc import Iterable

_OUTSIDE = re.compile(r"[^A-Za-z0-9]+")
_KEYWORDS = frozenset(
    {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch",
        "typedef", "union", "unsigned", "void", "volatile", "while", "bool", "class", "delete",
        "new", "operator", "private", "public", "this", "template", "throw", "true", "false",
        "try", "catch", "main",
    }
)  # fmt: skip


def identifier(name: str, otherwise: str = "model") -> str:
    """Return a name as a C identifier in lower case letters, digits and underscores."""
    found = _OUTSIDE.sub("_", name).strip("_").lower() or otherwise
    if found[0].isdigit():
        found = f"{otherwise}_{found}"
    return f"{found}_" if found in _KEYWORDS else found


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
