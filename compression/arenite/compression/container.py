"""A compact container of weights by name; the structure of the model is stored elsewhere.

The bytes, little-endian::

    0   "ARENITEW"
    8   version, 8 bits: 1
        bytes of the index, bytes of its code; the code, a Zstandard frame without magic number
        the content of each tensor, one after the other

The index has the number of tensors, and for each its form, 8 bits; bytes of its name; the name in
UTF-8; number of axes; length of each; bytes of its content.

Forms: 0 32-bit floats, 1 16-bit floats, 2 as `arenite.compression.coding` states. Numbers are
LEB128: seven bits a byte, the lowest first, the highest bit set in all but the last.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arenite.compression.coding import code, decode
from arenite.compression.errors import CodedError
from arenite.compression.huffman import compress_text, decompress

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
    coded = compress_text(joined)
    head = (_MAGIC, _number(len(joined)), _number(len(coded)), coded)
    return b"".join((*head, *contents))


def unpack(packed: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the tensors by name.

    Raises:
        CodedError: The bytes are damaged.
    """
    if not packed.startswith(_MAGIC):
        raise CodedError("this is no container of weights of version 1")
    contents = _Reader(packed, len(_MAGIC))
    size = contents.number()
    if size > _LARGEST_INDEX:
        raise CodedError(f"an index of {size} B is too large")
    index = _Reader(decompress(contents.take(contents.number()), size).tobytes())
    tensors: dict[str, NDArray[np.float32]] = {}
    for _ in range(index.number()):
        (form,) = index.take(1)
        try:
            name = index.take(index.number()).decode()
        except UnicodeDecodeError as error:
            raise CodedError("a name is not UTF-8 text") from error
        shape = tuple(index.number() for _ in range(index.number()))
        if name in tensors:
            raise CodedError(f"tensor {name!r} is there twice")
        tensors[name] = _restored(form, contents.take(index.number()), shape)
    if contents.at != len(packed) or index.at != size:
        raise CodedError("something follows the last tensor")
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
        raise CodedError("a tensor is not of its stated shape")
    return np.frombuffer(content, dtype).astype(np.float32).reshape(shape)
