"""What ten runs make of the weights, beside the formulas and beside PyTorch."""

import numpy as np
import onnx
import pytest

from arenite.training.errors import MaskError
from arenite.training.optimisers import OPTIMISERS
from arenite.training.runner import StepRunner
from arenite.training.step import TrainingRecipe
from support.gradients import feeds_of, randomised, step_of
from support.small_networks import network
from support.tiny_onnx import parse

RATES = {"sgd": 0.05, "momentum": 0.02, "adam": 0.01}
NUM_RUNS = 10


def trained(step, feeds, tmp_path):
    """Return the states after ten runs in ONNX Runtime."""
    path = tmp_path / "step.onnx"
    path.write_bytes(step.model.SerializeToString())
    runner = StepRunner(path)
    for _ in range(NUM_RUNS):
        runner.run({name: feeds[name] for name in step.inputs})
    return runner.states


def by_formula(optimiser, rate, weight, gradient_of, decay=0.0):
    """Return a weight after ten updates, in 64 bits."""
    mean = square = speed = np.zeros_like(weight)
    for run in range(1, NUM_RUNS + 1):
        g = gradient_of(weight)
        weight = weight - rate * decay * weight
        match optimiser:
            case "sgd":
                weight = weight - rate * g
            case "momentum":
                speed = 0.9 * speed + g
                weight = weight - rate * speed
            case "adam":
                mean = 0.9 * mean + 0.1 * g
                square = 0.999 * square + 0.001 * g * g
                unbiased = mean / (1 - 0.9**run), square / (1 - 0.999**run)
                weight = weight - rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return weight


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_ten_updates_follow_the_formula(optimiser, tmp_path):
    model = randomised(parse("(float[5,4] x) => (y) <float[4,3] w> { y = MatMul(x, w) }"))
    step = step_of(tmp_path, model, TrainingRecipe("mse", optimiser, RATES[optimiser]))
    feeds = feeds_of(step)
    x, t = np.float64(feeds["x"]), np.float64(feeds["targets"])
    expected = by_formula(
        optimiser, RATES[optimiser], np.float64(feeds["w"]),
        lambda w: 2 / t.size * x.T @ (x @ w - t),
    )  # fmt: skip
    found = trained(step, feeds, tmp_path)["w"]
    assert np.abs(found - feeds["w"]).max() > 0.01
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_masked_weight_of_zero_stays_zero_and_the_others_are_updated_as_before(
    optimiser, tmp_path
):
    model = randomised(parse("(float[5,4] x) => (y) <float[4,3] w> { y = MatMul(x, w) }"))
    mask = np.random.default_rng(4).random((4, 3)) < 0.5
    (tensor,) = model.graph.initializer
    pruned = onnx.numpy_helper.to_array(tensor) * mask
    tensor.CopyFrom(onnx.numpy_helper.from_array(pruned, "w"))
    recipe = TrainingRecipe("mse", optimiser, RATES[optimiser], weight_decay=0.2)
    step = step_of(tmp_path, model, recipe, masks={"w": mask})
    feeds = feeds_of(step)
    x, t = np.float64(feeds["x"]), np.float64(feeds["targets"])
    expected = by_formula(
        optimiser, RATES[optimiser], np.float64(feeds["w"]),
        lambda w: 2 / t.size * mask * (x.T @ (x @ w - t)), decay=0.2,
    )  # fmt: skip
    found = trained(step, feeds, tmp_path)["w"]
    assert np.array_equal(found != 0, mask)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("name", "shape", "reason"), [("w", (3, 4), r"\[3, 4\], not \[4, 3\]"), ("v", (4, 3), "no")]
)
def test_a_mask_that_fits_no_trained_parameter_is_refused(name, shape, reason, tmp_path):
    model = randomised(parse("(float[5,4] x) => (y) <float[4,3] w> { y = MatMul(x, w) }"))
    with pytest.raises(MaskError, match=reason):
        step_of(tmp_path, model, TrainingRecipe("mse"), masks={name: np.ones(shape, bool)})


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_ten_updates_are_pytorchs(optimiser, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (make torch)")
    from bench.learning.torch_network import loss_of

    model, rate = network("lenet-5"), RATES[optimiser]
    step = step_of(tmp_path, model, TrainingRecipe("cross-entropy", optimiser, rate))
    feeds = feeds_of(step)

    def pytorchs(dtype):
        weights = {
            name: torch.tensor(feeds[name]).to(dtype).requires_grad_() for name in step.trained
        }
        made = {
            "sgd": lambda: torch.optim.SGD(weights.values(), rate),
            "momentum": lambda: torch.optim.SGD(weights.values(), rate, momentum=0.9),
            "adam": lambda: torch.optim.Adam(weights.values(), rate),
        }[optimiser]()
        for _ in range(NUM_RUNS):
            made.zero_grad()
            loss_of(model, weights, feeds, "cross-entropy").backward()
            made.step()
        return {name: np.float64(each.detach().numpy()) for name, each in weights.items()}

    exact, theirs = pytorchs(torch.float64), pytorchs(torch.float32)
    ours = trained(step, feeds, tmp_path)

    def error(found):
        return sum(float(((found[name] - exact[name]) ** 2).sum()) for name in exact) ** 0.5

    assert error(ours) <= 3 * error(theirs)
