"""TFLite models of one operator each, of 16-bit integers: what an operator model is made of."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from support.tflite_operator import Given, weights

Case: TypeAlias = tuple[
    str, list[Given | None], list[Given], tuple[str, Mapping[str, object]] | None
]
"""Operator, inputs, outputs and options."""
GENERATOR = np.random.default_rng(5)


def eight(*shape: int, scale: float = 0.05, zero_point: int = 3, dtype: str = "int8") -> Given:
    return Given(shape, dtype, None, (scale,), zero_point)


def biases(count: int, dtype: type[np.integer] = np.int32, scale: float = 0.001) -> Given:
    return weights(GENERATOR.integers(-9000, 9000, count).astype(dtype), scales=(scale,))


def sixteen(*shape: int, scale: float = 0.0007) -> Given:
    return Given(shape, "int16", None, (scale,), 0)


def filters(*shape: int, axis: int, scales: bool = True) -> Given:
    """A filter of 8 bits, with a scale for each index of an axis."""
    array = GENERATOR.integers(-127, 128, shape).astype(np.int8)
    count = shape[axis] if scales else 1
    return weights(array, scales=tuple(map(float, np.linspace(0.002, 0.01, count))), axis=axis)


def integers(*values: int) -> Given:
    return weights(np.array(values, np.int32))


def dense(activation: int = 0, **options: object) -> tuple[str, dict[str, object]]:
    return "FullyConnectedOptions", {"fusedActivationFunction": activation, **options}


X, WIDE = sixteen(1, 6, 8, 4), np.int64
SAME, VALID = 0, 1
CONV = {"strideH": 2, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
WINDOW = {"strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 2}
CASES: dict[str, Case] = {
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
    "CONV_2D, an odd number of inputs and a bias beyond 32 bits": (
        "CONV_2D", [sixteen(1, 5, 4, 3), filters(6, 3, 3, 3, axis=0),
                    weights(np.array([2**33, -(2**34), 5, 7, 2**32, 0]), scales=(1e-9,))],
        [sixteen(1, 3, 4, 6, scale=0.002)], ("Conv2DOptions", CONV)),
    "CONV_2D of many inputs": (
        "CONV_2D", [sixteen(1, 2, 3, 301), filters(3, 2, 3, 301, axis=0), biases(3, WIDE)],
        [sixteen(1, 1, 3, 3, scale=0.02)], ("Conv2DOptions", CONV)),
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
}  # fmt: skip
