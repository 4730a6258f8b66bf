"""Lossless coding of weights that share few values: the last stage of Deep Compression.

An array becomes a codebook of its values and an index per element. Zeros are left out: each
non-zero element records how many zeros precede it (gaps; runs too long for one gap are bridged by
fillers, entries of value 0), or a bit per element tells the non-zero ones (mask). Indices and
positions are Huffman-coded, each with its own code. All layouts are tried; the smallest wins.

The bytes, little-endian::

    0   version, 8 bits: 1
    1   layout, 8 bits: 0 plain, 1 mask, 2 gaps
    2   bits of a gap, 8 bits: a gap is below 2^bits; 0 in the other layouts
    3   flags, 8 bits: 1 the codebook has 16-bit floats; 2 the indices, 4 the positions are
        Huffman-coded
    4   entries of the codebook, 16 bits, at least 1; 16 bits of zeros
    8   indices, 32 bits: how many
    12  bytes of the indices, 32 bits
    16  codebook, 32- or 16-bit floats; entry 0 is 0.0 but in a plain layout
        indices, one a byte, or their code
        positions, to the end: gaps, one a byte, or the mask, first element in the lowest bit; or
        their code

Source: Han, Mao and Dally, Deep Compression, ICLR 2016, sections 2 to 4.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.errors import CodedError
from arenite.compression.huffman import compress, decompress

Array: TypeAlias = NDArray[Any]
Symbols: TypeAlias = NDArray[np.uint8]
Coder: TypeAlias = Callable[[Symbols], bytes]

MAX_VALUES = 256
GAP_BITS = (4, 5, 8)
"""Widths of a gap that are tried, in bits."""

_HEAD = struct.Struct("<BBBBHHII")
_VERSION = 1
_HALF, _CODED_INDICES, _CODED_POSITIONS = 1, 2, 4
MAX_ELEMENTS = 1 << 30
"""Limit on the elements of an array: bounds what a few hostile bytes can request."""

_SAMPLE = 65_536


class Layout(IntEnum):
    """How the positions of the indices are stored."""

    PLAIN = 0
    MASK = 1
    GAPS = 2


@dataclass(frozen=True, slots=True)
class Code:
    """Coded weights.

    Attributes:
        layout: How positions are stored.
        gap_bits: Width of a gap; 0 in other layouts.
        codebook: float32; entry 0 is 0.0 except in a plain layout.
        num_indices: Number of entries, fillers included.
        indices: Bytes of the indices.
        positions: Bytes of gaps or mask.
        flags: Which parts are 16-bit or Huffman-coded.
    """

    layout: Layout
    gap_bits: int
    codebook: NDArray[np.float32]
    num_indices: int
    indices: bytes
    positions: bytes
    flags: int

    @property
    def size(self) -> int:
        """Total bytes."""
        width = 2 if self.flags & _HALF else 4
        return _HEAD.size + width * self.codebook.size + len(self.indices) + len(self.positions)

    def __bytes__(self) -> bytes:
        """Return the bytes stated above."""
        half = self.flags & _HALF
        head = _HEAD.pack(
            _VERSION, self.layout, self.gap_bits, self.flags, self.codebook.size, 0,
            self.num_indices, len(self.indices),
        )  # fmt: skip
        codebook = self.codebook.astype("<f2" if half else "<f4").tobytes()
        return b"".join((head, codebook, self.indices, self.positions))


def code(weights: Array, *, huffman: bool = True) -> Code | None:
    """Return the smallest code of weights; None if it saves nothing or they have too many values.

    Args:
        weights: float32, any shape; row-major order is coded.
        huffman: Whether symbols may be Huffman-coded. Otherwise a symbol is a byte: a larger
            code that needs no entropy decoding.

    Cost: O(n log n) for n elements.
    """
    found = codes(weights, huffman=huffman)
    best = min(found, key=lambda each: each.size, default=None)
    return None if best is None or best.size >= 4 * weights.size else best


def codes(weights: Array, *, huffman: bool = True) -> list[Code]:
    """Return the code of weights in each layout that can hold them, with each width of gaps.

    Args:
        weights: float32, any shape; row-major order is coded.
        huffman: As of `code`.
    """
    bits = np.ascontiguousarray(weights, np.float32).reshape(-1).view(np.uint32)
    if not 0 < bits.size < MAX_ELEMENTS or np.unique(bits[:_SAMPLE]).size > MAX_VALUES:
        return []
    filled = np.flatnonzero(bits)
    values = np.unique(bits[filled])
    has_zeros = filled.size < bits.size
    if values.size + has_zeros > MAX_VALUES:
        return []
    coder = compress if huffman else _as_they_are
    found = [_plain(bits, values, coder, has_zeros=has_zeros)]
    if has_zeros and values.size:
        codebook = np.concatenate((np.zeros(1, np.uint32), values))
        indices = (np.searchsorted(values, bits[filled]) + 1).astype(np.uint8)
        found.append(_masked(bits, codebook, indices, coder))
        found += [_with_gaps(filled, codebook, indices, width, coder) for width in GAP_BITS]
    return found


def decode(coded: bytes | memoryview, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the weights.

    Args:
        coded: As `bytes(code(weights))` returns it.
        shape: Of the weights.

    Raises:
        CodedError: The bytes are damaged, or of another number of elements.
    """
    size = int(np.prod(shape, dtype=object)) if shape else 1
    if size >= MAX_ELEMENTS:
        raise CodedError(f"{size} elements are too many")
    found = parse(coded)
    if found.num_indices > size:
        raise CodedError(f"{found.num_indices} indices for {size} elements")
    indices = _symbols(found.indices, found.num_indices, found.flags & _CODED_INDICES)
    if indices.size and int(indices.max()) >= found.codebook.size:
        raise CodedError("an index is beyond the codebook")
    values = found.codebook[indices]
    if found.layout is Layout.PLAIN:
        if values.size != size:
            raise CodedError(f"{values.size} elements where {size} were expected")
        return values.reshape(shape)
    weights = np.zeros(size, np.float32)
    positions = _positions(found, size)
    if positions.size != values.size or (positions.size and int(positions[-1]) >= size):
        raise CodedError("positions and indices do not fit")
    weights[positions] = values
    return weights.reshape(shape)


