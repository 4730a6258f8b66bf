"""Training steps in our runtime, within the arena of their plan, beside ONNX Runtime."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from arenite.runtime import Session
from arenite.training.runner import StepRunner
from support.gradients import feeds_of, step_of
from support.running import build
from support.small_networks import NETWORKS, network

NUM_RUNS = 3


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_trains_as_in_onnxruntime(name, tmp_path):
    recipe = replace(NETWORKS[name][1], rate=0.01)
    step = step_of(tmp_path, network(name), recipe)
    path = tmp_path / "step.onnx"
    onnx.save(step.model, path)
    feeds = {key: each for key, each in feeds_of(step).items() if key in step.inputs}
    stock = StepRunner(path)
    with Session(build(path, tmp_path)) as session:
        assert "onnxruntime" not in session.backends()
        for _ in range(NUM_RUNS):
            ours, theirs = session.run(feeds)["loss"], stock.run(feeds)["loss"]
            np.testing.assert_allclose(ours.reshape(()), theirs, rtol=1e-4)
        for key, state in session.states.items():
            scale = max(1e-3, float(np.abs(stock.states[key]).max()))
            np.testing.assert_allclose(
                state, stock.states[key], rtol=0, atol=1e-3 * scale, err_msg=key
            )


def test_a_network_trains_where_onnxruntime_is_absent(tmp_path, without):
    step = step_of(tmp_path, network("resnet"), replace(NETWORKS["resnet"][1], rate=0.01))
    path = tmp_path / "step.onnx"
    onnx.save(step.model, path)
    feeds = {key: each for key, each in feeds_of(step).items() if key in step.inputs}
    without("onnxruntime")
    with Session(build(path, tmp_path)) as session:
        losses = [float(session.run(feeds)["loss"]) for _ in range(NUM_RUNS)]
    assert losses[-1] < losses[0]
