"""Lossless coding of weights that share few values, and containers of coded weights by name.

An array becomes a codebook of its values and an index per element. Zeros are left out: each
non-zero element records the number of zeros before it (gaps; runs too long for one gap are bridged
by fillers, entries of value 0), or a bit per element marks the non-zero ones (mask). Indices and
positions are Huffman-coded, each with its own code. All layouts are tried; the smallest wins.

The bytes of an array, little-endian::

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

The bytes of a container::

    0   "ARENITEW"
    8   version, 8 bits: 1
        bytes of the index, bytes of its code; the code, a Zstandard frame without magic number
        the content of each tensor, one after the other

The index has the number of tensors, and for each its form, 8 bits; bytes of its name; the name in
UTF-8; number of axes; length of each; bytes of its content.

Forms: 0 32-bit floats, 1 16-bit floats, 2 a coded array. Numbers are
LEB128: seven bits a byte, the lowest first, the highest bit set in all but the last.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016, sections 2 to 4.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import zstandard
from numpy.typing import NDArray

from arenite.compression.errors import CodedError

# The literal coder of Zstandard as a Huffman coder: parameters that leave its match finder next to
# nothing to do reach the ideal size and decode gigabytes a second. Its standard levels lose 15 %
# here: they look for repetitions, which quantised weights lack. Frames lack the magic number, the
# same four bytes in each.
_PARAMETERS = zstandard.ZstdCompressionParameters(
    window_log=17, hash_log=6, chain_log=6, search_log=1, min_match=7, target_length=0,
    strategy=zstandard.STRATEGY_FAST, write_content_size=True, write_checksum=False,
    write_dict_id=False, format=zstandard.FORMAT_ZSTD1_MAGICLESS,
)  # fmt: skip


def huffman_code(symbols: NDArray[np.uint8]) -> bytes:
    """Return the Huffman code of symbols, one per byte, including its decoding tables."""
    compressor = zstandard.ZstdCompressor(compression_params=_PARAMETERS)
    return bytes(compressor.compress(np.ascontiguousarray(symbols).data))


def _text_code(text: bytes) -> bytes:
    """Return the code of repetitive bytes, such as names; `huffman_decode` reads it."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        19, source_size=len(text), write_content_size=True, write_checksum=False,
        write_dict_id=False, format=zstandard.FORMAT_ZSTD1_MAGICLESS,
    )  # fmt: skip
    return bytes(zstandard.ZstdCompressor(compression_params=parameters).compress(text))


def huffman_decode(code: bytes | memoryview, count: int) -> NDArray[np.uint8]:
    """Return the given number of symbols.

    Raises:
        CodedError: The code is damaged, or of another number of symbols.
    """
    decompressor = zstandard.ZstdDecompressor(format=zstandard.FORMAT_ZSTD1_MAGICLESS)
    try:
        stream = decompressor.stream_reader(code, read_across_frames=False)
        decoded = stream.read(count + 1)
    except zstandard.ZstdError as error:
        raise CodedError(str(error)) from error
    if len(decoded) != count:
        raise CodedError(f"a code does not hold {count} symbols")
    return np.frombuffer(decoded, np.uint8)


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
    """
    bits = np.ascontiguousarray(weights, np.float32).reshape(-1).view(np.uint32)
    if not 0 < bits.size < MAX_ELEMENTS or np.unique(bits[:_SAMPLE]).size > MAX_VALUES:
        return []
    filled = np.flatnonzero(bits)
    values = np.unique(bits[filled])
    has_zeros = filled.size < bits.size
    if values.size + has_zeros > MAX_VALUES:
        return []
    coder: Coder = huffman_code if huffman else lambda symbols: symbols.tobytes()
    codebook = np.concatenate((np.zeros(int(has_zeros), np.uint32), values))
    indices = np.searchsorted(codebook, bits).astype(np.uint8)
    found = [_made(Layout.PLAIN, 0, codebook, indices, np.zeros(0, np.uint8), coder)]
    if has_zeros and values.size:
        indices = indices[filled]
        mask = np.packbits(bits != 0, bitorder="little")
        found.append(_made(Layout.MASK, 0, codebook, indices, mask, coder))
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
        raise CodedError(f"version {version} is unsupported; supported: {_VERSION}")
    if layout not in tuple(Layout) or not 1 <= num_values <= MAX_VALUES or gap_bits > 8:
        raise CodedError("the header is damaged")
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
        return huffman_decode(stored, count)
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


_MAGIC = b"ARENITEW\x01"
_SINGLE, _HALF, _CODED = 0, 1, 2
_MAX_BITS = 35
_LARGEST_INDEX = 1 << 24


def pack(tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """Return float32 tensors as bytes, each in its smallest lossless form."""
    index, contents = [_number(len(tensors))], []
    for name, tensor in tensors.items():
        label = name.encode()
        form, content = _smallest(np.asarray(tensor, np.float32))
        index += [bytes((form,)), _number(len(label)), label, _number(tensor.ndim)]
        index += [_number(length) for length in (*tensor.shape, len(content))]
        contents.append(content)
    joined = b"".join(index)
    coded = _text_code(joined)
    head = (_MAGIC, _number(len(joined)), _number(len(coded)), coded)
    return b"".join((*head, *contents))


def unpack(packed: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the tensors by name.

    Raises:
        CodedError: The bytes are damaged.
    """
    if not packed.startswith(_MAGIC):
        raise CodedError("it is not a container of weights of version 1")
    contents = _Reader(packed, len(_MAGIC))
    size = contents.number()
    if size > _LARGEST_INDEX:
        raise CodedError(f"an index of {size} B is too large")
    index = _Reader(huffman_decode(contents.take(contents.number()), size).tobytes())
    tensors: dict[str, NDArray[np.float32]] = {}
    for _ in range(index.number()):
        (form,) = index.take(1)
        try:
            name = index.take(index.number()).decode()
        except UnicodeDecodeError as error:
            raise CodedError("a name is not UTF-8 text") from error
        shape = tuple(index.number() for _ in range(index.number()))
        if name in tensors:
            raise CodedError(f"tensor {name!r} occurs twice")
        tensors[name] = _restored(form, contents.take(index.number()), shape)
    if contents.at != len(packed) or index.at != size:
        raise CodedError("bytes follow the last tensor")
    return tensors


class _Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise CodedError("the container is truncated")
        self.at += count
        return self._data[self.at - count : self.at]

    def number(self) -> int:
        value = 0
        for shift in range(0, _MAX_BITS, 7):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CodedError("a number is too large")


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _smallest(tensor: NDArray[np.float32]) -> tuple[int, bytes]:
    found = code(tensor)
    with np.errstate(over="ignore"):
        halves = tensor.astype("<f2")
    is_exact = halves.astype(np.float32).tobytes() == tensor.tobytes()
    forms = [(_HALF, halves.tobytes()) if is_exact else (_SINGLE, tensor.astype("<f4").tobytes())]
    if found is not None:
        forms.append((_CODED, bytes(found)))
    return min(forms, key=lambda each: len(each[1]))


def _restored(form: int, content: bytes, shape: tuple[int, ...]) -> NDArray[np.float32]:
    if form == _CODED:
        return decode(content, shape)
    if form not in (_SINGLE, _HALF):
        raise CodedError(f"a tensor has the unknown form {form}")
    dtype = np.dtype("<f2" if form == _HALF else "<f4")
    if len(content) != int(np.prod(shape, dtype=object)) * dtype.itemsize:
        raise CodedError("the bytes of a tensor do not match its shape")
    return np.frombuffer(content, dtype).astype(np.float32).reshape(shape)
