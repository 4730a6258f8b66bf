"""A canonical Huffman code of bytes, as the kernel `decoded_weights` reads it."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arenite.planner import Array

LONGEST = 15
"""Bits of the longest code."""
_BEHIND = 3
"""Bytes behind the codes that the kernel reads too."""


@dataclass(frozen=True, slots=True)
class ByteCode:
    """A code of bytes.

    Attributes:
        lengths: Bits of each byte's code, 0 where there is no such byte.
    """

    lengths: Array

    @classmethod
    def of(cls, counts: Array) -> "ByteCode":
        """Return the code of the fewest bits for so many of each byte, 256 numbers.

        Where codes would be too long, counts are halved until none is.
        """
        counts = counts.astype(np.int64)
        while True:
            lengths = _lengths(counts)
            if lengths.max() <= LONGEST:
                return cls(lengths)
            counts = (counts + 1) // 2

    @property
    def shortest(self) -> int:
        """Bits of the shortest code."""
        return int(self.lengths[self.lengths > 0].min())

    @property
    def symbols(self) -> Array:
        """The bytes in the order of their codes."""
        used = np.flatnonzero(self.lengths)
        return used[np.argsort(self.lengths[used], kind="stable")].astype(np.uint8)

    @property
    def codes(self) -> Array:
        """The code of each byte as a number."""
        found = np.zeros(256, np.int64)
        code, before = 0, self.shortest
        for symbol in self.symbols.tolist():
            code <<= int(self.lengths[symbol]) - before
            before = int(self.lengths[symbol])
            found[symbol] = code
            code += 1
        return found

    def tables(self) -> tuple[Array, Array]:
        """Return for each length the last code, in the upper bits of 16, and what codes add to."""
        symbols, codes = self.symbols, self.codes
        lasts, bases = [], []
        for length in range(self.shortest, int(self.lengths.max()) + 1):
            places = np.flatnonzero(self.lengths[symbols] == length)
            if places.size:
                last = int(codes[symbols[places[-1]]])
                lasts.append(((last + 1) << (16 - length)) - 1)
                bases.append(int(places[0]) - int(codes[symbols[places[0]]]))
            else:
                lasts.append(lasts[-1])
                bases.append(0)
        lasts[-1] = 0xFFFF  # where bits behind the codes are read
        return np.array(lasts, np.uint16), np.array(bases, np.int16)

    def coded(self, data: bytes) -> bytes:
        """Return the codes of some bytes, filled up to a byte."""
        array = np.frombuffer(data, np.uint8)
        rows = np.arange(256)[:, None]
        planes = np.arange(LONGEST)
        # Bit i of a code of n bits is bit n - 1 - i of its number.
        lengths = self.lengths[rows]
        bits = (self.codes[rows] >> np.maximum(lengths - 1 - planes, 0) & 1).astype(np.uint8)
        return np.packbits(bits[array][(planes < lengths)[array]]).tobytes()


def joined(parts: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """Return coded parts one behind the other, and where each begins."""
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    return b"".join(parts) + bytes(_BEHIND), starts[:-1]


def _lengths(counts: Array) -> Array:
    lengths = np.zeros(256, np.int64)
    heap: list[tuple[int, int, list[int]]] = [
        (int(count), symbol, [symbol]) for symbol, count in enumerate(counts) if count
    ]
    if len(heap) == 1:
        lengths[heap[0][1]] = 1
        return lengths
    heapq.heapify(heap)
    while len(heap) > 1:
        one, other = heapq.heappop(heap), heapq.heappop(heap)
        symbols = one[2] + other[2]
        lengths[symbols] += 1
        heapq.heappush(heap, (one[0] + other[0], min(one[1], other[1]), symbols))
    return lengths
