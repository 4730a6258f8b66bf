"""Operators of quantised integers that give what LiteRT's reference kernels give, bit for bit."""

import numpy as np
import pytest

from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_operator import Given, Reference, operator_model, weights

GENERATOR = np.random.default_rng(5)


def eight(*shape, scale=0.05, zero_point=3, dtype="int8"):
    return Given(shape, dtype, None, (scale,), zero_point)


def biases(count, dtype=np.int32):
    return weights(GENERATOR.integers(-9000, 9000, count).astype(dtype), scales=(0.001,))


def dense(activation=0, **options):
    return "FullyConnectedOptions", {"fusedActivationFunction": activation, **options}


ROWS, WEIGHTS = eight(3, 70), eight(50, 70, scale=0.02, zero_point=-4)
CASES = {
    "FULLY_CONNECTED, weights of the run": (
        "FULLY_CONNECTED", [ROWS, WEIGHTS, None], [eight(3, 50, scale=0.9)], dense(1)),
    "FULLY_CONNECTED, weights of the run and a bias": (
        "FULLY_CONNECTED", [ROWS, WEIGHTS, biases(50)], [eight(3, 50, scale=0.9)], dense(3)),
    "FULLY_CONNECTED, weights of the run, rank kept": (
        "FULLY_CONNECTED", [eight(2, 3, 70), WEIGHTS, None], [eight(2, 3, 50, scale=0.01)],
        dense(keepNumDims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_integers_are_those_of_litert_bit_for_bit(name, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(*CASES[name]))
    session, reference = PoisonedSession(build(path, tmp_path)), Reference(path)
    for _ in range(3):
        inputs = {
            port.name: GENERATOR.integers(
                np.iinfo(port.dtype).min, np.iinfo(port.dtype).max + 1, port.shape
            ).astype(port.dtype)
            for port in session.inputs
        }
        (own,) = session.run(inputs).values()
        (expected,) = reference.run(list(inputs.values()))
        assert own.dtype == expected.dtype
        np.testing.assert_array_equal(own, expected)
        assert len(np.unique(own)) > 3


REFUSED = {
    "weights of int8 made in the run are unsupported for an input of float32": (
        "FULLY_CONNECTED", [Given((3, 7)), eight(5, 7), None], [Given((3, 5))], dense()),
    r"weights of shape \(1, 5, 7\) are unsupported, supported: rank 2": (
        "FULLY_CONNECTED", [Given((3, 7)), Given((1, 5, 7)), None], [Given((3, 5))], dense()),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_other_forms_are_refused(reason, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(*REFUSED[reason]))
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)
