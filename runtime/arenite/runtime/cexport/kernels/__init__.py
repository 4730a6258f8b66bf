"""The kernels as C source: which files a model needs, and the fields of their structures."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r'#include "(\w+\.h)"\n')
_STRUCT = re.compile(r"typedef struct \{(.*?)\} (\w+);", re.DOTALL)
_FAMILY = re.compile(r"/\* One for each of\n(.*?) \*/\n\n", re.DOTALL)
"""In a file of kernels that differ by a few words: the words, and what stands for them in each."""
_LINE = re.compile(r"^ *(.+?)((?: *\*?\w+,)* *\*?\w+);", re.MULTILINE)

FEATURES = (
    "ROW_TABLES", "SINGLE_ROUNDING", "FILTER_ZERO_POINTS", "PLANNED_FOR_DSP", "PLANNED_FOR_MVE",
)  # fmt: skip
"""Macros that the kernels ask, each 0 or 1."""


@cache
def text(name: str) -> str:
    """Return a file of the kernels' sources; a kernel of a family as if it had one of its own.

    Raises:
        KeyError: There is none.
    """
    return _texts()[name]


@cache
def _texts() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for path in sorted(files(__name__).iterdir(), key=lambda each: each.name):
        if not path.name.endswith((".c", ".h")):
            continue
        source = path.read_text(encoding="utf-8")
        family = _FAMILY.search(source)
        if family is None:
            found[path.name] = source
            continue
        words, *kernels = (
            [cell.strip() for cell in line.split("|")] for line in family[1].splitlines()
        )
        for kernel in kernels:
            own = _FAMILY.sub("", source)
            for word, meant in zip(words, kernel, strict=True):
                own = re.sub(rf"\b{word}\b", meant, own)
            found[f"{kernel[0]}.c"] = own
    return found


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
    for source in _texts().values():
        for body, name in _STRUCT.findall(source):
            if name == structure:
                return {
                    field.strip(" *"): kind.strip()
                    for kind, names in _LINE.findall(body)
                    for field in names.split(",")
                }
    raise KeyError(structure)
