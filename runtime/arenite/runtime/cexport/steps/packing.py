"""Weights of bytes in the orders in which the kernels read them."""

from itertools import pairwise

import numpy as np

from arenite.planner import Array
from arenite.runtime.cexport.base.orders import MVE, RVV, Orders

_BLOCK = 4
"""Outputs whose weights lie side by side."""
_PAIRS = 4
"""Pairs of outputs whose weights lie side by side."""
_LANES = [0, 2, 1, 3]
"""The order of the weights for four inputs: a word of bytes is taken apart into those at even
places and those at odd ones."""
_VECTOR = 16
"""Bytes of a vector."""
_MOST_ROWS = 5
"""Most rows of a window whose inputs are taken in vectors of four outputs."""
BLOCKS_OF_MVE = (16, 8, 4)
"""Channels of a block, for vectors."""
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


def in_pairs(weights: Array) -> tuple[Array, Orders]:
    """Return a filter of bytes in pairs of outputs, and as kernels with vectors read it.

    Args:
        weights: outputs, rows, columns, inputs; int8.
    """
    return pairs(weights), {MVE: in_mve_vectors(weights), RVV: by_inputs(weights)}


def in_mve_vectors(weights: Array) -> Array:
    """Return a filter of bytes for MVE, in as many numbers of 16 bits as its pairs take.

    Where inputs come in whole vectors, the weights of four outputs for each vector of a window
    of up to five rows lie side by side. Those of other filters, and of up to three outputs that
    are left, are in the order of the window.

    Args:
        weights: outputs, rows, columns, inputs; int8.

    Returns:
        One axis, int16.
    """
    outputs, rows, _, inputs = weights.shape
    is_in_vectors = inputs % _VECTOR == 0 and rows <= _MOST_ROWS
    fours = outputs // _BLOCK * _BLOCK if is_in_vectors else 0
    shape = fours // _BLOCK, _BLOCK, weights[0].size // _VECTOR, _VECTOR
    vectors = weights[:fours].reshape(shape)
    return _as_pairs(weights, vectors.swapaxes(1, 2), weights[fours:])


def by_inputs(weights: Array) -> Array:
    """Return a filter of bytes for RVV, in as many numbers of 16 bits as its pairs take.

    The weights of all outputs for each input of the window lie side by side.

    Args:
        weights: outputs, rows, columns, inputs; int8.

    Returns:
        One axis, int16.
    """
    return _as_pairs(weights, np.moveaxis(weights, 0, -1))


def _as_pairs(weights: Array, *parts: Array) -> Array:
    """Return parts of a filter in as many numbers of 16 bits as its pairs take."""
    margin = np.zeros(len(weights) % 2 * weights[0].size, np.int8)
    return np.concatenate([*(each.reshape(-1) for each in parts), margin]).view(np.int16)


def in_channels(weights: Array, *blocks: int) -> Array:
    """Return a depthwise filter in blocks of channels: the largest block that is left each time.

    Args:
        weights: rows, columns, channels.
        blocks: Channels of a block, the largest first; the last one may have fewer.

    Returns:
        One axis: for each block rows, columns, channels.
    """
    bounds = [0, *_ends(weights.shape[-1], blocks)]
    return np.concatenate([weights[..., start:end].reshape(-1) for start, end in pairwise(bounds)])


def scales_of_mve(scales: Array, *, is_depthwise: bool) -> Array:
    """Return the biases and factors of outputs for MVE: of each four, biases come first.

    Args:
        scales: outputs, then bias and factor.
        is_depthwise: Whether sums are those of products that were widened.
    """
    order = in_lanes(len(scales)) if is_depthwise else np.arange(len(scales))
    found = scales[order]
    fours = len(found) // _BLOCK * _BLOCK
    by_four = found[:fours].reshape(-1, _BLOCK, 2).swapaxes(1, 2)
    return np.concatenate([by_four.reshape(-1), found[fours:].reshape(-1)])


def in_lanes(channels: int) -> Array:
    """Return the channels in the order in which vectors hold their sums.

    Products of bytes at even places and at odd ones are apart, and their sums again.
    """
    order = np.arange(channels)
    bounds = [0, *_ends(channels, BLOCKS_OF_MVE)]
    lanes = []
    for start, end in pairwise(bounds):
        block = order[start:end]
        halves = [block[0::2], block[1::2]]
        if len(block) == _VECTOR:
            halves = [part for half in halves for part in (half[0::2], half[1::2])]
        lanes += [block] if len(block) <= _BLOCK else halves
    return np.concatenate(lanes)


def _ends(channels: int, blocks: tuple[int, ...]) -> list[int]:
    """Return where blocks of channels end."""
    ends, start = [], 0
    while start < channels:
        size = next((each for each in blocks if start + each <= channels), channels - start)
        start += size
        ends.append(start)
    return ends


def fits_pairs(weights: Array) -> bool:
    """Tell whether 16 bits hold every pair, and 32 bits its sums, whatever the inputs are.

    The sums are those of both, and 256 times those of the first, for processors without signs.

    Args:
        weights: outputs, rows, columns, inputs; int8.
    """
    lanes = _lanes(weights)
    sums = np.abs(weights.astype(np.int64)).reshape(len(weights), -1).sum(axis=1)
    one, other = np.pad(sums, (0, len(sums) % 2)).reshape(-1, 2).T
    joined = HIGHEST_INPUT * np.maximum(one + 256 * other, 256 * one)
    is_short = lanes.min() >= -(2**15) and lanes.max() < 2**15
    return bool(is_short and joined.max() < 2**31)


def _lanes(weights: Array) -> Array:
    outputs, *inner = weights.shape
    filled = np.pad(weights.astype(np.int32), [(0, outputs % 2), *((0, 0) for _ in inner)])
    return filled[0::2] + 256 * filled[1::2]
