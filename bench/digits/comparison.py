"""Compressed networks beside their dense selves and small dense ones, over folds of the digits.

The recipes were chosen on shuffles of other seeds, 100 and up, before the shuffles that they name
were used for the first time. They are the first for lenet-5 and the second for lenet-300-100: its
first, measured on the shuffles 0 to 2, lost 0.17 points, 0.33 at most, at 36.5 times smaller,
which was too much, so that its successor is measured on others.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from arenite.compression import pack, unpack, with_constants
from arenite.planner.files import write_atomically
from bench.digits.networks import NUM_FOLDS, PLANE, lenet, num_bytes, num_wrong, perceptron, splits
from bench.digits.recipes import DigitsRecipe, compress, first_fold, train_dense, train_student

LEAST_RATIO, MOST_LOSS = 35.0, 0.3
RECIPES = {
    "lenet-300-100": DigitsRecipe(
        build=perceptron,
        student=partial(perceptron, first=52, second=26),
        epochs=60, weight_decay=0.01,
        densities=(0.105, 0.08, 0.35), bits=(4, 4, 4), bias_bits=5,
        rounds=6, round_epochs=20, pruning_rate=3e-3,
        mask_epochs=400, mask_rate=3e-3,
        codebook_epochs=20, codebook_rate=5e-4,
        noise=0.2, temperature=4.0, teaching=0.9,
        seeds=(10, 11, 12),
    ),
    "lenet-5": DigitsRecipe(
        build=lenet,
        student=partial(lenet, first=12, second=22, hidden=104),
        epochs=30, weight_decay=0.01,
        densities=(0.7, 0.22, 0.09, 0.25), bits=(4, 4, 3, 4), bias_bits=None,
        rounds=4, round_epochs=8, pruning_rate=2e-3,
        mask_epochs=30, mask_rate=2e-3,
        codebook_epochs=10, codebook_rate=5e-4,
        noise=0.2, temperature=2.0, teaching=0.9,
        seeds=(0, 1, 2), image=PLANE,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fold:
    """One network on one fold; errors are shares of the held-out digits, in per cent.

    Attributes:
        dense: Error of the dense network.
        compressed: Error of the compressed one.
        student: Error of the small dense one.
        dense_bytes: Weights and biases as 32-bit floats.
        compressed_bytes: The whole container.
        student_bytes: Of the small dense network.
    """

    dense: float
    compressed: float
    student: float
    dense_bytes: int
    compressed_bytes: int
    student_bytes: int


@dataclass(frozen=True, slots=True)
class Compared:
    """One variant of one network, over the folds.

    Attributes:
        network: Its name.
        variant: `compressed` or `small dense int8`.
        dense_error: Mean, in per cent.
        error: The same of the variant.
        difference: Mean of the paired differences, in points; below 0 the variant is better.
        margin: Half the 95 % interval of it, by the paired t-test.
        ratio: Bytes of the dense network to the mean of those of the variant.
        least_ratio: The same of the fold where it is least.
        size: Mean bytes of the variant.
        num_folds: How many.
    """

    network: str
    variant: str
    dense_error: float
    error: float
    difference: float
    margin: float
    ratio: float
    least_ratio: float
    size: float
    num_folds: int

    @property
    def holds(self) -> bool:
        """Whether it is as small, and its loss as surely small, as it must be."""
        return self.ratio >= LEAST_RATIO and self.difference + self.margin < MOST_LOSS


def folds(recipe: DigitsRecipe) -> Iterator[Fold]:
    """Yield what is measured on each fold of each shuffle."""
    for seed in recipe.seeds:
        for number, split in enumerate(splits(seed, recipe.image)):
            drawn = seed * NUM_FOLDS + number
            dense = train_dense(recipe, split.training, drawn)
            compressed = compress(recipe, dense, split.training, drawn)
            student, student_bytes = train_student(recipe, dense, split.training, drawn)
            count = len(split.held_out["labels"])
            dense_error, compressed_error, student_error = (
                100 * num_wrong(model, split.held_out) / count
                for model in (dense, compressed.model, student)
            )
            yield Fold(
                dense_error, compressed_error, student_error,
                num_bytes(dense), len(compressed.container), student_bytes,
            )  # fmt: skip


def compared(network: str, measured: Sequence[Fold]) -> list[Compared]:
    """Return both variants of a network."""
    found = []
    dense = np.array([each.dense for each in measured])
    total = measured[0].dense_bytes
    for variant, errors, sizes in (
        ("compressed", [x.compressed for x in measured], [x.compressed_bytes for x in measured]),
        ("small dense int8", [x.student for x in measured], [x.student_bytes for x in measured]),
    ):
        differences = np.array(errors) - dense
        count = len(measured)
        spread = float(differences.std(ddof=1)) / math.sqrt(count)
        margin = float(student_t.ppf(0.975, count - 1)) * spread
        found.append(Compared(
            network, variant, float(dense.mean()), float(np.mean(errors)),
            float(differences.mean()), margin, total / float(np.mean(sizes)),
            total / max(sizes), float(np.mean(sizes)), count,
        ))  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, its bias aside.

    Attributes:
        name: Of the layer.
        num_weights: How many it has.
        kept: Share of them that are not zero.
        bits: Of an index without coding, that of zero included where there are zeros.
        entropy_bits: Of the values of those that are kept.
        size: Bytes in the container.
    """

    name: str
    num_weights: int
    kept: float
    bits: int
    entropy_bits: float
    size: int

    @property
    def rate(self) -> float:
        """Bytes in the container to those as 32-bit floats."""
        return self.size / (4 * self.num_weights)


def layers_of(weights: Mapping[str, NDArray[np.float32]]) -> list[Layer]:
    """Return the layers of compressed weights; biases count as layers."""
    return [_layer(name, each) for name, each in weights.items()]


def _layer(name: str, weights: NDArray[np.float32]) -> Layer:
    _, counts = np.unique(weights[weights != 0], return_counts=True)
    shares = counts / counts.sum()
    return Layer(
        name,
        weights.size,
        float(np.count_nonzero(weights) / weights.size),
        max(1, (np.unique(weights).size - 1).bit_length()),
        float(-(shares * np.log2(shares)).sum()),
        len(pack({name: weights})) - len(pack({})),
    )


def write_assets(folder: Path, recipes: Mapping[str, DigitsRecipe]) -> None:
    """Write three files for each network, and `digits.json` with their sizes and errors.

    They are those of the first fold that each is measured on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = {}
    for network, recipe in recipes.items():
        split, dense, compressed = first_fold(recipe)
        name = f"digits-{network}"
        restored = with_constants(dense, unpack(compressed.container))
        for file, model in ((f"{name}.onnx", dense), (f"{name}-compressed.onnx", restored)):
            write_atomically(folder / file, model.SerializeToString())
        write_atomically(folder / f"{name}.weights", compressed.container)
        facts[name] = {
            "seed": recipe.seeds[0],
            "num_held_out": len(split.held_out["labels"]),
            "num_wrong_dense": num_wrong(dense, split.held_out),
            "num_wrong_compressed": num_wrong(compressed.model, split.held_out),
            "dense_bytes": num_bytes(dense),
            "container_bytes": len(compressed.container),
        }
    write_atomically(folder / "digits.json", (json.dumps(facts, indent=2) + "\n").encode())
