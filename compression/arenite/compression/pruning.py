"""Pruning by magnitude, and the sensitivity of layers to it.

Source: Han, Pool, Tran and Dally, Learning both weights and connections, NIPS 2015: thresholds in
standard deviations of a layer (section 3), sensitivity of layers (section 3.2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.onnx_model import Layer, LayerKind

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
        raise ValueError(f"density={density} must be above 0 and at most 1")
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
        raise ValueError(f"multiple={multiple} must be at least 0")
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


Loss: TypeAlias = Callable[[Mapping[str, Array]], float]
"""Loss of a model with some layers' weights replaced; 0 is as good as the original."""

DENSITIES = (0.9, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The loss from pruning one layer alone.

    Attributes:
        layer: Its name.
        losses: By density, in falling order.
    """

    layer: str
    losses: Mapping[float, float]

    def density_for(self, limit: float) -> float:
        """Return the lowest density before the loss first exceeds a limit; 1 if there is none."""
        found = 1.0
        for density, loss in self.losses.items():
            if loss > limit:
                break
            found = density
        return found


def scan(
    layers: Sequence[Layer],
    loss: Loss,
    densities: Sequence[float] = DENSITIES,
    report: Callable[[int, str], None] = lambda _done, _next: None,
    *,
    known: Sequence[Sensitivity] = (),
    keep: Callable[[list[Sensitivity]], None] = lambda _found: None,
) -> list[Sensitivity]:
    """Return the sensitivity of each layer but the depthwise convolutions.

    On KeyboardInterrupt it returns the layers finished so far.

    Args:
        layers: Of a model.
        loss: Evaluates the model.
        densities: To try, in falling order.
        report: Called with the number of finished layers and the name of the next.
        known: Results of an earlier scan, which are not computed again.
        keep: Called with all results so far after each layer.

    Cost: one evaluation per layer and density.
    """
    by_layer = {each.layer: each for each in known}
    found: list[Sensitivity] = []
    try:
        for layer in layers:
            if layer.kind is LayerKind.DEPTHWISE:
                continue
            if layer.name in by_layer:
                found.append(by_layer[layer.name])
                continue
            report(len(found), layer.name)
            losses = {}
            for density in sorted(densities, reverse=True):
                kept = mask_by_density(layer.weights, density)
                losses[density] = loss({layer.name: np.where(kept, layer.weights, np.float32(0))})
            found.append(Sensitivity(layer.name, losses))
            keep(found)
    except KeyboardInterrupt:
        if not found:
            raise
    return found
