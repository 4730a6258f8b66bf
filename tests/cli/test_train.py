"""`arenite train`, and training steps in `arenite run`, as their users meet them."""

import json
import signal

import numpy as np
import onnx
import pytest

from arenite.pipeline import steps as pipeline_steps
from arenite.planner.errors import UnsupportedModelError
from arenite.training import TrainingError
from arenite.training.rules import RULES
from support.small_networks import network
from support.tiny_onnx import parse, save


@pytest.fixture
def model(tmp_path):
    return save(tmp_path, network("lenet-5"))


@pytest.fixture
def step(model, run, tmp_path):
    path = tmp_path / "step.onnx"
    code, _, _ = run("train", model, "-o", path, "--loss", "cross-entropy", "--lr", "0.05")
    assert code == 0
    return path


@pytest.fixture
def batch(tmp_path):
    """Three batches of four images, and what they show."""
    random = np.random.default_rng(1)
    labels = np.arange(12) % 10
    images = random.random((12, 1, 16, 16), np.float32) + labels[:, None, None, None] / 5
    path = tmp_path / "batch.npz"
    np.savez(path, x=images.astype(np.float32), labels=labels)
    return path


def test_a_step_is_written_and_told_of(model, run_json, tmp_path):
    output = tmp_path / "step.onnx"
    said = run_json(
        "train", model, "-o", output, "--loss", "cross-entropy", "--optimizer", "adam",
        "--batch", "2", "--lr", "0.001",
    )  # fmt: skip
    assert said["inputs"] == {
        "x": {"dtype": "float32", "shape": [2, 1, 16, 16]},
        "labels": {"dtype": "int64", "shape": [2]},
    }
    assert said["file_bytes"] == output.stat().st_size
    assert said["optimizer"] == "adam"
    weights = sum(4 * np.prod(t.dims) for t in onnx.load(model).graph.initializer)
    assert said["state_bytes"] == 3 * weights + 8
    assert said["num_operators"] == len(onnx.load(output).graph.node)
    assert said["live_bytes"] > 0
    assert set(said["states"]) >= set(said["trained"])


def test_people_are_told_too(model, run, tmp_path):
    code, out, _ = run("train", model, "-o", tmp_path / "s.onnx", "--loss", "cross-entropy")
    assert code == 0
    assert "10 parameters" in out
    assert "labels, int64[4]" in out


def test_only_what_is_named_is_trained(model, run_json, tmp_path):
    output = tmp_path / "step.onnx"
    said = run_json(
        "train", model, "-o", output, "--loss", "cross-entropy", "--train-only", "f3",
        "--train-only", "g*",
    )  # fmt: skip
    assert sorted(said["trained"]) == ["f3", "g1", "g2", "g3"]


def test_a_rate_can_be_an_input(model, run_json, tmp_path):
    output = tmp_path / "step.onnx"
    said = run_json("train", model, "-o", output, "--loss", "cross-entropy", "--lr", "input")
    assert said["lr"] is None
    assert said["inputs"]["rate"] == {"dtype": "float32", "shape": []}


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "fast"])
def test_a_rate_that_is_none_is_refused(rate, model, misused, tmp_path):
    said = misused("train", model, "-o", tmp_path / "s.onnx", "--loss", "mse", f"--lr={rate}")
    assert "not a number above 0" in said


def test_an_operator_without_a_rule_is_named(refused, tmp_path):
    path = save(tmp_path, parse("(float[2,3] x) => (y) <float[3] w> {a = Add(x, w) y = Atan(a)}"))
    output = tmp_path / "step.onnx"
    assert "Atan" in refused("train", path, "-o", output, "--loss", "mse")
    assert not output.exists()


def test_a_step_that_does_not_load_is_not_put_in_place(model, refused, tmp_path, monkeypatch):
    output = tmp_path / "step.onnx"
    output.write_text("what was there")

    def wrong(s):
        s.give(0, s.graph.node("Gather", [s.gradient], s.gradient.shape))

    monkeypatch.setitem(RULES, "Relu", wrong)
    assert "not a valid ONNX" in refused("train", model, "-o", output, "--loss", "cross-entropy")
    assert output.read_text() == "what was there"


def test_a_step_that_onnxruntime_does_not_load_is_refused(step, tmp_path, monkeypatch):
    import onnxruntime

    from arenite.training import write_step

    def fails(*_, **__):
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(onnxruntime, "InferenceSession", fails)
    with pytest.raises(TrainingError, match="no such kernel"):
        write_step(tmp_path / "other.onnx", onnx.load(step))
    assert not (tmp_path / "other.onnx").exists()


