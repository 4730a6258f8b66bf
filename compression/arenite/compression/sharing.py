"""Weight sharing: the weights of a layer become the few values of a codebook.

Lloyd's k-means in one dimension. Weights are sorted once; clusters are then runs of them, so an
iteration looks up the boundaries between clusters and takes differences of prefix sums. It is
exact, and costs next to nothing beside the sort.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016, section 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]

MAX_BITS = 8
_MOST_ITERATIONS = 300
_SEGMENT = 1 << 20


class Start(StrEnum):
    """Initialisation of k-means.

    LINEAR spaces the values evenly from the smallest weight to the largest, which keeps the
    rare large ones; DENSITY has as many weights between one and the next; FORGY takes weights
    at random.
    """

    LINEAR = "linear"
    DENSITY = "density"
    FORGY = "forgy"


@dataclass(frozen=True, slots=True)
class Shared:
    """Weights that share values.

    Attributes:
        codebook: float32, rising; where weights are pruned, entry 0 is 0.0.
        indices: uint8, in the shape of the weights.
    """

    codebook: NDArray[np.float32]
    indices: NDArray[np.uint8]

    def restore(self) -> NDArray[np.float32]:
        """Return the weights."""
        return self.codebook[self.indices]


def share(
    weights: Array,
    bits: int,
    *,
    mask: Mask | None = None,
    start: Start = Start.LINEAR,
    half: bool = False,
    seed: int = 0,
) -> Shared:
    """Return weights that share at most 2^bits values.

    Args:
        weights: float32, finite, any shape.
        bits: 1 to 8.
        mask: True where a weight is retained; the others become 0, which takes one entry.
        start: Initialisation of k-means.
        half: Restrict the codebook to values of 16-bit floats.
        seed: Of FORGY.

    Raises:
        ValueError: The bits are out of range, a weight is not finite, or the mask is of
            another shape.

    Cost: O(n log n) for n weights; 12 B a weight of memory beside them.
    """
    if not 1 <= bits <= MAX_BITS:
        raise ValueError(f"bits={bits} must be 1 to {MAX_BITS}")
    if mask is not None and mask.shape != weights.shape:
        raise ValueError(f"the mask has shape {mask.shape}, the weights {weights.shape}")
    flat = np.ascontiguousarray(weights, np.float32).reshape(-1)
    kept = flat if mask is None else flat[mask.reshape(-1)]
    if not np.isfinite(kept).all():
        raise ValueError("weights must be finite")
    is_pruned = kept.size < flat.size
    values = _clusters(np.sort(kept), (1 << bits) - is_pruned, start, seed)
    if half:
        values = np.unique(np.clip(values, -65504, 65504).astype(np.float16)).astype(np.float32)
    indices = np.zeros(flat.size, np.uint8)
    nearest = _nearest(kept, values)
    if is_pruned:
        assert mask is not None
        indices[mask.reshape(-1)] = nearest + 1
        values = np.concatenate((np.zeros(1, np.float32), values))
    else:
        indices[:] = nearest
    return Shared(values, indices.reshape(weights.shape))


def squared_error(weights: Array, found: Array) -> float:
    flat, other = weights.reshape(-1), found.reshape(-1)
    total = 0.0
    for begin in range(0, flat.size, _SEGMENT):
        part = slice(begin, begin + _SEGMENT)
        distance = flat[part].astype(np.float64) - other[part]
        total += float(distance @ distance)
    return total


def relative_error(weights: Array, found: Array) -> float:
    """Return the same, relative to the sum of the squared weights."""
    energy = float(np.sum(np.square(weights, dtype=np.float64))) or 1.0
    return squared_error(weights, found) / energy


def bits_by_budget(layers: Mapping[str, Array], bits_per_weight: float) -> dict[str, int]:
    """Return the bits per layer with the least loss for a mean number of bits per weight.

    From 1 bit each, a bit goes again and again to the layer where it takes the most squared
    error, relative to that of the layer's weights, for each bit it costs.

    Args:
        layers: Weights by name.
        bits_per_weight: The mean over all weights; 1 to 8.

    Raises:
        ValueError: The mean is out of range.

    Cost: eight times `share` for each layer.
    """
    if not 1 <= bits_per_weight <= MAX_BITS:
        raise ValueError(f"bits_per_weight={bits_per_weight} must be 1 to {MAX_BITS}")
    errors = {
        name: [
            relative_error(weights, share(weights, bits).restore())
            for bits in range(1, MAX_BITS + 1)
        ]
        for name, weights in layers.items()
    }
    chosen = dict.fromkeys(layers, 1)
    left = bits_per_weight * sum(each.size for each in layers.values()) - sum(
        each.size for each in layers.values()
    )
    while True:
        open_layers = [
            name for name, bits in chosen.items() if bits < MAX_BITS and layers[name].size <= left
        ]
        if not open_layers:
            return chosen
        best = max(
            open_layers,
            key=lambda name: (
                (errors[name][chosen[name] - 1] - errors[name][chosen[name]]) / layers[name].size
            ),
        )
        chosen[best] += 1
        left -= layers[best].size


def _clusters(ordered: NDArray[np.float32], count: int, start: Start, seed: int) -> Array:
    """Return the means of clusters of sorted weights, rising; at most `count`."""
    if ordered.size == 0:
        return np.zeros(0, np.float32)
    distinct = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    if distinct.size <= count:
        return distinct
    sums = np.concatenate(([0.0], np.cumsum(ordered, dtype=np.float64)))
    means = _first_means(ordered, count, start, seed)
    edges = np.empty(0, np.intp)
    for _ in range(_MOST_ITERATIONS):
        middles = ((means[1:] + means[:-1]) / 2).astype(np.float32)
        found = np.concatenate(([0], np.searchsorted(ordered, middles, "right"), [ordered.size]))
        if np.array_equal(found, edges):
            break
        edges = found
        counts = np.diff(edges)
        filled = counts > 0  # a cluster without weights stays where it is
        means[filled] = np.diff(sums[edges])[filled] / counts[filled]
        means.sort()
    counts = np.diff(edges)
    return np.unique(means[counts > 0].astype(np.float32))


def _first_means(ordered: NDArray[np.float32], count: int, start: Start, seed: int) -> Array:
    if start is Start.LINEAR:
        return np.linspace(float(ordered[0]), float(ordered[-1]), count)
    if start is Start.DENSITY:
        middles = (np.arange(count) + 0.5) / count * ordered.size
        return ordered[middles.astype(np.intp)].astype(np.float64)
    chosen = np.random.default_rng(seed).choice(ordered.size, count, replace=False)
    return np.sort(ordered[chosen].astype(np.float64))


def _nearest(weights: NDArray[np.float32], values: Array) -> NDArray[np.uint8]:
    """Return the index of the value nearest to each weight; ties go to the upper."""
    middles = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    nearest = np.empty(weights.size, np.uint8)
    for begin in range(0, weights.size, _SEGMENT):
        part = slice(begin, begin + _SEGMENT)
        nearest[part] = np.searchsorted(middles, weights[part], "right")
    return nearest
