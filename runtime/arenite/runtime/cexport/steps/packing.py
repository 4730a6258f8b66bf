"""Weights of bytes in the orders in which the kernels read them."""

from itertools import pairwise

import numpy as np

from arenite.planner import Array

_BLOCK = 4
"""Outputs whose weights lie side by side."""
_PAIRS = 4
"""Pairs of outputs whose weights lie side by side."""
_LANES = [0, 2, 1, 3]
"""The order of the weights for four inputs: a word of bytes is taken apart into those at even
places and those at odd ones."""
HIGHEST_INPUT = 128
"""Largest magnitude of an input."""


def blocks(weights: Array, groups: int) -> Array:
    """Return a filter in blocks of four outputs, zeros where there are fewer.

    Args:
        weights: outputs, rows, columns, inputs.
        groups: Outputs come in as many groups; none shares a block with another.

    Returns:
        Shape blocks, rows, columns, inputs, 4.
    """
    outputs, *inner = weights.shape
    per_group = outputs // groups
    margin = -per_group % _BLOCK
    by_group = weights.reshape(groups, per_group, *inner)
    filled = np.pad(by_group, [(0, 0), (0, margin), *((0, 0) for _ in inner)])
    return np.ascontiguousarray(np.moveaxis(filled.reshape(-1, _BLOCK, *inner), 1, -1))


def in_pairs_of_inputs(packed: Array) -> Array:
    """Return blocks of four outputs with the weights of two inputs side by side.

    Those of outputs 0 and 1 for both inputs are followed by those of outputs 2 and 3; the last
    one of an odd number of inputs stays as it is.

    Args:
        packed: Shape blocks, rows, columns, inputs, 4.
    """
    inputs = packed.shape[3]
    even = inputs - inputs % 2
    paired = packed[..., :even, :].reshape(*packed.shape[:3], even // 2, 2, 2, 2)
    swapped = paired.swapaxes(-3, -2).reshape(*packed.shape[:3], even, _BLOCK)
    return np.concatenate([swapped, packed[..., even:, :]], axis=3)


def in_blocks(values: Array, groups: int) -> Array:
    """Return one value an output, in the blocks of a filter."""
    by_group = values.reshape(groups, -1)
    return np.pad(by_group, [(0, 0), (0, -by_group.shape[1] % _BLOCK)]).reshape(-1)


def pairs(weights: Array) -> Array:
    """Return a filter of bytes in pairs of outputs, one + 256 * other in 16 bits.

    Four pairs lie side by side, then the rest, which are three at most; the last output of an odd
    number is paired with zeros. For each row of the window the weights of each pair for four
    inputs are followed by those of the next pair, and at the end by those for the inputs that are
    left.

    Args:
        weights: outputs, rows, columns, inputs; int8.

    Returns:
        One axis, int16.
    """
    lanes = _lanes(weights).reshape(-(-len(weights) // 2), weights.shape[1], -1)
    whole = lanes.shape[2] // 4 * 4
    bounds = [*range(0, len(lanes), _PAIRS), len(lanes)]
    found = []
    for start, end in pairwise(bounds):
        for row in range(weights.shape[1]):
            run = lanes[start:end, row]
            fours = run[:, :whole].reshape(end - start, -1, 4)[:, :, _LANES]
            found += [fours.transpose(1, 0, 2).reshape(-1), run[:, whole:].reshape(-1)]
    return np.concatenate(found).astype(np.int16)


def as_pairs(weights: Array) -> Array:
    """Return a filter of bytes as it is, in as many numbers of 16 bits as its pairs take.

    Args:
        weights: outputs, rows, columns, inputs; int8.

    Returns:
        One axis, int16.
    """
    outputs, *inner = weights.shape
    filled = np.pad(weights, [(0, outputs % 2), *((0, 0) for _ in inner)])
    return np.ascontiguousarray(filled).reshape(-1).view(np.int16)


def in_channels(weights: Array, block: int) -> Array:
    """Return a depthwise filter in blocks of channels, the last of which may have fewer.

    Args:
        weights: rows, columns, channels.
        block: Channels of a block.

    Returns:
        One axis: for each block rows, columns, channels.
    """
    channels = weights.shape[-1]
    starts = range(0, channels, block)
    return np.concatenate([weights[..., each : each + block].reshape(-1) for each in starts])


def fits_pairs(weights: Array) -> bool:
    """Tell whether 16 bits hold every pair, and 32 bits the sums of both, whatever the inputs are.

    Args:
        weights: outputs, rows, columns, inputs; int8.
    """
    lanes = _lanes(weights)
    sums = np.abs(weights.astype(np.int64)).reshape(len(weights), -1).sum(axis=1)
    one, other = np.pad(sums, (0, len(sums) % 2)).reshape(-1, 2).T
    joined = HIGHEST_INPUT * (one + 256 * other)
    is_short = lanes.min() >= -(2**15) and lanes.max() < 2**15
    return bool(is_short and joined.max() < 2**31)


def _lanes(weights: Array) -> Array:
    outputs, *inner = weights.shape
    filled = np.pad(weights.astype(np.int32), [(0, outputs % 2), *((0, 0) for _ in inner)])
    return filled[0::2] + 256 * filled[1::2]
