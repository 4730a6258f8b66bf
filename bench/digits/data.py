"""1,797 handwritten digits of 8 x 8 pixels, and how they are split."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from arenite.compression import Distillation
from arenite.training import DistillationLoss
from digits.networks import FLAT, scores_of

Labelled: TypeAlias = Mapping[str, NDArray[Any]]
"""`image`, float32 from 0 to 1, and `labels`."""

NUM_FOLDS = 10
BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class Split:
    """Digits to train on and digits held out."""

    training: Labelled
    held_out: Labelled


class Noisy:
    """Batches of shuffled images with fresh noise: the digits that a teacher answers for."""

    def __init__(self, digits: Labelled, noise: float, seed: int) -> None:
        self._digits = digits
        self._noise = noise
        self._random = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[Labelled]:
        """Yield the batches of an epoch; the last is filled up with the first images."""
        order = self._random.permutation(len(self._digits["labels"]))
        for chosen in np.resize(order, (-(-len(order) // BATCH_SIZE), BATCH_SIZE)):
            image = self._digits["image"][chosen]
            noise = self._random.standard_normal(image.shape, np.float32)
            yield {"image": image + self._noise * noise, "labels": self._digits["labels"][chosen]}


def splits(seed: int, shape: tuple[int, ...] = FLAT) -> Iterator[Split]:
    """Yield the folds of a shuffle, each class in proportion; each digit is held out once.

    Args:
        seed: Seed of the shuffle.
        shape: Shape of an image.
    """
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, *shape)
    digits = {"image": images, "labels": labels.astype(np.int64)}
    folds = StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=seed)
    for chosen in folds.split(pixels, labels):
        yield Split(*({name: each[part] for name, each in digits.items()} for part in chosen))


def num_wrong(model: onnx.ModelProto, digits: Labelled) -> int:
    """Return the number of digits that a model classifies wrongly."""
    found = scores_of(model)(digits).argmax(1)
    return int((found != digits["labels"]).sum())


def taught_by(dense: onnx.ModelProto, temperature: float, weight: float) -> Distillation:
    """Return the distillation from a dense network."""
    return Distillation(scores_of(dense), DistillationLoss(temperature, weight))
