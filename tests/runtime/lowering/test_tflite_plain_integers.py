"""Operators of quantised integers that give what LiteRT's reference kernels give, bit for bit."""

import numpy as np
import pytest

from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_operator import Given, Reference, operator_model, weights

GENERATOR = np.random.default_rng(5)


def eight(*shape, scale=0.05, zero_point=3, dtype="int8"):
    return Given(shape, dtype, None, (scale,), zero_point)


def biases(count, dtype=np.int32, scale=0.001):
    return weights(GENERATOR.integers(-9000, 9000, count).astype(dtype), scales=(scale,))


def sixteen(*shape, scale=0.0007):
    return Given(shape, "int16", None, (scale,), 0)


def filters(*shape, axis, scales=True):
    """A filter of 8 bits, with a scale for each index of an axis."""
    array = GENERATOR.integers(-127, 128, shape).astype(np.int8)
    count = shape[axis] if scales else 1
    return weights(array, scales=tuple(map(float, np.linspace(0.002, 0.01, count))), axis=axis)


def integers(*values):
    return weights(np.array(values, np.int32))


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
X, WIDE = sixteen(1, 6, 8, 4), np.int64
SAME, VALID = 0, 1
CONV = {"strideH": 2, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
WINDOW = {"strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 2}
CASES |= {
    f"{name}, 16 bits": case
    for name, case in {
        "CONV_2D": (
            "CONV_2D", [X, filters(5, 3, 3, 4, axis=0), biases(5, WIDE)],
            [sixteen(1, 3, 8, 5, scale=0.002)],
            ("Conv2DOptions", {**CONV, "fusedActivationFunction": 1})),
        "CONV_2D, one scale and no activation": (
            "CONV_2D", [sixteen(2, 6, 8, 4), filters(5, 2, 3, 4, axis=0, scales=False),
                        biases(5, WIDE)],
            [sixteen(2, 3, 6, 5, scale=0.0003)], ("Conv2DOptions", {**CONV, "padding": VALID})),
        "CONV_2D, dilated and in groups": (
            "CONV_2D", [X, filters(6, 2, 3, 2, axis=0), biases(6, WIDE)],
            [sixteen(1, 4, 4, 6, scale=0.002)],
            ("Conv2DOptions", {"padding": VALID, "strideH": 1, "strideW": 1,
                               "dilationHFactor": 2, "dilationWFactor": 2,
                               "fusedActivationFunction": 3})),
        "CONV_2D, a bias of 32 bits": (
            "CONV_2D", [X, filters(5, 3, 3, 4, axis=0), biases(5)],
            [sixteen(1, 3, 8, 5, scale=0.002)],
            ("Conv2DOptions", {**CONV, "quantizedBiasType": 2})),
        "DEPTHWISE_CONV_2D": (
            "DEPTHWISE_CONV_2D", [X, filters(1, 3, 3, 8, axis=3), biases(8, WIDE)],
            [sixteen(1, 6, 8, 8, scale=0.001)],
            ("DepthwiseConv2DOptions", {**CONV, "strideH": 1, "depthMultiplier": 2})),
        "DEPTHWISE_CONV_2D of one channel": (
            "DEPTHWISE_CONV_2D", [sixteen(1, 9, 7, 1), filters(1, 3, 3, 8, axis=3),
                                  biases(8, WIDE)],
            [sixteen(1, 5, 7, 8, scale=0.001)],
            ("DepthwiseConv2DOptions", {**CONV, "depthMultiplier": 8,
                                        "fusedActivationFunction": 1})),
        "TRANSPOSE_CONV": (
            "TRANSPOSE_CONV", [integers(1, 12, 8, 5), filters(5, 3, 3, 4, axis=0), X,
                               biases(5, WIDE)],
            [sixteen(1, 12, 8, 5, scale=0.002)],
            ("TransposeConvOptions", {"strideH": 2, "strideW": 1})),
        "FULLY_CONNECTED": (
            "FULLY_CONNECTED", [sixteen(3, 70), filters(50, 70, axis=0, scales=False),
                                biases(50, WIDE, 0.0007 * 0.002)],
            [sixteen(3, 50, scale=0.02)], dense(1)),
        "FULLY_CONNECTED, a scale for each output": (
            "FULLY_CONNECTED", [sixteen(3, 70), filters(50, 70, axis=0), None],
            [sixteen(3, 50, scale=0.02)], dense()),
        "ADD": ("ADD", [X, sixteen(1, 6, 8, 4, scale=0.0011)], [sixteen(1, 6, 8, 4, scale=0.0016)],
                ("AddOptions", {"potScaleInt16": False})),
        "ADD, broadcast and clamped": (
            "ADD", [X, sixteen(1, 1, 1, 4, scale=0.0011)], [sixteen(1, 6, 8, 4, scale=0.0009)],
            ("AddOptions", {"fusedActivationFunction": 3})),
        "SUB": ("SUB", [X, sixteen(1, 6, 8, 4, scale=0.0011)], [sixteen(1, 6, 8, 4, scale=0.0016)],
                ("SubOptions", {"potScaleInt16": False})),
        "MUL": ("MUL", [X, sixteen(1, 6, 8, 4, scale=0.0011)], [sixteen(1, 6, 8, 4, scale=0.002)],
                ("MulOptions", {"fusedActivationFunction": 1})),
        "MAXIMUM": ("MAXIMUM", [X, sixteen(1, 1, 8, 4)], [X], None),
        "MINIMUM": ("MINIMUM", [X, sixteen(1, 1, 8, 4)], [X], None),
        "AVERAGE_POOL_2D": (
            "AVERAGE_POOL_2D", [X], [sixteen(1, 3, 4, 4)], ("Pool2DOptions", WINDOW)),
        "MAX_POOL_2D": (
            "MAX_POOL_2D", [X], [sixteen(1, 3, 4, 4)],
            ("Pool2DOptions", {**WINDOW, "fusedActivationFunction": 1})),
        "MEAN": ("MEAN", [X, integers(1, 2)], [sixteen(1, 4, scale=0.0005)],
                 ("ReducerOptions", {})),
        "REDUCE_MAX": ("REDUCE_MAX", [X, integers(2)], [sixteen(1, 6, 4)], ("ReducerOptions", {})),
        "LOGISTIC": ("LOGISTIC", [X], [sixteen(1, 6, 8, 4, scale=2.0**-15)], None),
        "LOGISTIC of 3 bits before the point": (
            "LOGISTIC", [sixteen(1, 6, 8, 4, scale=2.0**-12)],
            [sixteen(1, 6, 8, 4, scale=2.0**-15)], None),
        "TANH": ("TANH", [X], [sixteen(1, 6, 8, 4, scale=2.0**-15)], None),
        "TANH of 4 bits before the point": (
            "TANH", [sixteen(1, 6, 8, 4, scale=2.0**-11)], [sixteen(1, 6, 8, 4, scale=2.0**-15)],
            None),
        "RELU": ("RELU", [X], [sixteen(1, 6, 8, 4, scale=0.0005)], None),
        "LEAKY_RELU": ("LEAKY_RELU", [X], [sixteen(1, 6, 8, 4, scale=0.0005)],
                       ("LeakyReluOptions", {"alpha": 0.3})),
        "SOFTMAX": ("SOFTMAX", [sixteen(5, 40, scale=0.0003)], [sixteen(5, 40, scale=2.0**-15)],
                    ("SoftmaxOptions", {"beta": 1.0})),
        "QUANTIZE": ("QUANTIZE", [X], [sixteen(1, 6, 8, 4, scale=0.0019)], None),
        "QUANTIZE to 8 bits": ("QUANTIZE", [X], [eight(1, 6, 8, 4, scale=0.2)], None),
        "QUANTIZE from 8 bits": ("QUANTIZE", [eight(1, 6, 8, 4)], [sixteen(1, 6, 8, 4)], None),
        "PAD": ("PAD", [X, weights(np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32))],
                [sixteen(1, 9, 11, 4)], None),
        "CONCATENATION": ("CONCATENATION", [X, X], [sixteen(1, 6, 8, 8)],
                          ("ConcatenationOptions", {"axis": 3})),
    }.items()
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
