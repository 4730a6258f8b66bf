"""Programs of boards: built from the C source of a model, with the sizes of their sections."""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bench.boards.board import SOURCES, Board

STANDARD: Final = ("-std=c99", "-Wall", "-Wextra", "-Werror")
OPTIMISED: Final = ("-O2",)
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
        run: Expression that runs it, where `arena` is the arena's address.
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
    # None of the board's own code may turn into a call of the library.
    own = (
        "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-ffreestanding",
        "-fno-tree-loop-distribute-patterns", f"-I{folder}", f"-I{subject.header.parent}",
        *board.own_flags,
    )  # fmt: skip
    gcc = (f"{board.tools}gcc", *board.flags)
    compiler = board.compiler or gcc
    objects = [
        _compiled(gcc, SOURCES / f"{name}.c", folder / f"board_{name}.o", own)
        for name in (f"start_{board.architecture}", "main", "host", "counter")
    ]
    flags = (*subject.flags, f"-I{subject.header.parent}", f"-I{SOURCES}",
             *(f"-D{name}={value}" for name, value in subject.defines.items()))  # fmt: skip
    model = [
        _compiled(compiler, source, folder / f"{source.stem}.o", flags)
        for source in subject.sources
    ]
    # Loops of a library may not turn into calls of themselves.
    alone = (*STANDARD, "-O2", "-fno-tree-loop-distribute-patterns")
    library = [
        _compiled(gcc, source, folder / f"library_{source.stem}.o", alone)
        for source in board.library
    ]
    path = folder / f"{board.name}.elf"
    _run([
        *gcc, "-nostartfiles", f"-L{SOURCES}", "-T", SOURCES / f"{board.emulated}.ld",
        "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments",
        *objects, *model, *subject.libraries, *library, *board.libraries, "-o", path,
    ])  # fmt: skip
    return Program(board, path, tuple(model))


def _compiled(compiler: Sequence[str], source: Path, target: Path, flags: Iterable[str]) -> Path:
    _run([*compiler, *_FOR_ALL, *flags, "-c", source, "-o", target])
    return target


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(done.stderr)


def _adaptor(subject: Subject) -> str:
    """Return the header by which the board's `main` calls the model."""
    return "\n".join([
        f'#include "{subject.header.name}"',
        f"#define SUBJECT_RUN(arena) {subject.run}",
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


STRICT: Final = ("-Wconversion", "-Wshadow", "-Wcast-qual", "-pedantic")
_RUN: Final = re.compile(r"\bint (\w+)_run\(uint8_t \*arena((?:, int32_t \*?\w+)*)\);")
_ARGUMENT: Final = re.compile(r", int32_t (\*?)(\w+)")


def with_cmsis_nn(subject: Subject, board: Board, cmsis_nn: Path) -> Subject:
    """Return an exported model that calls CMSIS-NN, with that.

    Args:
        subject: The model.
        board: Where it runs.
        cmsis_nn: A folder with its `Include`, and in `lib` a library for each processor, such as
            `cortex-m3.a`.

    Raises:
        BuildError: There is no library for the processor of the board.
    """
    library = cmsis_nn / "lib" / f"{board.processor.lower()}.a"
    if not library.is_file():
        raise BuildError(f"there is no {library}")
    flags = (*subject.flags, "-isystem", str(cmsis_nn / "Include"))
    return replace(subject, flags=flags, libraries=[library])


def exported(
    folder: Path, *, sizes: Mapping[str, int] | None = None, optimised: tuple[str, ...] = OPTIMISED
) -> Subject:
    """Return the model that `arenite export --to c` wrote into a folder.

    Args:
        folder: Where it was written.
        sizes: Values of its dimensions, if it is for a range of sizes.
        optimised: Compiler options that say for what.
    """
    header, name, arguments = next(
        (path, found[1], found[2])
        for path in sorted(folder.glob("*.h"))
        if (found := _RUN.search(path.read_text(encoding="utf-8")))
    )
    macro = name.upper()
    ports: dict[str, list[tuple[str, str]]] = {"input": [], "output": []}
    given, lengths = "", []
    for pointer, parameter in _ARGUMENT.findall(arguments):
        value = "" if pointer else str((sizes or {})[parameter])
        given += f", {value or 'NULL'}"
        lengths.append(value or f"{macro}_COUNT_{parameter.upper()}_HIGH")
    text = header.read_text(encoding="utf-8")
    accessor = re.compile(rf"\*{name}_(input|output)_(\w+)\(uint8_t \*arena\)")
    for kind, port in accessor.findall(text):
        size = f"{macro}_{kind}_{port}_BYTES".upper()
        function = f"{name}_{kind}_{port}_bytes("
        if function in text:
            size = f"{function}{', '.join(lengths)})"
        ports[kind].append((f"{name}_{kind}_{port}(arena)", size))
    return Subject(
        sources=[folder / f"{name}.c", folder / f"{name}_weights.c"],
        header=header,
        run=f"{name}_run(arena{given})",
        arena_bytes=f"{macro}_ARENA_BYTES",
        arena_align=f"{macro}_ARENA_ALIGN",
        inputs=ports["input"],
        outputs=ports["output"],
        begin=f"{name}_reset(arena)",
        defines={f"{macro}_STEP(i)": "counter_poll()"},
        flags=(*STANDARD, *STRICT, *optimised, "-include", "counter.h", f"-I{folder}"),
    )


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the model takes on a board, in bytes; nothing of the board's own code is in it.

    Attributes:
        text: Instructions of the model's own objects, with the numbers that they load.
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
    text = sum(_of(each, ".text", ".literal") for each in own)
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
