"""All losses by name."""

from collections.abc import Mapping
from typing import Final

from arenite.training.losses.bce import bce
from arenite.training.losses.cross_entropy import cross_entropy
from arenite.training.losses.loss import Loss
from arenite.training.losses.mse import mse

LOSSES: Final[Mapping[str, Loss]] = {"cross-entropy": cross_entropy, "bce": bce, "mse": mse}
