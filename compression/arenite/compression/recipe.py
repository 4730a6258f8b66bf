"""Compression of a whole model: prune, share, code, with statistics per layer.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016, tables 2 to 5.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.coding import Code, code
from arenite.compression.onnx_model import Layer, LayerKind
from arenite.compression.pruning import mask_by_density, mask_by_deviation, masks_by_budget
from arenite.compression.sharing import Start, relative_error, share

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Report: TypeAlias = Callable[[int, str], None]
"""Called with the number of finished layers and the name of the next."""


@dataclass(frozen=True, slots=True)
class LayerRecipe:
    """How to compress one layer that differs from the others of its kind.

    Attributes:
        density: Share of the weights to retain; None for the recipe's.
        bits: Width of an index; None for the recipe's, 0 for no sharing.
    """

    density: float | None = None
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class CompressionRecipe:
    """How to compress a model. Without density, deviation and budget nothing is pruned.

    Attributes:
        density: Share of the weights of each layer to retain.
        deviation: Threshold in standard deviations of the layer's weights.
        budget: Share of all weights to retain, by one threshold for all layers.
        convolution_bits: Width of an index in convolutions, depthwise ones included.
        product_bits: Width of an index in matrices.
        prunes_depthwise: Whether depthwise convolutions are pruned: they have few weights, and
            each counts.
        start: Initialisation of k-means.
        half: Restrict codebooks to values of 16-bit floats.
        seed: Of a random initialisation.
        layers: Exceptions, by layer name.
    """

    density: float | None = None
    deviation: float | None = None
    budget: float | None = None
    convolution_bits: int = 8
    product_bits: int = 8
    prunes_depthwise: bool = False
    start: Start = Start.LINEAR
    half: bool = False
    seed: int = 0
    layers: Mapping[str, LayerRecipe] = field(default_factory=dict)

    def bits(self, layer: Layer) -> int:
        """Return the width of an index in a layer; 0 for no sharing."""
        stated = self.layers.get(layer.name, LayerRecipe()).bits
        if stated is not None:
            return stated
        is_product = layer.kind is LayerKind.PRODUCT
        return self.product_bits if is_product else self.convolution_bits


@dataclass(frozen=True, slots=True)
class LayerResult:
    """Statistics of a compressed layer.

    Attributes:
        name: Of the layer.
        kind: The kind of layer.
        shape: Of its weights.
        num_kept: Number of non-zero weights.
        bits: Width of an index; 0 without sharing.
        error: Squared error relative to the sum of the squared weights.
        code: Its code; None where coding saves nothing.
    """

    name: str
    kind: LayerKind
    shape: tuple[int, ...]
    num_kept: int
    bits: int
    error: float
    code: Code | None

    @property
    def num_weights(self) -> int:
        """Number of weights."""
        return int(np.prod(self.shape))

    @property
    def coded_size(self) -> int:
        """Coded bytes."""
        return 4 * self.num_weights if self.code is None else self.code.size


@dataclass(frozen=True, slots=True)
class Compressed:
    """Weights after the pipeline.

    Attributes:
        pruned: After pruning alone, by layer; no entry where nothing was pruned.
        shared: After sharing, by layer.
        results: Statistics per layer.
    """

    pruned: Mapping[str, Array]
    shared: Mapping[str, Array]
    results: tuple[LayerResult, ...]


def compress(
    layers: Sequence[Layer], recipe: CompressionRecipe, report: Report = lambda _done, _next: None
) -> Compressed:
    """Return the compressed weights of layers.

    Args:
        layers: Of a model.
        recipe: Densities and bits.
        report: Called before each layer.

    Raises:
        ValueError: A number of the recipe is out of range, or it names no layer.
    """
    unknown = set(recipe.layers) - {layer.name for layer in layers}
    if unknown:
        raise ValueError(f"there is no layer {min(unknown)!r}")
    masks = masks_of(layers, recipe)
    pruned: dict[str, Array] = {}
    shared: dict[str, Array] = {}
    results: list[LayerResult] = []
    for done, layer in enumerate(layers):
        report(done, layer.name)
        weights, mask, bits = layer.weights, masks.get(layer.name), recipe.bits(layer)
        if mask is not None:
            weights = pruned[layer.name] = np.where(mask, weights, np.float32(0))
        if bits:
            weights = share(
                weights, bits, mask=mask, start=recipe.start, half=recipe.half, seed=recipe.seed
            ).restore()
        shared[layer.name] = weights
        results.append(
            LayerResult(
                layer.name, layer.kind, weights.shape, int(np.count_nonzero(weights)), bits,
                relative_error(layer.weights, weights), code(weights),
            )
        )  # fmt: skip
    return Compressed(pruned, shared, tuple(results))


def masks_of(layers: Sequence[Layer], recipe: CompressionRecipe) -> dict[str, Mask]:
    """Return masks by layer, True for weights to retain; no entry where nothing is pruned.

    Raises:
        ValueError: A number of the recipe is out of range.
    """
    prunable = {
        layer.name: layer.weights
        for layer in layers
        if recipe.prunes_depthwise or layer.kind is not LayerKind.DEPTHWISE
    }
    stated = {
        name: each.density for name, each in recipe.layers.items() if each.density is not None
    }
    by_kind = {name: weights for name, weights in prunable.items() if name not in stated}
    masks: dict[str, Mask] = {}
    if recipe.budget is not None:
        masks = masks_by_budget(by_kind, recipe.budget)
    elif recipe.density is not None:
        masks = {name: mask_by_density(each, recipe.density) for name, each in by_kind.items()}
    elif recipe.deviation is not None:
        masks = {name: mask_by_deviation(each, recipe.deviation) for name, each in by_kind.items()}
    weights_of = {layer.name: layer.weights for layer in layers}
    masks |= {name: mask_by_density(weights_of[name], density) for name, density in stated.items()}
    return {name: mask for name, mask in masks.items() if not mask.all()}
