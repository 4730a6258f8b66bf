"""Time and memory of training steps, measured on a small network."""

import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

import training_latency
from learning import step_files
from zoo import mobilenet_v2


def test_a_step_is_timed_in_both_runtimes(monkeypatch, capsys):
    networks = [("small", mobilenet_v2.network(32, 4), "cross-entropy")]
    monkeypatch.setattr(step_files, "networks", lambda: networks)
    assert training_latency.main(["--rounds", "1", "--seconds", "0"]) == 0
    assert "small" in capsys.readouterr().out
