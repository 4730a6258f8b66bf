"""The kernels as C source: the parts of each that a model needs, and the fields of structures.

A file holds several kernels and their helpers, a blank line between two parts. A family of kernels
that differ by a few words is written once, below a table of the words.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r'#include "(\w+\.h)"\n')
_STRUCT = re.compile(r"typedef struct \{(.*?)\} (\w+);", re.DOTALL)
_FAMILY = re.compile(r"/\* One for each( column)? of\n(.*?) \*/\n\n", re.DOTALL)
"""The table of a family: a row for each kernel below the words, or a column beside them, whose
cells may stand one below the other."""
_FIELDS = re.compile(r"\s*([^;]+?)((?: *\*?\w+,)* *\*?\w+);")
_KERNEL = re.compile(r"^(?:KERNEL|CMSIS_NN) (\w+)\(", re.MULTILINE)
_DEFINED = re.compile(
    r"^(?:#define (\w+)|\} (\w+);|static [^\n(]*?(\w+)\()", re.MULTILINE
)  # fmt: skip
"""What a part defines: a macro, a structure or a function."""

FEATURES = (
    "ROW_TABLES", "SIZED_ROWS", "SINGLE_ROUNDING", "HALVES_TO_EVEN", "FILTER_ZERO_POINTS",
    "PLANNED_FOR_DSP", "PLANNED_FOR_MVE",
)  # fmt: skip
"""Macros that the kernels test, each 0 or 1."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel and the parts of its file that it may need.

    Attributes:
        helpers: Structures, macros and functions, in their order.
        text: Definition of the kernel.
    """

    helpers: tuple[str, ...]
    text: str

    def parts(self) -> list[str]:
        """Return the kernel behind the helpers that it needs."""
        found = [self.text]
        for helper in reversed(self.helpers):
            names = [name for each in _DEFINED.findall(helper) for name in each if name]
            words = set(re.findall(r"\w+", "\n".join(found)))
            if not names or words.intersection(names):
                found.insert(0, helper)
        return found


def bundle(kernels: Iterable[str]) -> str:
    """Return the sources of kernels, each part that they share once.

    Raises:
        KeyError: There is no such kernel.
    """
    parts = (part for kernel in sorted(set(kernels)) for part in _kernels()[kernel].parts())
    return "\n\n".join(dict.fromkeys(parts)) + "\n"


def names() -> tuple[str, ...]:
    """Return the names of all kernels."""
    return tuple(_kernels())


def features_of(source: str) -> tuple[str, ...]:
    """Return the macros that a bundle tests."""
    return tuple(name for name in FEATURES if re.search(rf"\b{name}\b", source))


@cache
def fields(structure: str) -> Mapping[str, str]:
    """Return the fields of a structure in their order, and the type of each.

    Raises:
        KeyError: No kernel has such a structure.
    """
    for source in _kernels().values():
        for helper in source.helpers:
            for body, name in _STRUCT.findall(helper):
                if name == structure:
                    return {
                        field.strip(" *"): kind.strip()
                        for kind, names in _FIELDS.findall(body)
                        for field in names.split(",")
                    }
    raise KeyError(structure)


@cache
def _kernels() -> Mapping[str, KernelSource]:
    texts = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(files(__name__).iterdir(), key=lambda each: each.name)
        if path.name.endswith((".c", ".h"))
    }
    found: dict[str, KernelSource] = {}
    for name, text in texts.items():
        if not name.endswith(".c"):
            continue
        helpers = [part for each in _INCLUDE.findall(text) for part in _parts(texts[each])]
        plain, *members = _members(_INCLUDE.sub("", text))
        helpers += [part for part in _parts(plain) if not _KERNEL.search(part)]
        for member in (plain, *members):
            parts = _parts(member)
            own = [part for part in parts if member is not plain and not _KERNEL.search(part)]
            if len(own) == len(parts):
                helpers += own
            for part in parts:
                for kernel in _KERNEL.findall(part):
                    assert kernel not in found, f"{kernel} is defined twice"
                    found[kernel] = KernelSource((*helpers, *own), part)
    return found


def _members(text: str) -> Iterator[str]:
    """Yield the text above the first family, then that of each member of each family."""
    found = list(_FAMILY.finditer(text))
    ends = [*(family.start() for family in found), len(text)]
    yield text[: ends[0]]
    for family, end in zip(found, ends[1:], strict=True):
        lines = re.sub(r"\n +\| ", " | ", family[2]).splitlines()
        table = [[cell.strip() for cell in line.split(" | ")] for line in lines]
        words, *kernels = zip(*table, strict=True) if family[1] else table
        for kernel in kernels:
            own = text[family.end() : end]
            for word, meant in zip(words, kernel, strict=True):
                own = re.sub(rf"\b{word}\b", meant, own)
            yield own


def _parts(text: str) -> list[str]:
    """Return the parts of a text: between blank lines, braces and conditions being whole."""
    found: list[str] = []
    open_part = ""
    for paragraph in filter(None, re.split(r"\n{2,}", text.strip("\n"))):
        open_part = f"{open_part}\n\n{paragraph}" if open_part else paragraph
        begins = open_part.count("{") + len(re.findall(r"^#if", open_part, re.MULTILINE))
        ends = open_part.count("}") + len(re.findall(r"^#endif", open_part, re.MULTILINE))
        if begins == ends:
            found.append(open_part)
            open_part = ""
    assert not open_part, open_part[:80]
    return found
