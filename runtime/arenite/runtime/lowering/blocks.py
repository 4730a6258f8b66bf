"""Weights of 4 and 8 bits in blocks, in the order that their kernels read."""

from dataclasses import dataclass

import numpy as np

from arenite.planner import Array
from arenite.runtime.lowering.errors import unsupported
from arenite.runtime.operators.base import PANEL

LENGTHS = (16, 32, 64, 128, 256)
"""Weights of a block that the kernels take."""

_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix of weights: (code - zero) * scale, the last two of blocks along a row.

    Attributes:
        codes: Unsigned integers of `bits` bits as uint8: outputs, inputs.
        scales: float32: outputs, blocks.
        zeros: uint8 or float32: outputs, blocks; None if all are half the number of codes.
        bits: 4 or 8.
        length: Weights of a block; the last one of a row may have fewer.
    """

    codes: Array
    scales: Array
    zeros: Array | None
    bits: int
    length: int

    def __post_init__(self) -> None:
        if self.bits not in (4, 8):
            raise unsupported("bits", self.bits, 4, 8)
        if self.length not in LENGTHS:
            raise unsupported("block_size", self.length, *LENGTHS)

    def packed(self) -> tuple[Array, Array, Array | None]:
        """Return codes, scales and zero points in panels of 16 outputs.

        Scales are of 16 bits if that changes none of them.
        """
        with np.errstate(over="ignore"):
            narrow = self.scales.astype(np.float16)
        is_exact = np.array_equal(narrow.astype(np.float32), self.scales)
        zeros = self.zeros
        if zeros is not None and np.all(zeros == 1 << (self.bits - 1)):
            zeros = None
        return (
            self._packed_codes(),
            _in_panels(narrow if is_exact else self.scales),
            None if zeros is None else _in_panels(zeros),
        )

    def _packed_codes(self) -> Array:
        outputs, inputs = self.codes.shape
        blocks = -(-inputs // self.length)
        panels = -(-outputs // PANEL)
        codes = np.zeros((panels * PANEL, blocks * self.length), np.uint8)
        codes[:outputs, :inputs] = self.codes
        together = _WORD_BITS // self.bits
        groups = self.length // together
        words = np.zeros((panels, PANEL, blocks, groups), "<u4")
        grouped = codes.reshape(panels, PANEL, blocks, groups, together)
        for place in range(together):
            words |= grouped[..., place].astype("<u4") << np.uint32(place * self.bits)
        ordered = np.ascontiguousarray(words.transpose(0, 2, 3, 1))
        return ordered.view(np.uint8).reshape(panels, blocks, groups, 4 * PANEL)


def _in_panels(array: Array) -> Array:
    """Return outputs, blocks as panels, blocks, outputs of a panel."""
    outputs, blocks = array.shape
    panels = -(-outputs // PANEL)
    padded = np.zeros((panels * PANEL, blocks), array.dtype)
    padded[:outputs] = array
    return np.ascontiguousarray(padded.reshape(panels, PANEL, blocks).transpose(0, 2, 1))


def unpacked_codes(packed: Array, bits: int) -> Array:
    """Return the codes of bytes along the last axis, the lowest bits first."""
    if bits == 8:
        return packed
    pairs = np.stack([packed & 15, packed >> 4], axis=-1)
    return pairs.reshape(*packed.shape[:-1], -1)


def weights_of(
    packed: tuple[Array, Array, Array | None], bits: int, outputs: int, inputs: int
) -> Array:
    """Return the weights of packed codes, scales and zero points: outputs, inputs, float32."""
    codes, scales, zeros = packed
    words = np.ascontiguousarray(codes).view("<u4")
    shifts = np.arange(0, _WORD_BITS, bits, dtype=np.uint32).reshape(-1, 1)
    apart = words[..., np.newaxis, :] >> shifts & np.uint32((1 << bits) - 1)
    apart = apart.reshape(*words.shape[:2], -1, PANEL)  # panels, blocks, weights of a block, 16
    middle = np.float32(1 << (bits - 1))
    zero = middle if zeros is None else zeros.astype(np.float32)[:, :, np.newaxis]
    weights = (apart.astype(np.float32) - zero) * scales.astype(np.float32)[:, :, np.newaxis]
    rows = weights.transpose(0, 3, 1, 2).reshape(words.shape[0] * PANEL, -1)
    return np.ascontiguousarray(rows[:outputs, :inputs])
