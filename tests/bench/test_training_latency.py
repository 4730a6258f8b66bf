"""Time and memory of training steps, measured on a small network."""

import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("sklearn", reason="the extra 'bench' is not installed")

from bench.learning import step_files
from bench.zoo.mobilenets import mobilenet_v2
from support.contests import run_contest


def test_a_step_is_timed_in_both_runtimes(monkeypatch, capsys):
    networks = [("small", mobilenet_v2(32, 4), "cross-entropy")]
    monkeypatch.setattr(step_files, "networks", lambda: networks)
    assert run_contest("training-latency", "--rounds", "1", "--seconds", "0") == 0
    assert "small" in capsys.readouterr().out
