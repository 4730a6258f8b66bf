"""Stages of a compression: their cost, layer by layer, and removed channels."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from arenite.cli.commands.compress.scan_file import ScanFile
from arenite.cli.console.observer import watched
from arenite.pipeline.base import Reading, place
from arenite.pipeline.targets import compiled_for
from arenite.planner.errors import named_instead
from arenite.strategies import find

if TYPE_CHECKING:
    import onnx

    from arenite.compression import (
        Compressed,
        CompressionRecipe,
        Judge,
        Narrowed,
        OnnxModel,
        Quality,
        Sensitivity,
    )

_NUM_RANDOM_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Channels that were removed.

    Attributes:
        layers: Convolutions that lost some.
        kept: Channels of these that stay.
        total: Channels that they had.
        before: Bytes of the arena with all.
        after: Bytes without.
    """

    layers: int
    kept: int
    total: int
    before: int
    after: int


@contextmanager
def twin_of(model: Path, changed: "onnx.ModelProto") -> Iterator[Path]:
    """Write a changed model for who reads a file; errors about it name the model itself."""
    from arenite.compression import write_onnx

    with tempfile.TemporaryDirectory(prefix="arenite-compress-") as folder:
        twin = Path(folder) / model.name
        with named_instead(twin, model):
            write_onnx(twin, changed)
            with np.errstate(all="ignore"):  # huge weights overflow where operators are folded
                yield twin


def narrowing_of(
    model: Path,
    original: "OnnxModel",
    smaller: "OnnxModel",
    narrowed: "Narrowed",
    reading: Reading,
) -> Narrowing:
    """Return how the arena shrinks with the channels."""
    heights = []
    for each in (original, smaller):
        with twin_of(model, each.original()) as twin:
            problem = compiled_for(reading, twin).source.problem
            heights.append(place(find("best"), problem, watched()).plan.height)
    return Narrowing(
        len(narrowed.kept), sum(map(len, narrowed.kept.values())),
        sum(narrowed.num_channels.values()), *heights,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judging:
    """The evaluation of a model, if one is possible.

    Attributes:
        judge: Compares models with the original; None if nothing does.
        why_not: Why nothing does; empty otherwise.
    """

    judge: "Judge | None"
    why_not: str = ""

    def needed_for(self, option: str) -> "Judge":
        """Return the judge."""
        if self.judge is None:
            raise click.UsageError(
                f"{option} requires --evaluate DATASET.npz for this model: {self.why_not}"
            )
        return self.judge


def judging_of(
    original: "OnnxModel", dataset_path: Path | None, seed: int, reading: Reading
) -> Judging:
    """Return the evaluation of a model; without a data set on random inputs if possible."""
    from arenite.compression import DatasetError, Judge, random_dataset, read_dataset
    from arenite.planner.importers.onnx import fixed_feeds

    dims, shapes = reading.fixed_dims, reading.fixed_shapes
    fixed = fixed_feeds(original.original().graph, dims, shapes, reading.values)
    if dataset_path is not None:
        dataset = read_dataset(dataset_path)
    else:
        try:
            dataset = random_dataset(
                original.original(), _NUM_RANDOM_SAMPLES, seed, dims, shapes, fixed
            )
        except DatasetError as error:
            return Judging(None, error.reason)
    return Judging(Judge(original.original(), dataset, dims, shapes, fixed))


def scan_layers(
    source: "OnnxModel", judge: "Judge", file: ScanFile | None, report: Callable[[str], None]
) -> "list[Sensitivity]":
    """Return the loss of accuracy, or of output without labels, from pruning each layer alone.

    Args:
        file: Saves the findings, and holds those of an interrupted scan.
    """
    from arenite.compression import scan

    base = judge.judge(source.original())

    def loss(weights: Mapping[str, NDArray[Any]]) -> float:
        quality = judge.judge(source.with_weights(weights))
        if base.accuracy is not None and quality.accuracy is not None:
            return base.accuracy - quality.accuracy
        return quality.error

    count = len(source.layers)
    return scan(
        source.layers,
        loss,
        report=lambda done, name: report(f"scanning layer {done + 1} of {count}: {name}"),
        known=() if file is None else file.read(),
        keep=(lambda _found: None) if file is None else file.write,
    )


@dataclass(frozen=True, slots=True)
class Int8:
    """The model that ONNX Runtime's quantiser makes.

    Attributes:
        size: Bytes of its file.
    """

    size: int
    quality: "Quality"


def int8_of(original: "OnnxModel", judge: "Judge") -> Int8:
    """Return the model quantised by ONNX Runtime."""
    from arenite.compression import quantised_by_onnxruntime

    quantised = quantised_by_onnxruntime(original.original(), judge.dataset, judge.shapes)
    return Int8(quantised.ByteSize(), judge.judge(quantised))


def with_mean_bits(
    recipe: "CompressionRecipe", source: "OnnxModel", mean: float
) -> "CompressionRecipe":
    """Return the recipe with bits by layer that lose the least; stated ones are kept."""
    from arenite.compression import LayerRecipe, bits_by_budget

    layers = dict(recipe.layers)
    for name, bits in bits_by_budget({e.name: e.weights for e in source.layers}, mean).items():
        stated = layers.get(name, LayerRecipe())
        if stated.bits is None:
            layers[name] = LayerRecipe(stated.density, bits)
    return replace(recipe, layers=layers)


def with_densities(
    recipe: "CompressionRecipe", scanned: "Sequence[Sensitivity]", limit: float
) -> "CompressionRecipe":
    """Return the recipe with the densities that a scan proposes; stated ones are kept."""
    from arenite.compression import LayerRecipe

    layers = dict(recipe.layers)
    for each in scanned:
        stated = layers.get(each.layer, LayerRecipe())
        if stated.density is None:
            layers[each.layer] = LayerRecipe(each.density_for(limit), stated.bits)
    return replace(recipe, layers=layers)


def judged_stages(
    judge: "Judge | None", original: "OnnxModel", source: "OnnxModel", compressed: "Compressed"
) -> "list[tuple[str, Quality]]":
    """Return how the model does after each stage; nothing if it cannot be told."""
    if judge is None:
        return []
    stages = [("original", original.original())]
    if source is not original:
        stages.append(("narrowed", source.original()))
    if compressed.pruned:
        stages.append(("pruned", source.with_weights(compressed.pruned)))
    stages.append(("shared", source.with_weights(compressed.shared)))
    return [(stage, judge.judge(each)) for stage, each in stages]
