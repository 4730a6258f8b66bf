"""An exported model as the board's program calls it: what its header offers, and nothing else."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from boards.board import Board
from boards.build import OPTIMISED, STANDARD, BuildError, Subject

STRICT: Final = ("-Wconversion", "-Wshadow", "-Wcast-qual", "-pedantic")
_RUN: Final = re.compile(r"\bint (\w+)_run\(uint8_t \*arena\);")


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


def exported(folder: Path, *, optimised: tuple[str, ...] = OPTIMISED) -> Subject:
    """Return the model that `arenite export --to c` wrote into a folder.

    Args:
        folder: Where it was written.
        optimised: Compiler options that say for what.
    """
    header, name = next(
        (path, found[1])
        for path in sorted(folder.glob("*.h"))
        if (found := _RUN.search(path.read_text(encoding="utf-8")))
    )
    macro = name.upper()
    ports: dict[str, list[tuple[str, str]]] = {"input": [], "output": []}
    accessor = re.compile(rf"\*{name}_(input|output)_(\w+)\(uint8_t \*arena\)")
    for kind, port in accessor.findall(header.read_text(encoding="utf-8")):
        size = f"{macro}_{kind}_{port}_BYTES".upper()
        ports[kind].append((f"{name}_{kind}_{port}(arena)", size))
    weights = folder / f"{name}_weights.bin"
    return Subject(
        sources=[folder / f"{name}.c", folder / f"{name}_weights.c"],
        header=header,
        run=f"{name}_run",
        arena_bytes=f"{macro}_ARENA_BYTES",
        arena_align=f"{macro}_ARENA_ALIGN",
        inputs=ports["input"],
        outputs=ports["output"],
        begin=f"{name}_reset(arena)",
        defines={
            f"{macro}_STEP(i)": "counter_poll()",
            **({f"{macro}_WEIGHTS_FILE": f'"{weights}"'} if weights.exists() else {}),
        },
        flags=(*STANDARD, *STRICT, *optimised, "-include", "counter.h"),
    )
