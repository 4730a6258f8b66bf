import numpy as np
import pytest

from arenite.planner.errors import MissingDependencyError
from arenite.planner.quiet_onnxruntime import quiet_options
from support import tiny_onnx


def test_what_goes_wrong_is_raised_and_not_logged_too(capfd: pytest.CaptureFixture[str]):
    runtime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    model = tiny_onnx.parse("(float[4] x, int64[1] k) => (y) { y = Gather(x, k) }")
    session = runtime.InferenceSession(
        model.SerializeToString(), quiet_options("a test", num_threads=2)
    )
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, {"x": np.zeros(4, np.float32), "k": np.array([9])})
    assert capfd.readouterr() == ("", "")


def test_without_the_package_the_error_says_what_it_is_for(without):
    without("onnxruntime")
    with pytest.raises(MissingDependencyError, match=r"a test.*arenite\[onnx\]"):
        quiet_options("a test")
