"""MediaPipe's custom operators, beside XNNPACK and numpy models of its published sources."""

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


def transposed_model(image, kernel, bias, result, padding, strides):
    return operator_model(
        "Convolution2DTransposeBias", [Given(image.shape), weights(kernel), weights(bias)],
        [Given(result)], ("", struct.pack("<3i", padding, *strides[::-1])))  # fmt: skip


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (2, 3)])
@pytest.mark.parametrize("taps", [(2, 2), (3, 3), (4, 2), (1, 5)])
def test_transposed_convolutions_are_those_of_the_source(padding, strides, taps, tmp_path):
    image, kernel, bias = numbers(1, 5, 6, 3), numbers(4, *taps, 3), numbers(4)
    expected = transposed(image, kernel, bias, padding, strides)
    path = tmp_path / "one.tflite"
    path.write_bytes(transposed_model(image, kernel, bias, expected.shape, padding, strides))
    made = made_by(path, image, tmp_path)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize(
    ("taps", "strides"), [((2, 2), (2, 2)), ((3, 3), (1, 2)), ((4, 5), (2, 3))]
)
def test_transposed_convolutions_are_those_of_xnnpack(padding, strides, taps, tmp_path):
    package = pytest.importorskip("ai_edge_litert.compiled_model")
    image, kernel, bias = numbers(1, 5, 6, 3), numbers(4, *taps, 3), numbers(4)
    shape = transposed(image, kernel, bias, padding, strides).shape
    path = tmp_path / "one.tflite"
    path.write_bytes(transposed_model(image, kernel, bias, shape, padding, strides))
    model = package.CompiledModel.from_file(str(path))
    (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
    source.write(image.reshape(-1))
    model.run_by_index(0, [source], [target])
    expected = target.read(np.prod(shape), np.float32).reshape(shape)
    np.testing.assert_allclose(made_by(path, image, tmp_path), expected, rtol=0, atol=1e-5)


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


LANDMARKS = {
    "left_rotation_idx": 3, "right_rotation_idx": 7, "subset_idxs": [3, 1, 4, 9, 7],
    "output_height": 16, "output_width": 24, "scale_x": 1.5, "scale_y": 1.25,
    "target_rotation_radians": 0.0,
}  # fmt: skip


def matrix(landmarks, options):
    """util/tflite/operations/landmarks_to_transform_matrix.cc, version 2."""
    points = landmarks[0, :, :2].astype(float)
    dx, dy = points[options["right_rotation_idx"]] - points[options["left_rotation_idx"]]
    angle = options["target_rotation_radians"] - np.arctan2(dy, dx)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turned = points[options["subset_idxs"]] @ turn.T
    low, high = turned.min(0), turned.max(0)
    made = np.eye(4)
    extents = options["output_width"], options["output_height"]
    scales = options["scale_x"], options["scale_y"]
    made[:2, :2] = turn.T @ np.diag((high - low) * scales / extents)
    made[:2, 3] = turn.T @ (low + high) / 2 - made[:2, :2] @ extents / 2
    return made[np.newaxis]


def landmarks_model(options, shape=(1, 12, 3)):
    return operator_model("Landmarks2TransformMatrix", [Given(shape)], [Given((1, 4, 4))],
                          ("", options))  # fmt: skip


@pytest.mark.parametrize("angle", [0.0, 0.7, -2.5])
def test_the_matrix_of_landmarks_is_that_of_the_source(angle, tmp_path):
    options = {**LANDMARKS, "target_rotation_radians": angle}
    path = tmp_path / "one.tflite"
    path.write_bytes(landmarks_model(options))
    for _ in range(4):
        landmarks = GENERATOR.uniform(0, 192, (1, 12, 3)).astype(np.float32)
        made = made_by(path, landmarks, tmp_path)
        np.testing.assert_allclose(made, matrix(landmarks, options), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"subset_idxs": [0, 12]}, "an index of landmarks is unsupported, supported: 0 to 11"),
        ({"left_rotation_idx": -1}, "an index of landmarks is unsupported"),
        ({"subset_idxs": "none"}, r"subset_idxs=\(\) is unsupported"),
        ({"scale_y": 0.0}, r"scale_x, scale_y=\(24, 16, 1.5, 0.0\) is unsupported"),
    ],
)
def test_other_options_of_landmarks_are_refused(change, reason, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(landmarks_model({**LANDMARKS, **change}))
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)


def test_landmarks_of_another_shape_are_refused(tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(landmarks_model(LANDMARKS, (1, 1, 12, 3)))
    with pytest.raises(UnsupportedOperatorsError, match="supported: 1, landmarks, 3"):
        build(path, tmp_path)
