"""Peers with formats of their own: what is not there, or does not take a model, is left out."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from bench.contests.runtime import difference
from bench.harness import engines as peers
from bench.harness.engines import converted_peers, without_given_inputs
from support.tiny_onnx import parse

WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('')"
FAILS = "raise SystemExit('no such operator')"


@pytest.fixture
def installed(monkeypatch):
    """Let every package be there."""
    monkeypatch.setattr(peers, "find_spec", lambda _package: True)


def test_peers_that_are_not_installed_are_left_out_with_a_note(without, tmp_path, capsys):
    without("ncnn", "pnnx", "MNN", "_tools")
    assert list(converted_peers(tmp_path / "model.onnx", tmp_path)) == []
    said = capsys.readouterr().err
    assert "ncnn is left out: ncnn, pnnx is not installed" in said
    assert "mnn is left out: MNN, _tools is not installed" in said


@pytest.mark.usefixtures("installed")
def test_a_model_that_is_not_converted_leaves_the_peer_out(monkeypatch, tmp_path, capsys):
    def command(program: str, wanted: Path) -> list[str]:
        return [sys.executable, "-c", program, str(wanted)]

    monkeypatch.setattr(peers, "_pnnx", lambda _model, place: command(FAILS, place))
    monkeypatch.setattr(peers, "_mnnconvert", lambda _model, wanted: command(WRITES, wanted))
    found = list(converted_peers(tmp_path / "model.onnx", tmp_path))
    assert found == [("mnn", tmp_path / "mnn" / "model.mnn")]
    assert "it does not convert model.onnx: no such operator" in capsys.readouterr().err


def test_constants_that_old_files_list_as_inputs_are_not_taken_for_inputs():
    model = parse("(float[1,4] x) => (y) <float[4,4] a> { y = MatMul(x, a) }")
    weights = model.graph.initializer[0]
    model.graph.input.append(
        onnx.helper.make_tensor_value_info(weights.name, weights.data_type, weights.dims)
    )
    assert [each.name for each in without_given_inputs(model).graph.input] == ["x"]


@pytest.mark.usefixtures("installed")
def test_a_converter_that_takes_too_long_leaves_the_peer_out(monkeypatch, tmp_path, capsys):
    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(peers, "CONVERSION_S", 0.2)
    monkeypatch.setattr(peers, "_pnnx", lambda _model, _place: waits)
    monkeypatch.setattr(peers, "_mnnconvert", lambda _model, _wanted: waits)
    assert list(converted_peers(tmp_path / "model.onnx", tmp_path)) == []
    assert "mnn is left out: it takes more than 0.2 s" in capsys.readouterr().err


def test_outputs_in_another_order_are_compared_by_their_shapes():
    boxes, scores = np.ones((1, 3, 4)), np.full((1, 3, 2), 2.0)
    assert difference([scores, boxes], [boxes, scores]) == 0
    assert difference([scores, boxes], [boxes, scores + 2]) == 0.5
