"""Make the program of a board from the C source of a model."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from boards.board import Board

SOURCES: Final = Path(__file__).parent / "c"
STANDARD: Final = ("-std=c99", "-Wall", "-Wextra", "-Werror")
OPTIMISED: Final = ("-Os",)
"""As the Makefile beside an exported model has it."""
_FOR_ALL: Final = ("-ffunction-sections", "-fdata-sections", "-ffp-contract=off", "-g0")


class BuildError(Exception):
    """The compiler or the linker refuses; its words are the message."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The C source of a model, and how the board's program calls it.

    Attributes:
        sources: Files to compile.
        header: The file that declares its functions.
        run: Name of the function that runs it.
        arena_bytes: Expression for the size of its arena.
        arena_align: Expression for the alignment of its arena.
        inputs: For each input an expression for its address, where `arena` is the arena's, and
            one for its bytes.
        outputs: The same for each output.
        begin: Statement that prepares the arena for the first run.
        defines: Macros for its sources; `step` of the board's counter is `counter_poll()`.
        flags: Compiler options for its sources.
        libraries: Libraries that it is linked with.
    """

    sources: Sequence[Path]
    header: Path
    run: str
    arena_bytes: str
    arena_align: str
    inputs: Sequence[tuple[str, str]]
    outputs: Sequence[tuple[str, str]]
    begin: str = "(void)0"
    defines: Mapping[str, str] = field(default_factory=dict)
    flags: Sequence[str] = (*STANDARD, *OPTIMISED)
    libraries: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """A program for a board.

    Attributes:
        board: Where it runs.
        path: The ELF file.
        objects: The model's object files.
    """

    board: Board
    path: Path
    objects: tuple[Path, ...]


def build(board: Board, subject: Subject, folder: Path) -> Program:
    """Compile and link; every file is written to the folder.

    Raises:
        BuildError: The compiler or the linker refuses, for want of memory for instance.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "subject.h").write_text(_adaptor(subject), encoding="utf-8")
    start = "start_riscv" if board.is_riscv else "start_cortex_m"
    # None of the board's own code may turn into a call of the library.
    own = (
        "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-ffreestanding",
        "-fno-tree-loop-distribute-patterns", f"-I{folder}", f"-I{subject.header.parent}",
        *board.own_flags,
    )  # fmt: skip
    objects = [
        _compiled(board, SOURCES / f"{name}.c", folder / f"board_{name}.o", own)
        for name in (start, "main", "host", "counter")
    ]
    flags = (*subject.flags, f"-I{subject.header.parent}", f"-I{SOURCES}",
             *(f"-D{name}={value}" for name, value in subject.defines.items()))  # fmt: skip
    model = [
        _compiled(board, source, folder / f"{source.stem}.o", flags) for source in subject.sources
    ]
    path = folder / f"{board.name}.elf"
    _run(board, [
        *board.flags, "-nostartfiles", f"-L{SOURCES}", "-T", SOURCES / f"{board.name}.ld",
        "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments",
        *objects, *model, *subject.libraries, "-lm", "-o", path,
    ])  # fmt: skip
    return Program(board, path, tuple(model))


def _compiled(board: Board, source: Path, target: Path, flags: Iterable[str]) -> Path:
    _run(board, [*board.flags, *_FOR_ALL, *flags, "-c", source, "-o", target])
    return target


def _run(board: Board, arguments: Sequence[str | Path]) -> None:
    command = [f"{board.tools}gcc", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(done.stderr)


def _adaptor(subject: Subject) -> str:
    """Return the header by which the board's `main` calls the model."""
    return "\n".join([
        f'#include "{subject.header.name}"',
        f"#define SUBJECT_RUN {subject.run}",
        f"#define SUBJECT_BEGIN(arena) {subject.begin}",
        f"#define SUBJECT_ARENA_BYTES ({subject.arena_bytes})",
        f"#define SUBJECT_ARENA_ALIGN ({subject.arena_align})",
        f"#define SUBJECT_INPUTS {len(subject.inputs)}u",
        f"#define SUBJECT_OUTPUTS {len(subject.outputs)}u",
        *_accessors("input", "void*", subject.inputs),
        *_accessors("output", "const void*", subject.outputs),
        "",
    ])  # fmt: skip


def _accessors(kind: str, pointer: str, ports: Sequence[tuple[str, str]]) -> Iterable[str]:
    yield f"static inline {pointer} subject_{kind}(uint8_t* arena, uint32_t index) {{"
    yield "  switch (index) {"
    for index, (address, _) in enumerate(ports):
        yield f"    case {index}: return ({pointer})({address});"
    yield "    default: (void)arena; return 0;"
    yield "  }"
    yield "}"
    yield f"static inline uint32_t subject_{kind}_bytes(uint32_t index) {{"
    yield "  switch (index) {"
    for index, (_, size) in enumerate(ports):
        yield f"    case {index}: return (uint32_t)({size});"
    yield "    default: return 0;"
    yield "  }"
    yield "}"
