"""Steps of 16-bit integers by rows, beside the same steps whole."""

import numpy as np
import pytest

from support.one_step import Given, constant
from support.row_programs import assert_bands_make_the_whole


def sixteen(*shape, scale=0.001):
    return Given(shape, "int16", scales=(scale,), zero_point=0)


def filters(*shape):
    array = np.random.default_rng(3).integers(-127, 128, shape).astype(np.int8)
    return constant(array, scales=(0.01,), zero_point=0)


X = sixteen(1, 9, 5, 4)
STEPS = {
    "Conv2D": ({"strides": [2, 1], "padding": [1, 1, 1, 1]}, [X, filters(3, 3, 3, 4)],
               sixteen(1, 5, 5, 3, scale=0.01)),
    "DepthwiseConv2D": ({"padding": [1, 1, 1, 1]}, [X, filters(1, 3, 3, 4)],
                        sixteen(1, 9, 5, 4, scale=0.01)),
    "TransposedConv2D": ({"strides": [2, 1], "padding": [1, 1, 0, 1]}, [X, filters(3, 3, 3, 4)],
                         sixteen(1, 18, 5, 3, scale=0.01)),
    "Binary": ({"function": "add"}, [X, X], sixteen(1, 9, 5, 4, scale=0.002)),
    "Unary": ({"function": "sigmoid"}, [X], sixteen(1, 9, 5, 4, scale=2.0**-15)),
    "Softmax": ({}, [X], sixteen(1, 9, 5, 4, scale=2.0**-15)),
    "Convert": ({"rescales": True}, [X], Given((1, 9, 5, 4), "int8", scales=(0.3,), zero_point=4)),
}  # fmt: skip


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("seed", range(4))
def test_bands_make_the_bits_of_the_whole(kind, seed):
    kernel, inputs, result = STEPS[kind]
    _, made = assert_bands_make_the_whole(kind, kernel, inputs, result, seed=seed)
    assert len(np.unique(made)) > 3
