"""1,797 handwritten digits of 8 x 8 pixels, and how they are split."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

Labelled: TypeAlias = tuple[torch.Tensor, torch.Tensor]
NUM_FOLDS = 10
BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class Split:
    """Digits to train on and digits held out.

    Attributes:
        training: Images, (N, 64) float32 from 0 to 1, and labels.
        held_out: The same.
    """

    training: Labelled
    held_out: Labelled


class Noisy:
    """Batches of shuffled images with fresh noise: what a teacher is asked besides the digits."""

    def __init__(self, digits: Labelled, noise: float, seed: int) -> None:
        self._images, self._labels = digits
        self._noise = noise
        self._generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[Labelled]:
        """Yield the batches of an epoch."""
        order = torch.randperm(len(self._images), generator=self._generator)
        for chosen in order.split(BATCH_SIZE):
            images = self._images[chosen]
            noise = torch.randn(images.shape, generator=self._generator)
            yield images + self._noise * noise, self._labels[chosen]


def splits(seed: int) -> Iterator[Split]:
    """Yield the folds of a shuffle, each class in proportion; each digit is held out once."""
    pixels, labels = load_digits(return_X_y=True)
    images = torch.from_numpy(pixels / 16).float()
    targets = torch.from_numpy(labels).long()
    folds = StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=seed)
    for training, held_out in folds.split(pixels, labels):
        yield Split((images[training], targets[training]), (images[held_out], targets[held_out]))


def num_wrong(model: torch.nn.Module, digits: Labelled) -> int:
    """Return how many digits a model names wrongly."""
    images, labels = digits
    model.eval()
    with torch.no_grad():
        return int((model(images).argmax(1) != labels).sum())
