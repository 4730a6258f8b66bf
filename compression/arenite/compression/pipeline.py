"""The pipeline on a whole model: prune, share, code; with what each layer came to.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016, tables 2 to 5.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.coding import Code, code
from arenite.compression.onnx_model import Layer, LayerKind
from arenite.compression.prune import mask_by_density, mask_by_deviation, masks_by_budget
from arenite.compression.share import Start, relative_error, share

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Report: TypeAlias = Callable[[int, str], None]
"""Is told how many layers are done, and which is next."""


@dataclass(frozen=True, slots=True)
class LayerRecipe:
    """What becomes of one layer, where it differs from its kind.

    Attributes:
        density: Share of the weights that stay; None for the recipe's.
        bits: Of a shared weight; None for the recipe's, 0 to leave the values as they are.
    """

    density: float | None = None
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """What becomes of a model. Without density, deviation and budget nothing is pruned.

    Attributes:
        density: Share of the weights of each layer that stay.
        deviation: Weights stay that are beyond so many standard deviations of their layer.
        budget: Share of all weights that stay; one threshold for all layers.
        convolution_bits: Of a shared weight of a convolution, depthwise ones included.
        product_bits: Of a shared weight of a matrix.
        prunes_depthwise: Whether depthwise convolutions are pruned: they have few weights, and
            each counts.
        start: Where k-means begins.
        half: Codebooks have only values that 16-bit floats have.
        seed: Of a random start.
        layers: Exceptions, by name.
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
        """Return the bits of a shared weight of a layer; 0: its values stay."""
        stated = self.layers.get(layer.name, LayerRecipe()).bits
        if stated is not None:
            return stated
        is_product = layer.kind is LayerKind.PRODUCT
        return self.product_bits if is_product else self.convolution_bits


@dataclass(frozen=True, slots=True)
class LayerResult:
    """What a layer came to.

    Attributes:
        name: Of the layer.
        kind: What it computes.
        shape: Of its weights.
        num_kept: Weights that are not 0.
        bits: Of a shared weight; 0 where values were left as they were.
        error: Squared error relative to the sum of the squared weights.
        code: Its code; None where it has none.
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
        """How many there are."""
        return int(np.prod(self.shape))

    @property
    def coded_size(self) -> int:
        """Bytes."""
        return 4 * self.num_weights if self.code is None else self.code.size


@dataclass(frozen=True, slots=True)
class Compressed:
    """Weights after the pipeline.

    Attributes:
        pruned: After pruning alone, by layer; no entry where nothing was pruned.
        shared: After sharing, by layer.
        results: What each layer came to.
    """

    pruned: Mapping[str, Array]
    shared: Mapping[str, Array]
    results: tuple[LayerResult, ...]


def compress(
    layers: Sequence[Layer], recipe: Recipe, report: Report = lambda _done, _next: None
) -> Compressed:
    """Return the compressed weights of layers.

    Args:
        layers: Of a model.
        recipe: What to do.
        report: Is told of each layer.

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


def masks_of(layers: Sequence[Layer], recipe: Recipe) -> dict[str, Mask]:
    """Return True for the weights that stay, by layer; no entry where nothing is pruned.

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
