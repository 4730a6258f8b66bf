"""Losses: their values, their gradients, and the last activation that they see through."""

import numpy as np
import pytest

from arenite.training.errors import UnfitLossError
from arenite.training.losses import DistillationLoss
from arenite.training.step import TrainingRecipe
from support.gradients import check_gradients, feeds_of, first_states, randomised, step_of
from support.tiny_onnx import parse
from support.wide_reference import evaluator

LAYER = "(double[4,3] x) => (y) <double[3,5] w, double[5] b> {{ z = Gemm(x, w, b) {last} }}"


def layer(last="y = Identity(z)"):
    return randomised(parse(LAYER.format(last=last)))


def run(step, feeds):
    return float(evaluator(step.model).run(["loss"], feeds)[0])


@pytest.mark.parametrize("last", ["y = Identity(z)", "y = Softmax(z)", "y = LogSoftmax(z)"])
def test_cross_entropy_is_the_mean_of_what_the_right_class_lacks(last, tmp_path):
    step = step_of(tmp_path, layer(last), TrainingRecipe("cross-entropy", "sgd", 1.0))
    feeds = feeds_of(step) | {"labels": np.array([0, 4, 2, 2])}
    z = feeds["x"] @ feeds["w"] + feeds["b"]
    logs = z - np.log(np.exp(z).sum(1, keepdims=True))
    assert run(step, feeds) == pytest.approx(-logs[range(4), feeds["labels"]].mean(), rel=1e-12)
    assert not any(node.op_type == "Softmax" for node in step.model.graph.node)
    check_gradients(step, feeds)


def test_cross_entropy_of_pixels_has_its_classes_along_axis_1(tmp_path):
    model = randomised(parse(
        "(double[2,3,4,4] x) => (y) <double[5,3,1,1] w> { y = Conv(x, w) }"
    ))  # fmt: skip
    step = step_of(tmp_path, model, TrainingRecipe("cross-entropy", "sgd", 1.0))
    assert step.inputs["labels"].shape == (2, 4, 4)
    check_gradients(step, feeds_of(step))


@pytest.mark.parametrize("last", ["y = Identity(z)", "y = Sigmoid(z)"])
def test_bce_is_the_mean_over_all_elements(last, tmp_path):
    step = step_of(tmp_path, layer(last), TrainingRecipe("bce", "sgd", 1.0))
    feeds = feeds_of(step)
    p = 1 / (1 + np.exp(-(feeds["x"] @ feeds["w"] + feeds["b"])))
    t = feeds["targets"]
    expected = -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean()
    assert run(step, feeds) == pytest.approx(expected, rel=1e-12)
    check_gradients(step, feeds)


def test_bce_of_scores_of_any_size_stays_finite(tmp_path):
    step = step_of(tmp_path, layer(), TrainingRecipe("bce", "sgd", 1.0))
    feeds = feeds_of(step)
    feeds["b"] = np.array([600.0, -600, 0, 600, -600])
    assert np.isfinite(run(step, feeds))


def softmax(z):
    powers = np.exp(z - z.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize("weight", [1.0, 0.7])
def test_distillation_is_the_divergence_from_the_teacher_and_a_share_of_cross_entropy(
    weight, tmp_path
):
    loss = DistillationLoss(temperature=2.5, weight=weight)
    step = step_of(tmp_path, layer(), TrainingRecipe(loss, "sgd", 1.0))
    feeds = feeds_of(step) | {"labels": np.array([0, 4, 2, 2])}
    z = feeds["x"] @ feeds["w"] + feeds["b"]
    ours, theirs = softmax(z / 2.5), softmax(feeds["taught"] / 2.5)
    divergence = (theirs * np.log(theirs / ours)).sum() / 4
    hard = -np.log(softmax(z)[range(4), feeds["labels"]]).mean()
    expected = weight * 2.5**2 * divergence + (1 - weight) * hard
    assert run(step, feeds) == pytest.approx(expected, rel=1e-12)
    check_gradients(step, feeds)
    if weight == 1:
        assert run(step, feeds | {"taught": z}) == pytest.approx(0, abs=1e-12)


def test_a_distillation_checks_itself():
    with pytest.raises(ValueError, match="temperature"):
        DistillationLoss(temperature=0.0)
    with pytest.raises(ValueError, match="weight"):
        DistillationLoss(weight=1.5)


def test_mse_is_the_mean_of_squares(tmp_path):
    step = step_of(tmp_path, layer(), TrainingRecipe("mse", "sgd", 1.0))
    feeds = feeds_of(step)
    difference = feeds["x"] @ feeds["w"] + feeds["b"] - feeds["targets"]
    assert run(step, feeds) == pytest.approx((difference**2).mean(), rel=1e-12)
    check_gradients(step, feeds)


def test_a_rate_scales_the_update_and_not_the_loss(tmp_path):
    slow, fast = (
        step_of(tmp_path, layer(), TrainingRecipe("mse", "sgd", rate)) for rate in (0.1, 0.3)
    )
    feeds = feeds_of(slow)
    moved = []
    for step in (slow, fast):
        loss, new = evaluator(step.model).run(["loss", "w/next"], feeds)
        moved.append((float(loss), feeds["w"] - new))
    assert moved[0][0] == moved[1][0]
    np.testing.assert_allclose(3 * moved[0][1], moved[1][1], rtol=1e-9)


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "adam"])
def test_a_rate_that_is_an_input_does_the_same(optimiser, tmp_path):
    fixed = step_of(tmp_path, layer(), TrainingRecipe("mse", optimiser, 0.25))
    free = step_of(tmp_path, layer(), TrainingRecipe("mse", optimiser, None))
    assert free.inputs["rate"].shape == ()
    feeds = feeds_of(fixed)
    (one,) = evaluator(fixed.model).run(["w/next"], feeds)
    (other,) = evaluator(free.model).run(["w/next"], feeds | {"rate": np.array(0.25)})
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_cross_entropy_of_a_row_is_refused(tmp_path):
    model = randomised(parse("(double[3] x) => (y) <double[3] w> { y = Mul(x, w) }"))
    with pytest.raises(UnfitLossError, match="axis 1"):
        step_of(tmp_path, model, TrainingRecipe("cross-entropy"))


def test_which_of_several_outputs_is_to_be_said(tmp_path):
    text = "(double[2,3] x) => (y, z) <double[3,2] w> { y = MatMul(x, w) z = Relu(y) }"
    model = randomised(parse(text))
    with pytest.raises(UnfitLossError, match="2 outputs"):
        step_of(tmp_path, model, TrainingRecipe("mse"))
    with pytest.raises(UnfitLossError, match="no output 'q'"):
        step_of(tmp_path, model, TrainingRecipe("mse", output="q"))
    step = step_of(tmp_path, model, TrainingRecipe("mse", output="y"))
    assert not any(node.op_type == "Relu" for node in step.model.graph.node)
    assert first_states(step).keys() == {"w"}
