"""Weights beside a model that are not there: one line that names the file expected."""

import onnx
import pytest

from support.running import with_random_weights
from support.tiny_onnx import parse

NETWORK = "(float[1,3,16,16] x) => (y) <float[32,3,3,3] w> {y = Conv(x, w)}"


def missing(weights):
    weights.unlink()


def truncated(weights):
    weights.write_bytes(weights.read_bytes()[:100])


def linked(weights):
    weights.rename(weights.with_suffix(".other"))
    weights.symlink_to(weights.with_suffix(".other"))


FAULTS = {"missing": missing, "truncated": truncated, "linked": linked}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(
        with_random_weights(parse(NETWORK)), path, save_as_external_data=True,
        location="weights.data", size_threshold=0,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "command",
    ["plan", "inspect", "bench", "run", "build -o o.arena", "compress -o o.onnx",
     "compress -o o.arena", "export --to onnxruntime -o o.onnx", "plan --target onnxruntime"],
)  # fmt: skip
def test_the_file_expected_is_named(model, refused, fault, command, monkeypatch):
    if "onnxruntime" in command:
        pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    if fault == "linked" and command.startswith("plan --target"):
        pytest.skip("ONNX Runtime, which reads the model there, follows links")
    monkeypatch.chdir(model.parent)
    FAULTS[fault](model.with_name("weights.data"))
    word, *rest = command.split()
    said = refused(word, model, *rest)
    assert "weights.data" in said
    assert {"missing": "missing", "truncated": "truncated", "linked": "a link"}[fault] in said
    assert not list(model.parent.glob("o.*"))
