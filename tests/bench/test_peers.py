"""Peers with formats of their own: what is not there, or does not take a model, is left out."""

import sys
from pathlib import Path

import pytest

from harness import peers
from harness.peers import PEERS, converted_peers

WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('')"
FAILS = "raise SystemExit('no such operator')"


@pytest.fixture
def installed(monkeypatch):
    """Let every package be there."""
    monkeypatch.setattr(peers, "find_spec", lambda _package: True)


def test_peers_that_are_not_installed_are_left_out_with_a_note(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(peers, "find_spec", lambda _package: None)
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
    assert [peer for peer, _ in found] == list(PEERS[1:])
