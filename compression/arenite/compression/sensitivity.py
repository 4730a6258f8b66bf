"""Sensitivity to pruning: how much of each layer can go, one layer at a time.

Source: Han, Pool, Tran and Dally, NIPS 2015, section 3.2 (sensitivity of layers to pruning).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.onnx_model import Layer, LayerKind
from arenite.compression.prune import mask_by_density

Array: TypeAlias = NDArray[Any]
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