def test_a_plan_counts_the_states_throughout(step, run_json):
    for target in ("arenite", "generic"):
        said = run_json("plan", step, "--target", target)
        weights = sum(
            4 * int(np.prod(t.dims)) for t in onnx.load(step).graph.initializer
            if t.name in json.loads(onnx.load(step).metadata_props[0].value)
        )  # fmt: skip
        assert said["lower_bound"] > weights


def test_steps_lower_the_loss_and_keep_the_states(step, batch, run_json, tmp_path):
    state = tmp_path / "state.npz"
    said = run_json("run", step, "--input", batch, "--state", state, "--steps", "60")
    assert said["engine"] == "arenite"
    assert said["arena_bytes"] > said["state_bytes"]
    assert said["steps"] == len(said["losses"]) == 60
    assert np.mean(said["losses"][-3:]) < np.mean(said["losses"][:3])
    again = run_json("run", step, "--input", batch, "--state", state, "--steps", "3")
    assert np.mean(again["losses"]) < np.mean(said["losses"][:3])
    with np.load(state) as saved:
        assert set(saved.files) == set(json.loads(onnx.load(step).metadata_props[0].value))


def test_onnxruntime_runs_what_our_runtime_does_not(step, batch, run_json, tmp_path, monkeypatch):
    ours = run_json("run", step, "--input", batch, "--steps", "5")

    def refuses(*_, **__):
        raise UnsupportedModelError("Conv", "not today")

    monkeypatch.setattr(pipeline_steps, "build_program", refuses)
    state = tmp_path / "state.npz"
    said = run_json("run", step, "--input", batch, "--steps", "5", "--state", state)
    assert said["engine"] == "onnxruntime"
    assert "not today" in said["note"]
    assert said["arena_bytes"] is None
    np.testing.assert_allclose(said["losses"], ours["losses"], rtol=1e-4)
    assert state.exists()


def test_the_loss_is_shown_as_it_goes(step, batch, run):
    code, out, err = run("run", step, "--input", batch, "--steps", "4")
    assert code == 0
    assert err.splitlines()[-1].startswith("step 4 of 4: loss ")
    assert "4 of 4" in out


def test_an_interrupt_keeps_the_states_so_far(step, batch, run_json, tmp_path, monkeypatch):
    run, counts = pipeline_steps.OpenStep.run, iter(range(1000))

    def run_and_press(self, feeds):
        if next(counts) == 2:
            signal.raise_signal(signal.SIGINT)
        return run(self, feeds)

    monkeypatch.setattr(pipeline_steps.OpenStep, "run", run_and_press)
    state = tmp_path / "state.npz"
    said = run_json("run", step, "--input", batch, "--state", state, "--steps", "1000")
    assert said["interrupted"]
    assert said["steps"] == 3
    assert state.exists()


def test_states_of_another_step_are_refused(step, batch, refused, tmp_path):
    state = tmp_path / "state.npz"
    np.savez(state, other=np.zeros(3, np.float32))
    before = state.read_bytes()
    said = refused("run", step, "--input", batch, "--state", state, "--steps", "1")
    assert "the step has no state 'other'" in said
    np.savez(state, f1=np.zeros(3, np.float32))
    said = refused("run", step, "--input", batch, "--state", state, "--steps", "1")
    assert "'f1' is float32 [3]" in said
    assert len(state.read_bytes()) == len(before) - len("other") * 2 + len("f1") * 2


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x": np.zeros((4, 1, 16, 16), np.float32)}, "'labels' missing"),
        ({"x": np.zeros((4, 1, 16, 16)), "labels": np.zeros(4, int)}, "'x' is float64"),
        ({"x": np.zeros((6, 1, 16, 16), np.float32), "labels": np.zeros(4, int)}, "several"),
        ({"x": np.zeros((8, 1, 16, 16), np.float32), "labels": np.zeros(12, int)}, "batches"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(arrays, reason, step, refused, tmp_path):
    path = tmp_path / "batch.npz"
    np.savez(path, **arrays)
    assert reason in refused("run", step, "--input", path, "--steps", "1")


def test_a_model_without_states_does_not_train(model, batch, refused):
    assert "no states" in refused("run", model, "--input", batch, "--steps", "1")


def test_options_of_a_single_run_are_refused(step, batch, misused):
    assert "--profile" in misused("run", step, "--input", batch, "--steps", "1", "--profile")


@pytest.mark.parametrize("command", ["train", "run"])
def test_without_onnx_the_extra_is_named(command, step, model, batch, refused, without):
    without("onnx", forget=["arenite.training", "arenite.pipeline.steps"])
    arguments = {
        "train": (model, "-o", model.with_name("s.onnx"), "--loss", "mse"),
        "run": (step, "--input", batch, "--steps", "1"),
    }
    assert "arenite[onnx]" in refused(command, *arguments[command])
