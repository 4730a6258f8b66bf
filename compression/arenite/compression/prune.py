"""Pruning by magnitude: masks of the weights to retain.

Source: Han, Pool, Tran and Dally, Learning both weights and connections, NIPS 2015; its
thresholds are multiples of a layer's standard deviation.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]


def mask_by_density(weights: Array, density: float) -> Mask:
    """Return a mask of the largest weights: a given share, at least one.

    Of weights of the same magnitude the first stay.

    Args:
        weights: Any shape.
        density: Above 0, at most 1.

    Raises:
        ValueError: The density is not in that range.

    Cost: O(n).
    """
    if not 0 < density <= 1:
        raise ValueError(f"a density of {density} is not above 0 and at most 1")
    if weights.size == 0:
        return np.ones(weights.shape, bool)
    magnitudes = np.abs(weights.reshape(-1))
    num_kept = max(1, round(density * magnitudes.size))
    threshold = np.partition(magnitudes, magnitudes.size - num_kept)[-num_kept]
    mask = magnitudes > threshold
    ties = np.flatnonzero(magnitudes == threshold)
    mask[ties[: num_kept - np.count_nonzero(mask)]] = True
    return np.asarray(mask.reshape(weights.shape))


def mask_by_deviation(weights: Array, multiple: float) -> Mask:
    """Return a mask of the weights beyond a multiple of their standard deviation.

    Args:
        weights: Any shape.
        multiple: At least 0.

    Raises:
        ValueError: The multiple is below 0.
    """
    if not multiple >= 0:
        raise ValueError(f"a multiple of {multiple} is below 0")
    return np.asarray(np.abs(weights) > multiple * np.std(weights, dtype=np.float64))


def masks_by_budget(layers: Mapping[str, Array], density: float) -> dict[str, Mask]:
    """Return masks by layer name, by one threshold for all layers.

    Args:
        layers: Weights by name.
        density: Of all weights together; above 0, at most 1.

    Raises:
        ValueError: The density is not in that range.
    """
    if not layers:
        return {}
    joined = np.concatenate([weights.reshape(-1) for weights in layers.values()])
    parts = np.split(
        mask_by_density(joined, density),
        np.cumsum([weights.size for weights in layers.values()])[:-1],
    )
    return {
        name: part.reshape(weights.shape)
        for (name, weights), part in zip(layers.items(), parts, strict=True)
    }
