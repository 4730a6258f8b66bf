"""The sizes of a program's sections, as binutils reads them out of the ELF file."""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from boards.build import Program


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the model takes on a board, in bytes; nothing of the board's own code is in it.

    Attributes:
        text: Instructions of the model's own objects.
        constants: Read-only data of the model's own objects: weights, quantisation, tables.
        variables: `.data` and `.bss` of the model's own objects.
        library: Instructions and constants that it takes from the compiler's libraries.
        data: Initialised variables, `.data`, libraries included.
        bss: Variables that begin as zero, `.bss`, libraries included.
    """

    text: int
    constants: int
    variables: int
    library: int
    data: int
    bss: int

    @property
    def flash(self) -> int:
        """All that lies in flash."""
        return self.text + self.constants + self.library + self.data


def footprint(program: Program) -> Footprint:
    """Return what the model takes of flash and RAM, arena and stack apart."""
    linked = _sections(program, program.path)
    own = [_sections(program, each) for each in program.objects]
    text = sum(_of(each, ".text") for each in own)
    constants = sum(_of(each, ".rodata", ".srodata") for each in own)
    variables = sum(_of(each, ".data", ".sdata", ".bss", ".sbss") for each in own)
    in_flash = _of(linked, ".text", ".rodata")
    return Footprint(
        text, constants, variables, max(0, in_flash - text - constants),
        _of(linked, ".data"), _of(linked, ".bss"),
    )  # fmt: skip


def _of(sections: dict[str, int], *kinds: str) -> int:
    return sum(
        size
        for name, size in sections.items()
        if any(name == kind or name.startswith(f"{kind}.") for kind in kinds)
    )


def _sections(program: Program, path: Path) -> dict[str, int]:
    listed = subprocess.run(
        [f"{program.board.tools}size", "-A", path], capture_output=True, text=True, check=True
    )
    sizes: dict[str, int] = {}
    for name, size in _rows(listed.stdout.splitlines()):
        sizes[name] = sizes.get(name, 0) + size
    return sizes


def _rows(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[0].startswith("."):
            yield words[0], int(words[1])
