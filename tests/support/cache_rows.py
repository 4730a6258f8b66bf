"""Rows of caches of 8 bits in NumPy: integers, then the scales of their blocks."""

import numpy as np
from numpy.typing import NDArray

BLOCK = 32


def row_bytes(width: int) -> int:
    """Return the bytes of a row of so many elements."""
    return width + 2 * -(-width // BLOCK)


def rounded(rows: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return rows along the last axis as they are kept."""
    codes, scales = [], []
    for first in range(0, rows.shape[-1], BLOCK):
        block = rows[..., first : first + BLOCK]
        largest = np.abs(block).max(-1, keepdims=True)
        scale = (largest / np.float32(127)).astype(np.float16)
        is_low = scale.astype(np.float32) * np.float32(127) < largest
        scale = np.where(is_low, np.nextafter(scale, np.float16(np.inf)), scale)
        unit = scale.astype(np.float32)
        with np.errstate(divide="ignore"):
            factor = np.where(unit > 0, np.float32(1) / unit, np.float32(0))
        codes.append(np.clip(np.rint(block * factor), -127, 127).astype(np.int8))
        scales.append(scale.view(np.int8))
    return np.concatenate([*codes, *scales], -1)


def floats(kept: NDArray[np.int8], width: int) -> NDArray[np.float32]:
    """Return the elements that kept rows stand for."""
    scales = np.ascontiguousarray(kept[..., width:]).view(np.float16).astype(np.float32)
    units = np.repeat(scales, BLOCK, axis=-1)[..., :width]
    return units * kept[..., :width].astype(np.float32)
