"""The `.arena` file: a program, its plan and its weights, to be mapped into memory.

::

    0   "ARENITE" and byte 1A
    8   version, 32 bits; 32 bits of zeros
    16  bytes of the program, 64 bits
    24  offset of the weights, 64 bits, a multiple of 4,096
    32  the program: a FlatBuffer of the schema `program.fbs`
        the weights, to the end of the file

Integers are little-endian.
"""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from arenite.planner.files import write_atomically
from arenite.planner.units import align_up
from arenite.runtime import _schema
from arenite.runtime.errors import UnwritableProgramError
from arenite.runtime.program.assembly import Assembly
from arenite.runtime.program.packing import packed

MAGIC = b"ARENITE\x1a"
VERSION = 5
_HEAD = struct.Struct("<8sIIQQ")
_PAGE = 4096


def pieces(assembly: Assembly) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the file piece by piece, so that weights are not copied.

    Raises:
        UnwritableProgramError: The file's format has no room for a number of the program.
    """
    try:
        program = _schema.encode(json.dumps(packed(json.loads(assembly.program))))
    except ValueError as error:
        raise UnwritableProgramError(f"cannot be written as a program: {error}") from error
    weights_offset = align_up(_HEAD.size + len(program), _PAGE)
    yield _HEAD.pack(MAGIC, VERSION, 0, len(program), weights_offset)
    yield program
    written = _HEAD.size + len(program)
    for offset, array in assembly.constants:
        yield bytes(weights_offset + offset - written)
        yield array.reshape(-1).view("uint8").data
        written = weights_offset + offset + array.nbytes
    yield bytes(weights_offset + assembly.weights_size - written)


def write(path: Path, assembly: Assembly, check: Callable[[Path], None] | None = None) -> None:
    """Write the file whole or not at all.

    Args:
        path: The file.
        assembly: What it holds.
        check: Called with the complete temporary file; if it raises, nothing is written.

    Raises:
        OutputError: It cannot be written; an existing file is unchanged.
        UnwritableProgramError: The file's format has no room for a number of the program.
    """
    write_atomically(path, pieces(assembly), check=check)
