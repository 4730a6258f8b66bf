"""MediaPipe's custom operators, beside numpy models of its published sources."""

import struct

import numpy as np
import pytest

from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_operator import Given, operator_model, weights

GENERATOR = np.random.default_rng(3)
SAME, VALID = 1, 2


def numbers(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32)


def made_by(path, feed, folder):
    """What a session makes of the only input."""
    with PoisonedSession(build(path, folder)) as session:
        (port,) = session.inputs
        (made,) = session.run({port.name: feed}).values()
    return made


def transposed(image, kernel, bias, padding, strides):
    """util/tflite/operations/transpose_conv_bias.cc: each pixel adds its kernel to the result."""
    taps, lengths = kernel.shape[1:3], image.shape[1:3]
    margins = [
        max(0, tap - (length - 1) % stride - 1) if padding == SAME else 0
        for tap, length, stride in zip(taps, lengths, strides, strict=True)
    ]
    whole = [
        (length - 1) * stride + tap
        for tap, length, stride in zip(taps, lengths, strides, strict=True)
    ]
    sums = np.zeros((len(image), *whole, len(kernel)))
    for row, column in np.ndindex(*lengths):
        y, x = row * strides[0], column * strides[1]
        part = np.einsum("nc,ohwc->nhwo", image[:, row, column].astype(float), kernel)
        sums[:, y : y + taps[0], x : x + taps[1]] += part
    (top, left), (height, width) = (
        [each // 2 for each in margins],
        [each - margin for each, margin in zip(whole, margins, strict=True)],
    )
    return sums[:, top : top + height, left : left + width] + bias


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (2, 3)])
@pytest.mark.parametrize("taps", [(2, 2), (3, 3), (4, 2), (1, 5)])
def test_transposed_convolutions_are_those_of_the_source(padding, strides, taps, tmp_path):
    image, kernel, bias = numbers(1, 5, 6, 3), numbers(4, *taps, 3), numbers(4)
    expected = transposed(image, kernel, bias, padding, strides)
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(
        "Convolution2DTransposeBias", [Given(image.shape), weights(kernel), weights(bias)],
        [Given(expected.shape)], ("", struct.pack("<3i", padding, *strides[::-1]))))  # fmt: skip
    made = made_by(path, image, tmp_path)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (struct.pack("<3i", 0, 2, 2), r"padding=0 is unsupported, supported: 1 \(SAME\), 2"),
        (struct.pack("<3i", 1, 2, 0), r"stride_height, stride_width=\(0, 2\) is unsupported"),
        (b"\x01", r"stride_height, stride_width=\(0, 0\) is unsupported"),
    ],
)
def test_other_options_of_transposed_convolutions_are_refused(options, reason, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(
        "Convolution2DTransposeBias",
        [Given((1, 2, 2, 3)), weights(numbers(4, 2, 2, 3)), weights(numbers(4))],
        [Given((1, 4, 4, 4))], ("", options)))  # fmt: skip
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)
