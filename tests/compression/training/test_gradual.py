from typing import TYPE_CHECKING

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")

from arenite.compression.training import (  # noqa: E402
    Schedule,
    falling_densities,
    prune_gradually,
    rising_deviations,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import nn

    from arenite.compression.training.gradual import Masking

    Data = tuple[torch.Tensor, torch.Tensor]

DENSITIES = {"0.weight": 0.5, "3.weight": 0.25}


def recorded(rounds: "list[Masking]", seen: "list[dict[str, float]]") -> "list[Masking]":
    def recording(masking: "Masking") -> "Masking":
        def record(
            weights: "Mapping[str, NDArray[np.float32]]",
        ) -> "dict[str, NDArray[np.bool_]]":
            masks = masking(weights)
            seen.append({name: float(mask.mean()) for name, mask in masks.items()})
            return masks

        return record

    return [recording(each) for each in rounds]


def test_densities_fall_round_by_round_to_what_was_asked(
    network: "nn.Module", images: "Data"
) -> None:
    seen: list[dict[str, float]] = []
    rounds = recorded(falling_densities(DENSITIES, 3), seen)
    pruned = prune_gradually(network, rounds, images, Schedule(2, 1e-2, 16))
    kept = [each["3.weight"] for each in seen]
    assert kept == pytest.approx([0.25 ** (1 / 3), 0.25 ** (2 / 3), 0.25], abs=0.01)
    for name, density in DENSITIES.items():
        weights = dict(pruned.model.named_parameters())[name].detach().numpy()
        assert pruned.masks[name].mean() == pytest.approx(density, abs=0.03)
        assert not weights[~pruned.masks[name]].any()
    assert len(pruned.losses) == 6


def test_thresholds_rise_and_prune_more_each_round(network: "nn.Module", images: "Data") -> None:
    seen: list[dict[str, float]] = []
    rounds = recorded(rising_deviations({"3.weight": 1.0}, 3), seen)
    prune_gradually(network, rounds, images, Schedule(1, 1e-3, 16))
    kept = [each["3.weight"] for each in seen]
    assert 1 > kept[0] > kept[1] > kept[2] > 0


def test_what_a_round_pruned_no_later_round_brings_back(
    network: "nn.Module", images: "Data"
) -> None:
    def only(row: int) -> "Masking":
        mask = np.ones((3, 8), bool)
        mask[row] = False
        return lambda weights: {"5.weight": mask}

    pruned = prune_gradually(network, [only(0), only(1)], images, Schedule(1))
    assert pruned.masks["5.weight"].any(axis=1).tolist() == [False, False, True]


def test_no_round_is_refused(network: "nn.Module", images: "Data") -> None:
    with pytest.raises(ValueError, match="round"):
        prune_gradually(network, [], images, Schedule(1))
