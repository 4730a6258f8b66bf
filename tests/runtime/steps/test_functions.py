"""Functions that are polynomials, from the smallest floats to NaN, on any number of elements."""

import math

import numpy as np
import pytest

from arenite.runtime import Session
from support.running import build
from support.tiny_onnx import parse, save

FAR = (0.0, -0.0, 1e-30, 3.7, -3.72, 9.0, -60.0, 1e30, math.inf, -math.inf)


def results(tmp_path, kind, numbers):
    text = f"(float[{len(numbers)}] x) => (y) {{ y = {kind}(x) }}"
    with Session(build(save(tmp_path, parse(text, opset=20)), tmp_path)) as session:
        return next(iter(session.run({"x": numbers}).values()))


@pytest.mark.parametrize("count", [7, 16, 49, 2000])
def test_the_error_function_is_close_and_ends_at_one(count, tmp_path):
    numbers = np.concatenate([np.linspace(-5, 5, count), FAR]).astype(np.float32)
    expected = np.array([math.erf(x) for x in numbers])
    made = results(tmp_path, "Erf", numbers)
    np.testing.assert_allclose(made, expected, rtol=1e-6)
    assert np.all(np.abs(made[np.abs(numbers) >= 4]) == 1)
    assert np.isnan(results(tmp_path, "Erf", np.full(3, np.nan, np.float32))).all()


def test_gelu_is_close_and_vanishes(tmp_path):
    numbers = np.concatenate([np.linspace(-5, 5, 77), FAR[:-2], [-1e4]]).astype(np.float32)
    wide = numbers.astype(np.float64)
    expected = np.array([x * math.erfc(-x / math.sqrt(2)) / 2 for x in wide])
    made = results(tmp_path, "Gelu", numbers)
    np.testing.assert_allclose(made, expected, rtol=1e-6, atol=2e-6)
    assert made[-1] == 0
    assert np.isnan(results(tmp_path, "Gelu", np.full(3, np.nan, np.float32))).all()


def test_softmax_keeps_nan_and_leaves_nothing_of_what_is_far_below(tmp_path):
    for count in (5, 16, 33, 197):
        numbers = np.linspace(-3, 3, count).astype(np.float32)
        numbers[1] = -np.inf
        numbers[2] = -200
        made = results(tmp_path, "Softmax", numbers)
        powers = np.exp(numbers.astype(np.float64) - 3)
        np.testing.assert_allclose(made, powers / powers.sum(), rtol=2e-6, atol=1e-37)
        assert made[1] == 0
        assert made[2] == 0
        numbers[count // 2] = np.nan
        assert np.isnan(results(tmp_path, "Softmax", numbers)).any()
