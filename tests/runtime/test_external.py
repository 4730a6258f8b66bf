"""Steps that ONNX Runtime runs on tensors of our arena."""

from pathlib import Path

import numpy as np
import pytest

from arenite.runtime.session import Session
from arenite.runtime.targets.onnxruntime import RunFailedError
from arenite.strategies import find
from support import tiny_onnx

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")


def test_inputs_that_onnx_runtime_gives_up_on_are_a_typed_error_and_the_next_run_is_right(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    model = tiny_onnx.parse("(float[4,3] x, int64[2,2] k) => (float[2] y) { y = GatherND(x, k) }")
    session = Session(tiny_onnx.save(tmp_path, model), strategy=find("best"))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    with pytest.raises(RunFailedError, match="step 'GatherND_0': ONNX Runtime gave up"):
        session.run({"x": x, "k": np.array([[9, 0], [0, 0]])})
    assert session.run({"x": x, "k": np.array([[3, 1], [0, 2]])})["y"].tolist() == [10, 2]
    assert capfd.readouterr() == ("", "")
