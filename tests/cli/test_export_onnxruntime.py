"""`arenite export --to onnxruntime`: what it says of models that are refused."""

import subprocess
import sys

import pytest
from onnx import TensorProto

from support.tiny_onnx import parse, save


def test_a_weight_beyond_measure_is_refused_in_one_line_and_nothing_is_logged(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    model = parse("(float[4] x) => (float[4] y) {y = Abs(w)}")
    model.graph.initializer.append(
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**63 - 1], raw_data=bytes(16))
    )
    path = save(tmp_path, model)
    command = (sys.executable, "-m", "arenite", "export", path, "--to", "onnxruntime")
    ended = subprocess.run(
        (*command, "-o", tmp_path / "out.onnx"), capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
