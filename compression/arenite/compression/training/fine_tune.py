"""Retrain the weights that pruning retained; pruned ones stay zero."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.training.loop import train
from arenite.compression.training.pytorch import require_pytorch
from arenite.compression.training.schedule import Data, Distillation, Schedule

if TYPE_CHECKING:
    import torch
    from torch import nn

Masks: TypeAlias = Mapping[str, NDArray[np.bool_]]
"""By parameter name, True where a weight is retained; parameters without a mask are whole."""


@dataclass(frozen=True, slots=True)
class FineTuned:
    """A model after training.

    Attributes:
        model: A trained copy.
        losses: Mean loss per epoch.
    """

    model: "nn.Module"
    losses: tuple[float, ...]


def fine_tune(
    model: "nn.Module",
    masks: Masks,
    data: Data,
    schedule: Schedule,
    distillation: Distillation | None = None,
) -> FineTuned:
    """Prune by masks and train the remaining weights.

    Raises:
        MissingDependencyError: PyTorch is absent.
        ValueError: A mask is of no parameter, or not of its shape.

    Source: Han, Pool, Tran and Dally, Learning both Weights and Connections, NIPS 2015,
    section 3.
    """
    require_pytorch()
    import torch

    tuned = copy.deepcopy(model)
    kept = _factors(tuned, masks)

    def prune() -> None:
        with torch.no_grad():
            for parameter, factor in kept:
                parameter.mul_(factor)

    prune()
    parameters = [each for each in tuned.parameters() if each.requires_grad]
    return FineTuned(
        tuned, train(tuned, parameters, data, schedule, distillation, after_step=prune)
    )


def _factors(model: "nn.Module", masks: Masks) -> "list[tuple[nn.Parameter, torch.Tensor]]":
    import torch

    parameters = dict(model.named_parameters())
    found = []
    for name, mask in masks.items():
        if name not in parameters:
            raise ValueError(f"a mask is of {name!r}, which the model does not have")
        parameter = parameters[name]
        if mask.shape != tuple(parameter.shape):
            raise ValueError(
                f"the mask of {name!r} has shape {mask.shape}, not {tuple(parameter.shape)}"
            )
        found.append((parameter, torch.from_numpy(mask).to(parameter)))
    return found
