"""The `.arena` file: a program, its plan and its weights, to be mapped into memory.

::

    0   "ARENITE" and byte 1A
    8   version, 32 bits; CRC-32 of all bytes from 16 to the weights
    16  bytes of the program, 64 bits
    24  offset of the weights, 64 bits, a multiple of 4,096
    32  the program: a FlatBuffer of the schema `program.fbs`
        the weights, to the end of the file

Integers are little-endian.
"""

import bisect
import hashlib
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arenite.planner import Array
from arenite.planner.files import write_atomically
from arenite.planner.units import align_up
from arenite.runtime import _schema
from arenite.runtime.errors import UnwritableProgramError
from arenite.runtime.program.packing import packed

MAGIC = b"ARENITE\x1a"
VERSION = 6
_HEAD = struct.Struct("<8sII16s")
_SIZES = struct.Struct("<QQ")
_PAGE = 4096
_ALIGNMENT = 64
"""Alignment of each constant, in bytes: a cache line."""
_SLACK = 128
"""Bytes behind the last constant: kernels may read that far past an end."""


class Weights:
    """The section of weights while programs are put together that share it.

    Attributes:
        constants: Constants with their offsets, in order.
        size: Bytes that they take.
    """

    def __init__(self) -> None:
        self.constants: list[tuple[int, Array]] = []
        self.size = 0
        self._places: dict[str, int] = {}
        self._ranges: list[tuple[int, float, int]] = []  # first, end and offset of constants

    @property
    def section_bytes(self) -> int:
        """Bytes of the section in the file."""
        return align_up(self.size, _ALIGNMENT) + _SLACK

    def place(self, array: Array) -> int:
        """Return the offset of a constant; equal ones and parts of others share theirs."""
        array = np.ascontiguousarray(array)
        inside = self._inside(array)
        if inside is not None:
            return inside
        content = f"{hashlib.sha256(array.data).hexdigest()}:{array.nbytes}"
        place = self._places.get(content)
        if place is None:
            place = align_up(self.size, _ALIGNMENT)
            self.size = place + array.nbytes
            self._places[content] = place
            self.constants.append((place, array))
            first = array.ctypes.data
            bisect.insort(self._ranges, (first, first + array.nbytes, place))
        return place

    def _inside(self, array: Array) -> int | None:
        """Return the offset of an array that is a part of a constant in the section."""
        if array.base is None:
            return None
        first = array.ctypes.data
        number = bisect.bisect_right(self._ranges, (first, math.inf, 0)) - 1
        if number < 0:
            return None
        begin, end, place = self._ranges[number]
        is_part = first + array.nbytes <= end and (first - begin) % _ALIGNMENT == 0
        return place + first - begin if is_part else None


@dataclass(frozen=True, slots=True)
class Assembly:
    """The parts of a program file.

    Attributes:
        root: The schema's root table, as for JSON; records and turns are not packed yet.
        constants: Constants with their offsets in the section of weights, in order.
        weights_size: Bytes of that section.
    """

    root: dict[str, Any]
    constants: tuple[tuple[int, Array], ...]
    weights_size: int

    def with_subranges(self, parts: Sequence["Assembly"], weights: Weights) -> "Assembly":
        """Return the file with programs for the lower parts of its range, ascending.

        Args:
            parts: Put together after this one, with the same weights.
            weights: These.
        """
        size = weights.section_bytes
        root = with_weights_size(self.root, size)
        if parts:
            root["subranges"] = [with_weights_size(part.root, size) for part in parts]
        return Assembly(root, tuple(weights.constants), size)


def with_weights_size(root: dict[str, Any], size: int) -> dict[str, Any]:
    """Return the root of a program and of those inside it, with weights of so many bytes."""
    root = root | {"weights_size": size}
    if "inner" in root:
        root["inner"] = [with_weights_size(each, size) for each in root["inner"]]
    return root


def program_pieces(assembly: Assembly) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the file piece by piece, so that weights are not copied.

    Raises:
        UnwritableProgramError: The file's format has no room for a number of the program.
    """
    weights = list(_weights(assembly))
    checksum = 0
    for piece in weights:
        checksum = zlib.crc32(piece, checksum)
    root = assembly.root | {"weights_checksum": checksum}
    try:
        text = json.dumps(packed(root), allow_nan=False)
        # A number that depends on sizes is changed in its place, so it needs one.
        program = _schema.encode(text, keeps_defaults="dimensions" in root)
    except ValueError as error:
        raise UnwritableProgramError(f"does not fit the program file: {error}") from error
    weights_offset = align_up(_HEAD.size + len(program), _PAGE)
    padded = program + bytes(weights_offset - _HEAD.size - len(program))
    sizes = _SIZES.pack(len(program), weights_offset)
    yield _HEAD.pack(MAGIC, VERSION, zlib.crc32(padded, zlib.crc32(sizes)), sizes)
    yield padded
    yield from weights


def _weights(assembly: Assembly) -> Iterator[bytes | memoryview]:
    written = 0
    for offset, array in assembly.constants:
        yield bytes(offset - written)
        yield array.reshape(-1).view("uint8").data
        written = offset + array.nbytes
    yield bytes(assembly.weights_size - written)


def write_assembly(
    path: Path, assembly: Assembly, check: Callable[[Path], None] | None = None
) -> None:
    """Write the file whole or not at all.

    Args:
        path: The file.
        assembly: The parts of the file.
        check: Called with the complete temporary file; if it raises, nothing is written.

    Raises:
        OutputError: It cannot be written; an existing file is unchanged.
        UnwritableProgramError: The file's format has no room for a number of the program.
    """
    write_atomically(path, program_pieces(assembly), check=check)
