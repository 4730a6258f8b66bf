"""Copies of a file with a few bits of it turned, as damage or malice would."""

from collections.abc import Iterator

import numpy as np


def flipped(data: bytes, count: int, seed: int, most: int = 8) -> Iterator[bytes]:
    """Yield copies with 1 to `most` bits turned, the same ones for the same seed."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        copy = bytearray(data)
        for position in generator.integers(0, 8 * len(data), generator.integers(1, most + 1)):
            copy[position // 8] ^= 1 << (position % 8)
        yield bytes(copy)