def parse(coded: bytes | memoryview) -> Code:
    """Return the parts of a code, not yet decoded.

    Raises:
        CodedError: They do not fit the bytes.
    """
    if len(coded) < _HEAD.size:
        raise CodedError("they are truncated")
    version, layout, gap_bits, flags, num_values, _, count, num_bytes = _HEAD.unpack_from(coded)
    if version != _VERSION:
        raise CodedError(f"they are of version {version}, this reads version {_VERSION}")
    if layout not in tuple(Layout) or not 1 <= num_values <= MAX_VALUES or gap_bits > 8:
        raise CodedError("their head is damaged")
    dtype = np.dtype("<f2" if flags & _HALF else "<f4")
    start = _HEAD.size + num_values * dtype.itemsize
    middle = start + num_bytes
    if len(coded) < middle:
        raise CodedError("they are truncated")
    codebook = np.frombuffer(coded, dtype, num_values, _HEAD.size).astype(np.float32)
    return Code(
        Layout(layout), gap_bits, codebook, count,
        bytes(coded[start:middle]), bytes(coded[middle:]), flags,
    )  # fmt: skip


def _as_they_are(symbols: Symbols) -> bytes:
    return symbols.tobytes()


def _plain(
    bits: NDArray[np.uint32], values: NDArray[np.uint32], coder: Coder, *, has_zeros: bool
) -> Code:
    if has_zeros:
        values = np.concatenate((np.zeros(1, np.uint32), values))
    indices = np.searchsorted(values, bits).astype(np.uint8)
    return _made(Layout.PLAIN, 0, values, indices, np.zeros(0, np.uint8), coder)


def _masked(
    bits: NDArray[np.uint32], codebook: NDArray[np.uint32], indices: Symbols, coder: Coder
) -> Code:
    mask = np.packbits(bits != 0, bitorder="little")
    return _made(Layout.MASK, 0, codebook, indices, mask, coder)


def _with_gaps(
    filled: NDArray[np.intp],
    codebook: NDArray[np.uint32],
    indices: Symbols,
    width: int,
    coder: Coder,
) -> Code:
    """Return the code in which each entry is a count of preceding zeros and an index.

    A filler stands for 2^width - 1 zeros and one of its own.
    """
    span = 1 << width
    gaps = np.diff(filled, prepend=-1) - 1
    num_fillers = gaps // span
    at = np.cumsum(num_fillers + 1) - 1
    all_gaps = np.full(int(at[-1]) + 1, span - 1, np.uint8)
    all_gaps[at] = gaps % span
    all_indices = np.zeros(all_gaps.size, np.uint8)
    all_indices[at] = indices
    return _made(Layout.GAPS, width, codebook, all_indices, all_gaps, coder)


def _made(
    layout: Layout,
    width: int,
    codebook: NDArray[np.uint32],
    indices: Symbols,
    positions: Symbols,
    coder: Coder,
) -> Code:
    values = codebook.view(np.float32)
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16).astype(np.float32)
    flags = _HALF if np.array_equal(halves.view(np.uint32), codebook) else 0
    stored = []
    for symbols, flag in ((indices, _CODED_INDICES), (positions, _CODED_POSITIONS)):
        coded = coder(symbols) if symbols.size else b""
        if symbols.size and len(coded) < symbols.size:
            flags |= flag
        else:
            coded = symbols.tobytes()
        stored.append(coded)
    return Code(layout, width, values, indices.size, stored[0], stored[1], flags)


def _symbols(stored: bytes, count: int, is_coded: int) -> Symbols:
    if is_coded:
        return decompress(stored, count)
    if len(stored) != count:
        raise CodedError(f"{len(stored)} B where {count} were expected")
    return np.frombuffer(stored, np.uint8)


def _positions(found: Code, size: int) -> NDArray[np.intp]:
    is_coded = found.flags & _CODED_POSITIONS
    if found.layout is Layout.MASK:
        mask = _symbols(found.positions, -(-size // 8), is_coded)
        return np.flatnonzero(np.unpackbits(mask, count=size, bitorder="little"))
    gaps = _symbols(found.positions, found.num_indices, is_coded)
    return np.cumsum(gaps.astype(np.intp) + 1) - 1
