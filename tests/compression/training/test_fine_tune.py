from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")

from arenite.compression.training import Distillation, Schedule, fine_tune  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from arenite.compression.training.schedule import Optimiser

    Data = tuple[torch.Tensor, torch.Tensor]

WEIGHTS = ("0.weight", "3.weight", "5.weight")


def masks_of(network: "nn.Module") -> "dict[str, NDArray[np.bool_]]":
    generator = np.random.default_rng(3)
    parameters = dict(network.named_parameters())
    return {name: generator.random(parameters[name].shape) < 0.5 for name in WEIGHTS}


def state(network: "nn.Module") -> dict[str, bytes]:
    return {name: each.numpy().tobytes() for name, each in network.state_dict().items()}


def sgd_with_momentum(
    parameters: "Sequence[torch.Tensor]", rate: float
) -> "torch.optim.Optimizer":
    return torch.optim.SGD(parameters, lr=5 * rate, momentum=0.9, weight_decay=1e-4)


@pytest.mark.parametrize("optimiser", [Schedule(1).optimiser, sgd_with_momentum])
def test_pruned_weights_stay_zero_and_the_others_learn(
    network: "nn.Module", images: "Data", optimiser: "Optimiser"
) -> None:
    masks = masks_of(network)
    tuned = fine_tune(network, masks, images, Schedule(10, 1e-2, 16, optimiser=optimiser))
    for name, parameter in tuned.model.named_parameters():
        moved = parameter.detach() != dict(network.named_parameters())[name]
        if name in masks:
            assert not parameter.detach().numpy()[~masks[name]].any()
            assert moved.numpy()[masks[name]].any()
    assert tuned.losses[-1] < 0.9 * tuned.losses[0]


def test_the_given_model_is_left_as_it_is(network: "nn.Module", images: "Data") -> None:
    before = state(network)
    fine_tune(network.eval(), masks_of(network), images, Schedule(1))
    assert state(network) == before
    assert not network.training


def test_a_seed_gives_the_same_weights_and_another_does_not(
    network: "nn.Module", images: "Data"
) -> None:
    def tuned(seed: int) -> dict[str, bytes]:
        schedule = Schedule(2, 1e-2, 16, seed=seed)
        return state(fine_tune(network, masks_of(network), images, schedule).model)

    assert tuned(1) == tuned(1)
    assert tuned(1) != tuned(2)


def test_the_callers_random_numbers_are_not_disturbed(
    network: "nn.Module", images: "Data"
) -> None:
    before = torch.random.get_rng_state()
    fine_tune(network, {}, images, Schedule(1, seed=5))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_distillation_approaches_the_teacher(network: "nn.Module", images: "Data") -> None:
    teacher = fine_tune(network, {}, images, Schedule(20, 1e-2, 16)).model
    distillation = Distillation(teacher, temperature=2.0, weight=1.0)
    tuned = fine_tune(network, masks_of(network), images, Schedule(20, 1e-2, 16), distillation)
    assert tuned.losses[-1] < 0.5 * tuned.losses[0]
    with torch.no_grad():
        taught = teacher(images[0]).argmax(1)
        agreement = (tuned.model(images[0]).argmax(1) == taught).float().mean()
    assert agreement > 0.8


def test_a_network_that_equals_its_teacher_has_no_divergence(
    network: "nn.Module", images: "Data"
) -> None:
    distillation = Distillation(network, weight=1.0)
    with torch.no_grad():
        outputs = network(images[0])
    assert distillation.loss(outputs, outputs).item() == pytest.approx(0, abs=1e-6)
    assert distillation.loss(outputs + torch.eye(96, 3), outputs).item() > 1e-4


def test_batches_of_a_loader_train_like_tensors(network: "nn.Module", images: "Data") -> None:
    dataset = torch.utils.data.TensorDataset(*images)
    loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
    tuned = [fine_tune(network, masks_of(network), loader, Schedule(6, 1e-2)) for _ in range(2)]
    assert state(tuned[0].model) == state(tuned[1].model)
    assert tuned[0].losses[-1] < tuned[0].losses[0]


def test_a_teacher_with_dropout_answers_without_it_and_is_left_as_it_was(
    network: "nn.Module", images: "Data"
) -> None:
    teacher = torch.nn.Sequential(network, torch.nn.Dropout(0.9)).train()
    schedule = Schedule(1, 1e-9, 96)
    (loss,) = fine_tune(network, {}, images, schedule, Distillation(teacher, 1.0, 1.0)).losses
    assert loss == pytest.approx(0, abs=1e-6)
    assert teacher.training


def test_masks_that_do_not_fit_are_refused(network: "nn.Module", images: "Data") -> None:
    with pytest.raises(ValueError, match="shape"):
        fine_tune(network, {"5.weight": np.ones((3, 7), bool)}, images, Schedule(1))
    with pytest.raises(ValueError, match="does not have"):
        fine_tune(network, {"9.weight": np.ones((3, 8), bool)}, images, Schedule(1))


def test_no_data_is_refused(network: "nn.Module") -> None:
    with pytest.raises(ValueError, match="no data"):
        fine_tune(network, {}, [], Schedule(1))


def test_schedules_and_distillations_check_themselves(network: "nn.Module") -> None:
    with pytest.raises(ValueError, match="above zero"):
        Schedule(0)
    with pytest.raises(ValueError, match="above zero"):
        Schedule(1, learning_rate=0.0)
    with pytest.raises(ValueError, match="temperature"):
        Distillation(network, temperature=0.0)
    with pytest.raises(ValueError, match="weight"):
        Distillation(network, weight=1.5)
