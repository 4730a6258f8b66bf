"""Functions of one number at their extremes, and of bytes by tables."""

import numpy as np
import pytest

from support.running import PoisonedSession, build
from support.tiny_onnx import parse, save

FUNCTIONS = {
    "sigmoid": "(float[1000] x) => (y) {y = Sigmoid(x)}",
    "swish": "(float[1000] x) => (y) {s = Sigmoid(x) y = Mul(x, s)}",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_sigmoid_is_so_small_that_processors_are_slow(name, tmp_path):
    x = np.linspace(-300, 300, 1000, dtype=np.float32)
    with PoisonedSession(build(save(tmp_path, parse(FUNCTIONS[name])), tmp_path)) as session:
        (y,) = session.run({"x": x}).values()
    exact = 1 / (1 + np.exp(-x.astype(np.float64))) * (x if name == "swish" else 1)
    np.testing.assert_allclose(y, exact, rtol=1e-6, atol=1e-35)
    assert np.all((y == 0) | (np.abs(y) >= np.finfo(np.float32).tiny))


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200, 327])
def test_each_byte_gives_its_entry_wherever_it_lies(count, tmp_path):
    text = f"""(int8[{count}] x) => (int8[{count}] y)
        <float s = {{0.1}}, int8 z = {{3}}, float t = {{0.00390625}}, int8 w = {{-128}}>
        {{ y = com.microsoft.QLinearSigmoid(x, s, z, t, w) }}"""
    x = np.random.default_rng(count).integers(-128, 128, count).astype(np.int8)
    with PoisonedSession(build(save(tmp_path, parse(text)), tmp_path)) as session:
        assert set(session.backends()) == {"arenite"}
        (y,) = session.run({"x": x}).values()
    exact = 256 / (1 + np.exp(-0.1 * (x.astype(np.float64) - 3)))
    np.testing.assert_array_equal(y, np.clip(np.rint(exact), 0, 255) - 128)
