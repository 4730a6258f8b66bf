"""Models put through every command: a sample, and what the script makes of what goes wrong."""

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

from arenite.planner.importers import load
from arenite.planner.tensors import TensorKind
from bench.contests.every_model import models_in
from bench.harness import trial
from bench.harness.inputs import light_networks
from bench.harness.trial import FAILURES, Trial, Verdict, difference, trial_of
from bench.zoo import MEDIAPIPE
from support.contests import rows_of, run_contest
from support.tiny_onnx import parse, save

PACKAGED = Path(onnx.__file__).parent / "backend" / "test" / "data"


@pytest.mark.parametrize("name", MEDIAPIPE)
def test_a_network_of_mediapipes_kind_runs_as_in_onnxruntime(name, tmp_path):
    path = tmp_path / f"{name}.onnx"
    onnx.save(MEDIAPIPE[name](), path)
    found = trial_of(path)
    assert found.verdict is Verdict.RIGHT, found
    assert "onnxruntime" not in found.steps


@pytest.mark.parametrize("kind", ["pytorch-converted", "pytorch-operator", "simple"])
def test_a_sample_of_the_onnx_package_runs_or_is_refused(kind):
    models = models_in(PACKAGED / kind)[::8]
    found = {path.parent.name: trial_of(path) for path in models}
    assert {name: each for name, each in found.items() if each.verdict in FAILURES} == {}
    assert all(each.reason for each in found.values() if each.verdict is Verdict.REFUSED)


def test_weights_that_a_network_states_in_a_few_bytes_are_made():
    resnet = next(path for path in light_networks() if "resnet50" in path.name)
    program = load(resnet, weights=True)
    constants = [
        each.name for each in program.tensors.values() if each.kind is TensorKind.CONSTANT
    ]
    assert (
        sum(program.constants[name].nbytes for name in constants) > 100e6 > resnet.stat().st_size
    )


def test_a_model_that_nothing_runs_is_refused_with_a_reason(tmp_path):
    path = save(tmp_path, parse("(float[2] x) => (int64 y) "
                                "{s = SequenceConstruct(x) y = SequenceLength(s)}"))  # fmt: skip
    found = trial_of(path)
    assert found.verdict is Verdict.REFUSED
    assert found.reason.startswith("plan: 's': sequence type")


@pytest.mark.parametrize(
    ("command", "answer", "verdict"),
    [
        ("plan", (-1, "KeyError: 'z'"), Verdict.CRASHED),
        ("plan", (1, ""), Verdict.CRASHED),
        ("verify", (1, "it overlaps"), Verdict.WRONG),
        ("build", (2, "no such option"), Verdict.CRASHED),
    ],
)
def test_a_command_that_ends_badly_is_a_failure(command, answer, verdict, tmp_path, monkeypatch):
    path = save(tmp_path, parse("(float[2,6] x) => (y) {y = Exp(x)}"))
    run = trial.run_command
    monkeypatch.setattr(
        trial, "run_command", lambda words: answer if words[0] == command else run(words)
    )
    assert trial_of(path).verdict is verdict
    assert verdict in FAILURES


def test_outputs_that_differ_are_a_failure(tmp_path, monkeypatch):
    path = save(tmp_path, parse("(float[2,6] x) => (y) {y = Exp(x)}"))
    monkeypatch.setattr(trial, "_reference", lambda *_: [[np.zeros((2, 6), np.float32)]] * 2)
    found = trial_of(path)
    assert (found.verdict, found.reason) == (Verdict.WRONG, "more than 0.0001")


def test_a_file_that_does_not_load_is_a_failure(tmp_path, monkeypatch):
    path = save(tmp_path, parse("(float[2,6] x) => (y) {y = Exp(x)}"))
    monkeypatch.setattr(trial, "Session", lambda _: 1 / 0)
    assert trial_of(path).verdict is Verdict.UNLOADABLE


def test_a_difference_is_relative_to_the_largest_number():
    ours, theirs = [[np.array([1.0, 4.5])]], [[np.array([1.0, 5.0])]]
    assert difference(ours, theirs) == pytest.approx(0.1)
    assert difference([[np.array([np.nan])]], [[np.array([1.0])]]) == float("inf")
    assert difference([[np.array([1, 2])]], [[np.array([1, 2], np.int32)]]) == float("inf")


def test_the_script_goes_through_a_folder_and_fails_if_one_model_does(
    tmp_path, capsys, monkeypatch
):
    model = save(tmp_path, parse("(float[2,6] x) => (y) {y = Exp(x)}"))
    (row,), failures = rows_of("every-model", tmp_path, str(tmp_path))
    assert (row["verdict"], row["steps"], failures) == ("right", "1 arenite", [])
    bad = Trial("bad", Verdict.WRONG, reason="off")
    monkeypatch.setattr("bench.contests.every_model.tried", lambda _: bad)
    assert run_contest("every-model", str(model)) == 1
    assert "bad: wrong: off" in capsys.readouterr().err
