"""The kernels as C source: which files a model needs, and the fields of their structures."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r'#include "(\w+\.h)"\n')
_STRUCT = re.compile(r"typedef struct \{(.*?)\} (\w+);", re.DOTALL)
_LINE = re.compile(r"^ *(.+?)((?: *\*?\w+,)* *\*?\w+);", re.MULTILINE)

FEATURES = ("ROW_TABLES", "SINGLE_ROUNDING", "FILTER_ZERO_POINTS")
"""Macros that the kernels ask, each 0 or 1."""


@cache
def text(name: str) -> str:
    """Return a file of the kernels' sources."""
    return (files(__package__) / "kernels" / name).read_text(encoding="utf-8")


def bundle(kernels: Iterable[str]) -> str:
    """Return the sources of kernels, each file that they share once."""
    written: list[str] = []
    seen: set[str] = set()

    def add(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        source = text(name)
        for included in _INCLUDE.findall(source):
            add(included)
        written.append(_INCLUDE.sub("", source).strip("\n"))

    for kernel in sorted(set(kernels)):
        add(f"{kernel}.c")
    return "\n\n".join(written) + "\n"


def features_of(source: str) -> tuple[str, ...]:
    """Return the macros that a bundle asks."""
    return tuple(name for name in FEATURES if re.search(rf"\b{name}\b", source))


@cache
def fields(structure: str) -> Mapping[str, str]:
    """Return the fields of a structure in their order, and the type of each.

    Raises:
        KeyError: No kernel has such a structure.
    """
    for path in sorted((files(__package__) / "kernels").iterdir(), key=lambda each: each.name):
        for body, name in _STRUCT.findall(text(path.name)):
            if name == structure:
                return {
                    field.strip(" *"): kind.strip()
                    for kind, names in _LINE.findall(body)
                    for field in names.split(",")
                }
    raise KeyError(structure)
