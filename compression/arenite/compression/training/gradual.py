"""Gradual pruning: rounds of pruning a little more and training again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.compression.prune import mask_by_density, mask_by_deviation
from arenite.compression.training.fine_tune import FineTuned, fine_tune
from arenite.compression.training.schedule import Data, Distillation, Schedule

if TYPE_CHECKING:
    from torch import nn

Weights: TypeAlias = NDArray[np.float32]
Masking: TypeAlias = Callable[[Mapping[str, Weights]], dict[str, NDArray[np.bool_]]]
"""Computes the masks of a round from the current weights, by parameter name."""


@dataclass(frozen=True, slots=True)
class PrunedModel:
    """A model after the last round.

    Attributes:
        model: Pruned and trained.
        masks: By parameter name, True where a weight is retained.
        losses: Mean loss per epoch, over all rounds.
    """

    model: "nn.Module"
    masks: dict[str, NDArray[np.bool_]]
    losses: tuple[float, ...]


def falling_densities(densities: Mapping[str, float], num_rounds: int) -> list[Masking]:
    """Return rounds that lead to densities by parameter name, each by the same factor."""

    def masking(part: float) -> Masking:
        return lambda weights: {
            name: mask_by_density(weights[name], density**part)
            for name, density in densities.items()
        }

    return [masking(number / num_rounds) for number in range(1, num_rounds + 1)]


def rising_deviations(multiples: Mapping[str, float], num_rounds: int) -> list[Masking]:
    """Return rounds that lead to thresholds by parameter name, in equal steps.

    Args:
        multiples: Of the standard deviation of a parameter's weights.
        num_rounds: At least 1.
    """

    def masking(part: float) -> Masking:
        return lambda weights: {
            name: mask_by_deviation(weights[name], multiple * part)
            for name, multiple in multiples.items()
        }

    return [masking(number / num_rounds) for number in range(1, num_rounds + 1)]


def prune_gradually(
    model: "nn.Module",
    rounds: Sequence[Masking],
    data: Data,
    schedule: Schedule,
    distillation: Distillation | None = None,
) -> PrunedModel:
    """Prune and train, round by round; pruned weights stay pruned.

    Args:
        model: Not modified.
        rounds: At least one, as `falling_densities` and `rising_deviations` give them.
        data: Inputs and targets.
        schedule: Of each round.
        distillation: The teacher, if there is one.

    Raises:
        MissingDependencyError: PyTorch is absent.
        ValueError: There is no round, or a mask does not fit the model.

    Source: Han, Pool, Tran and Dally, Learning both Weights and Connections, NIPS 2015,
    section 3.4.
    """
    if not rounds:
        raise ValueError("pruning needs at least one round")
    tuned = FineTuned(model, ())
    masks: dict[str, NDArray[np.bool_]] = {}
    losses: tuple[float, ...] = ()
    for masking in rounds:
        weights = {
            name: parameter.detach().cpu().numpy()
            for name, parameter in tuned.model.named_parameters()
        }
        masks = {name: mask & masks.get(name, np.True_) for name, mask in masking(weights).items()}
        tuned = fine_tune(tuned.model, masks, data, schedule, distillation)
        losses += tuned.losses
    return PrunedModel(tuned.model, masks, losses)
