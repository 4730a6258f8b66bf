"""All optimisers by name."""

from collections.abc import Callable, Mapping
from typing import Final

from arenite.training.optimisers.adam import Adam
from arenite.training.optimisers.momentum import Momentum
from arenite.training.optimisers.optimiser import Optimiser
from arenite.training.optimisers.sgd import Sgd

OPTIMISERS: Final[Mapping[str, Callable[[], Optimiser]]] = {
    "sgd": Sgd,
    "momentum": Momentum,
    "adam": Adam,
}
