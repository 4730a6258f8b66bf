"""Operators of quantised integers that give what LiteRT's reference kernels give, bit for bit."""

import numpy as np
import pytest

from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.sixteen_bits import CASES as OF_16_BITS
from support.sixteen_bits import (
    GENERATOR,
    VALID,
    WINDOW,
    X,
    biases,
    dense,
    eight,
    integers,
    sixteen,
)
from support.tflite_operator import Given, Reference, operator_model

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
CASES |= {f"{name}, 16 bits": case for name, case in OF_16_BITS.items()}


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


AVERAGES = {
    "AVERAGE_POOL_2D": (
        "AVERAGE_POOL_2D", [eight(1, 6, 8, 60)], [eight(1, 3, 4, 60)],
        ("Pool2DOptions", {**WINDOW, "filterHeight": 2, "padding": VALID})),
    "MEAN": ("MEAN", [eight(1, 7, 7, 60), integers(1, 2)],
             [eight(1, 1, 1, 60, scale=0.031, zero_point=-5)],
             ("ReducerOptions", {"keepDims": True})),
}  # fmt: skip


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_of_8_bits_are_nowhere_farther_from_the_quotient_than_those_of_litert(
    name, tmp_path
):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(*AVERAGES[name]))
    with PoisonedSession(build(path, tmp_path)) as session:
        (port,) = session.inputs
        x = GENERATOR.integers(-128, 128, port.shape).astype(np.int8)
        (own,) = session.run({port.name: x}).values()
    (theirs,) = Reference(path).run([x])
    if name == "MEAN":
        quotients = (x.astype(float).mean((1, 2), keepdims=True) - 3) * (0.05 / 0.031) - 5
    else:
        quotients = x.reshape(1, 3, 2, 4, 2, 60).astype(float).mean((2, 4))
    distances, others = (np.abs(each - quotients) for each in (own, theirs))
    assert distances.max() <= 0.5 + 1e-5
    assert (distances <= others + 1e-5).all()
    assert (distances < others - 1e-5).any() == (name == "MEAN")


REFUSED = {
    "int16 tensors without one scale and a zero point of 0 are unsupported": (
        "ADD", [Given((4,), "int16")] * 2, [Given((4,), "int16")], ("AddOptions", {})),
    r"int16 tensors of scales \[.*\] are unsupported for this operator, supported: one scale": (
        "MAXIMUM", [X, sixteen(1, 1, 8, 4, scale=0.5)], [X], None),
    "an int16 output of scale .* is unsupported, supported: 1/32768": ("TANH", [X], [X], None),
    "element type int16 is unsupported for this operator": (
        "SQUARED_DIFFERENCE", [X, X], [X], None),
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
