"""Whole gradients of small networks, beside 64 bits and beside PyTorch."""

import numpy as np
import onnxruntime
import pytest

from support.gradients import central_differences, feeds_of, gradients_of, step_of
from support.small_networks import NETWORKS, network, widened


def narrow_gradients(step, feeds):
    """Return the gradients that ONNX Runtime computes, in 32 bits."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(step.model.SerializeToString(), options)
    return gradients_of(step, feeds, session.run)


@pytest.fixture(params=NETWORKS)
def trained(request, tmp_path):
    """A network, its steps in 32 and 64 bits, and what they are fed."""
    recipe = NETWORKS[request.param][1]
    model = network(request.param)
    step = step_of(tmp_path, model, recipe)
    wide = step_of(tmp_path, widened(model), recipe)
    return model, recipe, step, wide, feeds_of(step)


def wider(feeds):
    return {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in feeds.items()}


def distance(found, exact):
    """Return the error of a whole gradient relative to its length."""
    error = sum(float(((found[name] - exact[name]) ** 2).sum()) for name in exact)
    length = sum(float((exact[name] ** 2).sum()) for name in exact)
    return (error / length) ** 0.5


def test_a_gradient_in_64_bits_is_how_the_loss_changes(trained):
    _, _, _, wide, feeds = trained
    feeds = wider(feeds)
    found = gradients_of(wide, feeds)
    random = np.random.default_rng(3)
    for name in list(found)[:: max(1, len(found) // 4)]:
        places = random.choice(found[name].size, 1).tolist()
        expected = central_differences(wide, feeds, name, places, 1e-6)
        scale = np.abs(found[name]).max()
        np.testing.assert_allclose(
            found[name].reshape(-1)[places], expected, rtol=0, atol=2e-5 * scale, err_msg=name
        )


def test_a_gradient_in_32_bits_is_that_of_64(trained):
    _, _, step, wide, feeds = trained
    assert distance(narrow_gradients(step, feeds), gradients_of(wide, wider(feeds))) < 1e-5


def test_a_gradient_errs_no_more_than_three_times_as_much_as_pytorchs(trained):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (make torch)")
    from bench.learning.torch_network import gradients

    model, recipe, step, wide, feeds = trained
    how = {"batch_statistics": recipe.batch_statistics}
    loss, exact = gradients(model, feeds, recipe.loss, dtype=torch.float64, **how)
    own = gradients_of(wide, wider(feeds))
    exact = {name: exact[name] for name in own}
    assert distance(own, exact) < 1e-7  # Clip and the like have bounds of 32 bits in PyTorch
    _, theirs = gradients(model, feeds, recipe.loss, dtype=torch.float32, **how)
    ours = narrow_gradients(step, feeds)
    assert distance(ours, exact) <= 3 * distance(theirs, exact)
    assert loss > 0
