from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")

from arenite.compression.training import (  # noqa: E402
    Distillation,
    Schedule,
    cluster_gradients,
    fine_tune,
    tune_codebooks,
)

if TYPE_CHECKING:
    from torch import nn

    Data = tuple[torch.Tensor, torch.Tensor]

WEIGHTS = ("0.weight", "3.weight", "5.weight")


@dataclass(frozen=True)
class Rounded:
    """Weights that share eight values, the first of them 0."""

    codebook: NDArray[np.float32]
    indices: NDArray[np.uint8]


def shared_by(network: "nn.Module") -> dict[str, Rounded]:
    shared = {}
    for name, parameter in network.named_parameters():
        if name in WEIGHTS:
            weights = parameter.detach().numpy()
            codebook = np.linspace(-1, 1, 8, dtype=np.float32) * np.abs(weights).max()
            codebook[0] = 0.0
            nearest = np.abs(weights[..., None] - codebook).argmin(-1)
            shared[name] = Rounded(codebook, nearest.astype(np.uint8))
    return shared


def test_gradients_of_shared_values_equal_finite_differences(images: "Data") -> None:
    network = torch.nn.Linear(16, 3).double()
    inputs, targets = images[0].flatten(1).double(), images[1]
    indices = torch.arange(48).reshape(3, 16) % 5
    codebook = torch.linspace(-0.3, 0.4, 5, dtype=torch.float64)

    def loss(values: "torch.Tensor") -> "torch.Tensor":
        network.weight.data = values[indices]
        return torch.nn.functional.cross_entropy(network(inputs), targets)

    loss(codebook).backward()
    summed = cluster_gradients(network.weight.grad, indices, 5)
    step = 1e-5
    for number in range(5):
        nudge = torch.zeros(5, dtype=torch.float64)
        nudge[number] = step
        with torch.no_grad():
            slope = (loss(codebook + nudge) - loss(codebook - nudge)) / (2 * step)
        assert summed[number].item() == pytest.approx(slope.item(), rel=1e-6)


def test_a_value_that_no_weight_has_has_no_gradient() -> None:
    summed = cluster_gradients(torch.ones(2, 2), torch.tensor([[0, 2], [2, 2]]), 4)
    assert summed.tolist() == [1, 0, 3, 0]


def test_weights_keep_their_cluster_and_zero_stays_zero(
    network: "nn.Module", images: "Data"
) -> None:
    shared = shared_by(network)
    tuned = tune_codebooks(network, shared, images, Schedule(6, 1e-2, 16))
    parameters = dict(tuned.model.named_parameters())
    for name, before in shared.items():
        codebook = tuned.codebooks[name]
        assert codebook.shape == before.codebook.shape
        assert codebook[0] == 0
        assert not np.array_equal(codebook, before.codebook)
        restored = parameters[name].detach().numpy()
        assert np.array_equal(restored, codebook[before.indices])
    assert tuned.losses[-1] < tuned.losses[0]


def test_half_rounds_codebooks_and_biases(network: "nn.Module", images: "Data") -> None:
    shared = shared_by(network)
    tuned = tune_codebooks(network, shared, images, Schedule(2, 1e-2, 16), half=True)
    for name, parameter in tuned.model.named_parameters():
        assert torch.equal(parameter, parameter.half().float())
        if name in shared:
            restored = tuned.codebooks[name][shared[name].indices]
            assert np.array_equal(restored, parameter.detach().numpy())


def test_distillation_approaches_the_teacher(network: "nn.Module", images: "Data") -> None:
    schedule = Schedule(15, 1e-2, 16)
    teacher = fine_tune(network, {}, images, schedule).model
    distillation = Distillation(teacher, temperature=2.0, weight=1.0)
    tuned = tune_codebooks(teacher, shared_by(teacher), images, schedule, distillation)
    assert tuned.losses[-1] < 0.5 * tuned.losses[0]


def test_a_seed_gives_the_same_codebooks(network: "nn.Module", images: "Data") -> None:
    def tuned(seed: int) -> list[bytes]:
        schedule = Schedule(2, 1e-2, 16, seed=seed)
        found = tune_codebooks(network, shared_by(network), images, schedule).codebooks
        return [each.tobytes() for each in found.values()]

    assert tuned(1) == tuned(1)
    assert tuned(1) != tuned(2)


@pytest.mark.parametrize("name", ["5.weight", "9.weight"])
def test_shared_weights_that_do_not_fit_are_refused(
    network: "nn.Module", images: "Data", name: str
) -> None:
    wrong = {name: Rounded(np.ones(1, np.float32), np.zeros((2, 8), np.uint8))}
    with pytest.raises(ValueError, match=name):
        tune_codebooks(network, wrong, images, Schedule(1))
