"""Retraining with masks, codebooks and a teacher; PyTorch, where it is installed, as an oracle."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import pytest
from numpy.typing import NDArray

from arenite.compression.retrain import (
    Distillation,
    TrainingSchedule,
    falling_densities,
    fine_tune,
    prune_gradually,
    rising_deviations,
    tune_codebooks,
    weights_of,
)
from arenite.training import (
    DistillationLoss,
    MaskError,
    NotDifferentiableError,
    StepInputError,
    TrainingRecipe,
)
from support.tiny_onnx import parse

NETWORK = """(float[1,1,4,4] x) => (y)
<float[8,1,3,3] w0, float[8] b0, float[8,32] w1, float[8] b1, float[3,8] w2, float[3] b2>
{ a = Conv(x, w0, b0) b = Relu(a) c = Flatten(b) d = Gemm<transB=1>(c, w1, b1) e = Relu(d)
  y = Gemm<transB=1>(e, w2, b2) }"""
WEIGHTS = ("w0", "w1", "w2")
SGD = TrainingRecipe("cross-entropy", "momentum", weight_decay=1e-4)
Arrays = dict[str, NDArray[Any]]


def seeded(text: str, seed: int = 2) -> onnx.ModelProto:
    """Return a model with random weights."""
    model = parse(text)
    random = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        bound = 1 / np.sqrt(np.prod(tensor.dims[1:]) or 1)
        values = random.uniform(-bound, bound, tuple(tensor.dims)).astype(np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    return model


@pytest.fixture
def network() -> onnx.ModelProto:
    """A convolution and two fully connected layers."""
    return seeded(NETWORK)


@pytest.fixture
def images() -> Arrays:
    """96 images of 4 x 4 in three classes: which third of the pixels is the brightest."""
    random = np.random.default_rng(1)
    pixels, labels = random.random((96, 16), np.float32) - np.float32(0.5), np.arange(96) % 3
    for image, label in zip(pixels, labels, strict=True):
        image[5 * label : 5 * label + 5] += 1
    return {"x": pixels.reshape(96, 1, 4, 4), "labels": labels}


def scores(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> NDArray[Any]:
    free = copy.deepcopy(model)
    free.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    session = onnxruntime.InferenceSession(free.SerializeToString())
    found: NDArray[Any] = session.run(None, {"x": feeds["x"]})[0]
    return found


def masks_of(network: onnx.ModelProto) -> dict[str, NDArray[np.bool_]]:
    random = np.random.default_rng(3)
    weights = weights_of(network)
    return {name: random.random(weights[name].shape) < 0.5 for name in WEIGHTS}


@dataclass(frozen=True)
class Rounded:
    """Weights that share eight values, the first of them 0."""

    codebook: NDArray[np.float32]
    indices: NDArray[np.uint8]


def shared_by(network: onnx.ModelProto) -> dict[str, Rounded]:
    shared = {}
    for name in WEIGHTS:
        weights = weights_of(network)[name]
        codebook = np.linspace(-1, 1, 8, dtype=np.float32) * np.abs(weights).max()
        codebook[0] = 0.0
        nearest = np.abs(weights[..., None] - codebook).argmin(-1)
        shared[name] = Rounded(codebook, nearest.astype(np.uint8))
    return shared


@pytest.mark.parametrize("recipe", [TrainingSchedule(1).recipe, SGD])
def test_pruned_weights_stay_zero_and_the_others_learn(network, images, recipe):
    masks = masks_of(network)
    rate = 5e-2 if recipe is SGD else 1e-2
    tuned = fine_tune(network, masks, images, TrainingSchedule(10, rate, 16, recipe=recipe))
    before, after = weights_of(network), weights_of(tuned.model)
    for name, mask in masks.items():
        assert not after[name][~mask].any()
        assert (after[name] != before[name])[mask].any()
    assert not np.array_equal(after["b0"], before["b0"])
    assert tuned.losses[-1] < 0.9 * tuned.losses[0]


def test_the_given_model_is_left_as_it_is(network, images):
    before = network.SerializeToString()
    fine_tune(network, masks_of(network), images, TrainingSchedule(1))
    tune_codebooks(network, shared_by(network), images, TrainingSchedule(1))
    assert network.SerializeToString() == before


def test_a_seed_gives_the_same_weights_and_another_does_not(network, images):
    def tuned(seed):
        schedule = TrainingSchedule(2, 1e-2, 16, seed)
        pruned = fine_tune(network, masks_of(network), images, schedule).model
        return tune_codebooks(pruned, shared_by(pruned), images, schedule).model

    assert tuned(1) == tuned(1)
    assert tuned(1) != tuned(2)


def test_distillation_approaches_the_teacher(network, images):
    teacher = fine_tune(network, {}, images, TrainingSchedule(20, 1e-2, 16)).model
    loss = DistillationLoss(temperature=2.0, weight=1.0)
    distillation = Distillation(lambda feeds: scores(teacher, feeds), loss)
    tuned = fine_tune(
        network, masks_of(network), images, TrainingSchedule(20, 1e-2, 16), distillation
    )
    assert tuned.losses[-1] < 0.5 * tuned.losses[0]
    agreement = scores(tuned.model, images).argmax(1) == scores(teacher, images).argmax(1)
    assert agreement.mean() > 0.8
    books = tune_codebooks(
        teacher, shared_by(teacher), images, TrainingSchedule(15, 1e-2, 16), distillation
    )
    assert books.losses[-1] < 0.5 * books.losses[0]


def test_batches_of_an_iterable_train_like_arrays(network, images):
    class Batches:
        def __iter__(self):
            for start in range(0, 96, 16):
                yield {name: each[start : start + 16] for name, each in images.items()}

    tuned = fine_tune(network, masks_of(network), Batches(), TrainingSchedule(6, 1e-2, 16))
    assert tuned.losses[-1] < tuned.losses[0]


def test_a_last_batch_is_filled_up_and_every_sample_is_seen(network):
    x = np.zeros((10, 1, 4, 4), np.float32)
    x[:, 0, 0, 0] = np.arange(10)
    seen = []

    def teacher(feeds):
        seen.append(feeds["x"][:, 0, 0, 0].tolist())
        return np.zeros((4, 3), np.float32)

    data = {"x": x, "labels": np.zeros(10, np.int64)}
    fine_tune(network, {}, data, TrainingSchedule(2, 1e-9, 4), Distillation(teacher))
    assert [len(each) for each in seen] == [4] * 6
    for epoch in (seen[:3], seen[3:]):
        assert set(np.concatenate(epoch)) == set(range(10))
    assert seen[:3] != seen[3:]


def test_running_statistics_are_learned():
    model = seeded("""(float[1,2,4,4] x) => (y) <float[3,2,3,3] w, float[3] s, float[3] t,
    float[3] m, float[3] v, float[2,12] k> { a = Conv(x, w) b = BatchNormalization(a, s, t, m, v)
    c = Flatten(b) y = Gemm<transB=1>(c, k) }""")
    for tensor in model.graph.initializer:
        if tensor.name == "v":
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ones(3, np.float32), "v"))
    random = np.random.default_rng(3)
    data = {"x": random.standard_normal((8, 2, 4, 4), np.float32), "labels": np.arange(8) % 2}
    after = weights_of(fine_tune(model, {}, data, TrainingSchedule(1, 1e-9, 8)).model)
    wide = torch_free_convolution(data["x"], weights_of(model)["w"])
    assert after["m"] == pytest.approx(
        0.9 * weights_of(model)["m"] + 0.1 * wide.mean((0, 2, 3)), abs=1e-5
    )
    still = replace(TrainingSchedule(1, 1e-9, 8).recipe, batch_statistics=False)
    kept = weights_of(fine_tune(model, {}, data, TrainingSchedule(1, 1e-9, 8, recipe=still)).model)
    assert np.array_equal(kept["m"], weights_of(model)["m"])


def torch_free_convolution(x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,mcij->nmhw", windows, w)


def test_densities_fall_round_by_round_to_the_stated_ones(network, images):
    seen = []
    densities = {"w0": 0.5, "w1": 0.25}
    rounds = [
        lambda weights, masking=masking: seen.append(masking(weights)) or seen[-1]
        for masking in falling_densities(densities, 3)
    ]
    pruned = prune_gradually(network, rounds, images, TrainingSchedule(2, 1e-2, 16))
    kept = [each["w1"].mean() for each in seen]
    assert kept == pytest.approx([0.25 ** (1 / 3), 0.25 ** (2 / 3), 0.25], abs=0.01)
    for name, density in densities.items():
        assert pruned.masks[name].mean() == pytest.approx(density, abs=0.03)
        assert not weights_of(pruned.model)[name][~pruned.masks[name]].any()
    assert len(pruned.losses) == 6


def test_thresholds_rise_and_prune_more_each_round(network):
    weights = weights_of(network)
    kept = [each(weights)["w1"].mean() for each in rising_deviations({"w1": 1.0}, 3)]
    assert 1 > kept[0] > kept[1] > kept[2] > 0


def test_what_a_round_pruned_no_later_round_brings_back(network, images):
    def only(row):
        mask = np.ones((3, 8), bool)
        mask[row] = False
        return lambda _weights: {"w2": mask}

    pruned = prune_gradually(network, [only(0), only(1)], images, TrainingSchedule(1))
    assert pruned.masks["w2"].any(axis=1).tolist() == [False, False, True]


@pytest.mark.parametrize("half", [False, True])
def test_weights_keep_their_cluster_and_zero_stays_zero(network, images, half):
    shared = shared_by(network)
    tuned = tune_codebooks(network, shared, images, TrainingSchedule(6, 1e-2, 16), half=half)
    after = weights_of(tuned.model)
    for name, before in shared.items():
        codebook = tuned.codebooks[name]
        assert codebook.shape == before.codebook.shape
        assert codebook[0] == 0
        assert not np.array_equal(codebook, before.codebook)
        assert np.array_equal(after[name], codebook[before.indices])
    assert not np.array_equal(after["b1"], weights_of(network)["b1"])
    assert tuned.losses[-1] < tuned.losses[0]
    if half:
        assert all(np.array_equal(each, np.float16(each)) for each in after.values())


@pytest.mark.parametrize("name", ["w2", "w9"])
def test_what_fits_no_weights_is_refused(network, images, name):
    wrong = {name: Rounded(np.ones(1, np.float32), np.zeros((2, 8), np.uint8))}
    with pytest.raises(MaskError, match=name):
        tune_codebooks(network, wrong, images, TrainingSchedule(1))
    with pytest.raises(MaskError, match=name):
        fine_tune(network, {name: np.ones((2, 8), bool)}, images, TrainingSchedule(1))


def test_data_that_do_not_fit_are_refused(network, images):
    with pytest.raises(StepInputError, match="'labels' of the step is missing"):
        fine_tune(network, {}, {"x": images["x"]}, TrainingSchedule(1))
    with pytest.raises(StepInputError, match=r"'x' has shape \[64, 16\]"):
        fine_tune(network, {}, images | {"x": images["x"].reshape(96, 16)}, TrainingSchedule(1))
    for nothing in ({}, []):
        with pytest.raises(ValueError, match="no data"):
            fine_tune(network, {}, nothing, TrainingSchedule(1))
    with pytest.raises(ValueError, match="round"):
        prune_gradually(network, [], images, TrainingSchedule(1))
    with pytest.raises(ValueError, match="above zero"):
        TrainingSchedule(0)
    with pytest.raises(ValueError, match="above zero"):
        TrainingSchedule(1, learning_rate=0.0)


def test_an_operator_that_cannot_be_trained_is_named(images):
    model = seeded("(float[1,1,4,4] x) => (y) <float[4,4] w> { a = MatMul(x, w) y = Atan(a) }")
    with pytest.raises(NotDifferentiableError, match="Atan"):
        fine_tune(model, {}, images, TrainingSchedule(1, recipe=TrainingRecipe("mse")))


@pytest.mark.parametrize("kind", ["masks", "codebooks"])
def test_retraining_is_pytorchs(kind, network, images):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (make torch)")
    from torch.nn import functional

    recipe = TrainingRecipe("cross-entropy", "adam", weight_decay=0.1)
    schedule = TrainingSchedule(5, 1e-2, 96, recipe=recipe)
    loss = DistillationLoss(temperature=3.0, weight=0.6)
    teacher = seeded(NETWORK, seed=9)
    distillation = Distillation(lambda feeds: scores(teacher, feeds), loss)
    masks, shared = masks_of(network), shared_by(network)
    if kind == "masks":
        ours = fine_tune(network, masks, images, schedule, distillation)
    else:
        ours = tune_codebooks(network, shared, images, schedule, distillation)

    values = {name: torch.tensor(each) for name, each in weights_of(network).items()}
    if kind == "masks":
        values |= {name: values[name] * torch.tensor(mask) for name, mask in masks.items()}
    else:
        values |= {name: torch.tensor(each.codebook) for name, each in shared.items()}
    for each in values.values():
        each.requires_grad_()
    taught = torch.tensor(scores(teacher, images))
    labels = torch.tensor(images["labels"])
    optimiser = torch.optim.AdamW(values.values(), schedule.learning_rate, weight_decay=0.1)
    losses = []
    for epoch in range(schedule.epochs):
        optimiser.param_groups[0]["lr"] = 1e-2 * (1 + np.cos(np.pi * epoch / 5)) / 2
        used = dict(values)
        if kind == "codebooks":
            for name, each in shared.items():
                used[name] = values[name][torch.tensor(each.indices.astype(np.int64))]
        found = functional.conv2d(torch.tensor(images["x"]), used["w0"], used["b0"]).relu()
        found = functional.linear(found.flatten(1), used["w1"], used["b1"]).relu()
        found = functional.linear(found, used["w2"], used["b2"])
        divergence = functional.kl_div(
            functional.log_softmax(found / 3, dim=1), functional.log_softmax(taught / 3, dim=1),
            reduction="batchmean", log_target=True,
        )  # fmt: skip
        total = 0.6 * 9 * divergence + 0.4 * functional.cross_entropy(found, labels)
        optimiser.zero_grad()
        total.backward()
        for name in WEIGHTS:
            kept = masks[name] if kind == "masks" else shared[name].codebook != 0
            values[name].grad *= torch.tensor(kept)
        optimiser.step()
        losses.append(float(total.detach()))
    assert ours.losses == pytest.approx(losses, rel=1e-4)
    after = weights_of(ours.model)
    for name, each in values.items():
        found = after[name]
        expected = each.detach().numpy()
        if kind == "codebooks" and name in shared:
            expected = expected[shared[name].indices]
        assert found == pytest.approx(expected, rel=1e-3, abs=2e-5), name
