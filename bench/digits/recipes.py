"""The treatment of a network: train it, compress it, train a small dense one to compare."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.compression import huffman_code, pack, share, with_constants
from arenite.compression.retrain import (
    TrainingSchedule,
    falling_densities,
    fine_tune,
    prune_gradually,
    tune_codebooks,
    weights_of,
)
from arenite.pipeline.steps import open_step
from arenite.training.step import TrainingRecipe
from bench.digits.networks import FLAT, NUM_FOLDS, Labelled, Noisy, Split, splits, taught_by


@dataclass(frozen=True, slots=True)
class DigitsRecipe:
    """All that is chosen beforehand for one network.

    Attributes:
        build: Returns the network with weights drawn by a seed.
        student: Returns the small dense one.
        epochs: Of training the dense network.
        weight_decay: In training the dense network.
        densities: Of each layer, the share of its weights that is kept.
        bits: Of each layer's indices; value 0 is one of them.
        bias_bits: Of the indices of biases; None for 16-bit floats.
        rounds: Of pruning.
        round_epochs: Epochs of each.
        pruning_rate: Its learning rate.
        mask_epochs: Of training with the last masks.
        mask_rate: Its learning rate.
        codebook_epochs: Of training the codebooks.
        codebook_rate: Its learning rate.
        noise: Standard deviation of what is added to each pixel where a teacher answers.
        temperature: Of distillation.
        teaching: The teacher's share of the loss.
        seeds: Of the shuffles it is measured on.
        image: Shape of an image.
    """

    build: Callable[[int], onnx.ModelProto]
    student: Callable[[int], onnx.ModelProto]
    epochs: int
    weight_decay: float
    densities: Sequence[float]
    bits: Sequence[int]
    bias_bits: int | None
    rounds: int
    round_epochs: int
    pruning_rate: float
    mask_epochs: int
    mask_rate: float
    codebook_epochs: int
    codebook_rate: float
    noise: float
    temperature: float
    teaching: float
    seeds: Sequence[int]
    image: tuple[int, ...] = FLAT

    @property
    def compression_epochs(self) -> int:
        """All epochs but those of the dense network."""
        return self.rounds * self.round_epochs + self.mask_epochs + self.codebook_epochs

    def shortened(self) -> "DigitsRecipe":
        """Return it with an epoch of each kind, to try whether it runs."""
        return replace(self, epochs=1, rounds=1, round_epochs=1, mask_epochs=1, codebook_epochs=1)


@dataclass(frozen=True, slots=True)
class Compressed:
    """A network after pruning, sharing and training.

    Attributes:
        model: With the weights as they are restored.
        container: Weights and biases, coded.
    """

    model: onnx.ModelProto
    container: bytes


def train_dense(recipe: DigitsRecipe, digits: Labelled, seed: int) -> onnx.ModelProto:
    """Return the network, trained."""
    schedule = TrainingSchedule(recipe.epochs, seed=seed, recipe=_decaying(recipe))
    return fine_tune(recipe.build(seed), {}, digits, schedule, load=open_step).model


def compress(
    recipe: DigitsRecipe, dense: onnx.ModelProto, digits: Labelled, seed: int
) -> Compressed:
    """Return the dense network pruned, its weights shared, taught by what it was."""
    teacher = taught_by(dense, recipe.temperature, recipe.teaching)
    noisy = Noisy(digits, recipe.noise, seed)
    layers = [name for name, each in weights_of(dense).items() if each.ndim > 1]
    pruned = prune_gradually(
        dense,
        falling_densities(dict(zip(layers, recipe.densities, strict=True)), recipe.rounds),
        noisy,
        TrainingSchedule(recipe.round_epochs, recipe.pruning_rate),
        teacher,
        load=open_step,
    )
    schedule = TrainingSchedule(recipe.mask_epochs, recipe.mask_rate)
    masked = fine_tune(pruned.model, pruned.masks, noisy, schedule, teacher, load=open_step).model
    weights = weights_of(masked)
    shared = {
        name: share(weights[name], bits, mask=pruned.masks[name])
        for name, bits in zip(layers, recipe.bits, strict=True)
    }
    if recipe.bias_bits:
        shared |= {
            name: share(bias, recipe.bias_bits)
            for name, bias in weights.items()
            if name not in shared
        }
    schedule = TrainingSchedule(recipe.codebook_epochs, recipe.codebook_rate)
    tuned = tune_codebooks(masked, shared, noisy, schedule, teacher, half=True, load=open_step)
    return Compressed(tuned.model, pack(weights_of(tuned.model)))


def first_fold(recipe: DigitsRecipe) -> tuple[Split, onnx.ModelProto, Compressed]:
    """Return the first fold that the recipe is measured on, and the networks of it."""
    shuffle = recipe.seeds[0]
    split = next(splits(shuffle, recipe.image))
    dense = train_dense(recipe, split.training, shuffle * NUM_FOLDS)
    return split, dense, compress(recipe, dense, split.training, shuffle * NUM_FOLDS)


def train_student(
    recipe: DigitsRecipe, dense: onnx.ModelProto, digits: Labelled, seed: int
) -> tuple[onnx.ModelProto, int]:
    """Return the small dense network, its weights rounded to int8, and its bytes.

    It has the same teacher and as many epochs as training and compressing took together. Its
    bytes are the fewest that we know of: weights as Huffman codes or one a byte, a scale of
    32 bits a layer, biases of 16 bits, and nothing for names and shapes.
    """
    epochs = recipe.epochs + recipe.compression_epochs
    schedule = TrainingSchedule(epochs, recipe=_decaying(recipe))
    teacher = taught_by(dense, recipe.temperature, recipe.teaching)
    noisy = Noisy(digits, recipe.noise, seed)
    student = fine_tune(recipe.student(seed), {}, noisy, schedule, teacher, load=open_step).model
    size = 0
    rounded = {}
    for name, weights in weights_of(student).items():
        if weights.ndim == 1:
            rounded[name] = weights.astype(np.float16).astype(np.float32)
            size += 2 * weights.size
            continue
        scale = np.abs(weights).max() / np.float32(127)
        levels = np.round(weights / scale)
        rounded[name] = levels * scale
        size += 4 + _coded_size(levels.astype(np.int8).view(np.uint8))
    return with_constants(student, rounded), size


def _coded_size(symbols: NDArray[np.uint8]) -> int:
    return min(symbols.size, len(huffman_code(symbols.reshape(-1))))


def _decaying(recipe: DigitsRecipe) -> TrainingRecipe:
    return TrainingRecipe("cross-entropy", "adam", weight_decay=recipe.weight_decay)
