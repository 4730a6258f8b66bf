"""Every kernel, on a model of one operator, against TensorFlow Lite's reference kernels.

Integers must agree to the bit: with TensorFlow Lite Micro's interpreter, or where that has no such
kernel with LiteRT's.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arenite.runtime.cexport import NotExportedError
from support.exported_c import Machine, Micro, Ours, compiled, drawn, exported
from support.operator_models import (
    F32,
    S8,
    U8,
    act,
    arg_max,
    binary,
    cast,
    compare,
    concatenation,
    conv,
    dense,
    depthwise,
    floor_divide,
    gather,
    largest,
    matmul,
    mean,
    pad,
    pool,
    quantise,
    resize,
    select,
    signal_window,
    softmax,
    strided_slice,
    svdf,
    transpose,
    transpose_conv,
    unary,
)
from support.sixteen_bits import CASES as OF_16_BITS
from support.tflite_layers import integer_lstm
from support.tflite_operator import Given, Reference, operator_model

SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
RUNS = 4

MICRO: dict[str, Callable[[], bytes]] = {
    "conv": conv,
    "conv of a stride": lambda: conv(stride=2, activation=3),
    "conv without padding": lambda: conv(padding=1, activation=1),
    "conv, dilated": lambda: conv(dilation=2),
    "conv of one pixel": lambda: conv(window=(1, 1)),
    "conv of one pixel of a stride": lambda: conv(window=(1, 1), stride=2),
    "conv, one scale": lambda: conv(per_channel=False),
    "conv, tall window": lambda: conv(window=(5, 2), depth=(1, 9)),
    "conv of a batch": lambda: conv(batch=3),
    "conv wider than the image": lambda: conv(size=(2, 2), window=(5, 5)),
    "conv of fours": lambda: conv(depth=(8, 21), padding=0, activation=3),
    "conv of fours wider than the image": lambda: conv(size=(2, 3), depth=(4, 16), window=(5, 5)),
    "conv of a row too long to gather": lambda: conv(depth=(9, 8)),
    "conv, all results of some outputs alike": lambda: conv(extreme=True),
    "conv of one pixel, many outputs": lambda: conv(window=(1, 1), depth=(7, 15)),
    "depthwise": depthwise,
    "depthwise of a stride": lambda: depthwise(stride=2, activation=3),
    "depthwise, several outputs a channel": lambda: depthwise(depth=3, multiplier=3),
    "depthwise, one channel": lambda: depthwise(depth=1, multiplier=6),
    "depthwise, dilated": lambda: depthwise(dilation=2),
    "depthwise without padding": lambda: depthwise(padding=1, batch=2),
    "depthwise of fours": lambda: depthwise(depth=8),
    "depthwise of fours of a stride": lambda: depthwise(depth=8, stride=2, activation=3),
    "depthwise of fours, dilated": lambda: depthwise(depth=4, dilation=3),
    "dense": dense,
    "dense with a clamp": lambda: dense(activation=1),
    "dense without bias": lambda: dense(with_bias=False),
    "average": lambda: pool("AVERAGE_POOL_2D", S8),
    "average, clamped": lambda: pool("AVERAGE_POOL_2D", S8, 1, 1, 3),
    "maximum pool": lambda: pool("MAX_POOL_2D", S8, activation=1),
    "add": lambda: binary("ADD", S8, (1, 4, 5, 3), (1, 4, 5, 3), 1),
    "add of a channel": lambda: binary("ADD", S8, (1, 4, 5, 3), (3,)),
    "subtract": lambda: binary("SUB", S8, (2, 30), (2, 30)),
    "multiply": lambda: binary("MUL", S8, (1, 4, 5, 3), (1, 4, 5, 3)),
    "multiply by a pixel": lambda: binary("MUL", S8, (1, 4, 5, 3), (1, 1, 1, 3), 3),
    "multiply a pixel": lambda: binary("MUL", S8, (1, 1, 1, 3), (1, 4, 5, 3)),
    "maximum": lambda: binary("MAXIMUM", S8, (2, 30), (2, 30)),
    "minimum": lambda: binary("MINIMUM", S8, (2, 30), (2, 30)),
    "squared difference": lambda: binary("SQUARED_DIFFERENCE", S8, (1, 4, 5, 3), (1, 4, 5, 1)),
    "slopes of channels": lambda: binary("PRELU", S8, (1, 4, 5, 3), (1, 1, 3)),
    "reciprocal root": lambda: unary("RSQRT", S8, 0.02, -110, None, 0.013, -128),
    "softmax": lambda: softmax(S8),
    "softmax of many": lambda: softmax(S8, 900),
    "logistic": lambda: unary("LOGISTIC", S8, 1 / 256, -128),
    "tangent": lambda: unary("TANH", S8, 1 / 128, 0),
    "relu": lambda: unary("RELU", S8, 0.04, -100),
    "relu6": lambda: unary("RELU6", S8, 0.07, 3),
    "leaky": lambda: unary("LEAKY_RELU", S8, 0.06, 5, ("LeakyReluOptions", {"alpha": 0.3})),
    "hard swish": lambda: unary("HARD_SWISH", S8, 0.06, -100),
    "hard swish of a small scale": lambda: unary("HARD_SWISH", S8, 0.03, 5, None, 0.02),
    "the largest": lambda: largest("REDUCE_MAX", (1, 2), S8),
    "the smallest of channels": lambda: largest("REDUCE_MIN", (3,), S8),
    "mean of an image": lambda: mean(S8, (1, 2), keep=True),
    "mean, another scale": lambda: mean(S8, (1, 2), keep=False, scale=0.021),
    "mean of channels": lambda: mean(S8, (3,), keep=False),
    "requantise": lambda: quantise(S8, S8),
    "quantise": lambda: quantise(F32, S8),
    "dequantise": lambda: quantise(S8, F32),
    "requantise 16 bits": lambda: quantise("int16", S8),
    "requantise 16 bits to 32": lambda: quantise("int16", "int32"),
    "quantise to 16 bits": lambda: quantise(F32, "int16"),
    "nearest": lambda: resize(
        "RESIZE_NEAREST_NEIGHBOR", S8, (8, 10), halves=False, aligned=False
    ),
    "bilinear, twice as large": lambda: resize(
        "RESIZE_BILINEAR", S8, (8, 10), halves=True, aligned=False
    ),
    "concatenation of rows": lambda: concatenation(S8, 1),
    "concatenation of channels": lambda: concatenation(S8, 3),
    "pad": lambda: pad(S8),
    "transpose": lambda: transpose(S8, (0, 2, 3, 1), (1, 4, 5, 3)),
    "strided slice": lambda: strided_slice(S8),
    "largest": lambda: arg_max(S8),
    "svdf": svdf,
    "svdf that keeps bytes": lambda: svdf(S8, "int8"),
    "svdf that keeps bytes of a zero point": lambda: svdf(S8, "int8", state_zero=-9),
    "svdf whose bytes wrap": lambda: svdf(S8, "int8", state_zero=100),
    "lstm": integer_lstm,
    "product of two": lambda: matmul(S8, (3, 4, 5), (3, 5, 6)),
    "product of two, the second transposed": lambda: matmul(
        S8, (2, 3, 7, 9), (2, 3, 4, 9), adjoint=True
    ),
    "transposed conv": lambda: transpose_conv(S8),
    "transposed conv without padding": lambda: transpose_conv(S8, padding=1, batch=2),
    "transposed conv of one step": lambda: transpose_conv(S8, stride=1, depth=(3, 2)),
    "gather": lambda: gather(S8),
    "signal window": lambda: signal_window(np.arange(0, 4096, 256, np.int16), (2, 160), 12),
    "signal window, clamped": lambda: signal_window(np.arange(-7, 9, dtype=np.int16), (160,), 1),
    "lstm, clipped": lambda: integer_lstm(clip=3.0, zero_point=5),
    "lstm, times first": lambda: integer_lstm(time_major=True, batch=3, cell_scale=2**-12),
    "lstm of large sums": lambda: integer_lstm(units=40, batch=1, cell_scale=2**-13),
    "lstm of large cells": lambda: integer_lstm(cell_scale=2**-9),
}  # fmt: skip
"""What TensorFlow Lite Micro has too."""

LITERT: dict[str, Callable[[], bytes]] = {
    "conv": lambda: conv(U8),
    "conv of a stride": lambda: conv(U8, stride=2, activation=3, window=(1, 1)),
    "depthwise": lambda: depthwise(U8, depth=8),
    "depthwise, several outputs a channel": lambda: depthwise(U8, depth=3, multiplier=2),
    "dense": lambda: dense(U8, activation=1),
    "average": lambda: pool("AVERAGE_POOL_2D", U8),
    "maximum pool": lambda: pool("MAX_POOL_2D", U8, activation=1),
    "add": lambda: binary("ADD", U8, (1, 4, 5, 3), (1, 4, 5, 3), 1),
    "multiply": lambda: binary("MUL", U8, (1, 4, 5, 3), (3,)),
    "softmax": lambda: softmax(U8),
    "concatenation": lambda: concatenation(U8, 2),
    "pad": lambda: pad(U8),
    "largest": lambda: arg_max(U8, "int64"),
    "grouped conv": lambda: conv(depth=(6, 10), groups=2),
    "product of two, one for a batch": lambda: matmul(S8, (2, 3, 4, 5), (5, 6)),
    "product of two, the first transposed": lambda: matmul(S8, (5, 4), (5, 6), transposed=True),
    "transposed conv": lambda: transpose_conv(U8),
    "gather of slices of a batch": lambda: gather(S8, axis=1, batch=1),
    "gather of the first axis": lambda: gather(U8, axis=0),
    "select": lambda: select(S8, (2, 30), (2, 30), (2, 30)),
    "select by row": lambda: select(S8, (2, 1), (2, 30), (1,)),
    "equal": lambda: compare("EQUAL", "float32"),
    "less": lambda: compare("LESS", "int32"),
    "not equal": lambda: compare("NOT_EQUAL", "int64"),
    "and": lambda: compare("LOGICAL_AND", "bool"),
    "or": lambda: compare("LOGICAL_OR", "bool"),
    "truths to numbers": lambda: cast("bool", "float32"),
    "numbers to truths": lambda: cast("float32", "bool"),
    "numbers to integers": lambda: cast("float32", "int32"),
    "numbers to long integers": lambda: cast("float32", "int64"),
    "integers to numbers": lambda: cast("int32", "float32"),
    "long integers to numbers": lambda: cast("int64", "float32"),
    "integers to long ones": lambda: cast("int32", "int64"),
    "long integers to short ones": lambda: cast("int64", "int32"),
    "16 bits to 32": lambda: cast("int16", "int32"),
    "32 bits to 16": lambda: cast("int32", "int16"),
    "quotients rounded down": lambda: floor_divide(-7, 3, 2, -1, 5),
}
"""What it refuses: bytes without a sign for the most part."""

FLOATS: dict[str, Callable[[], bytes]] = {
    "conv": lambda: conv(F32, stride=2, activation=3),
    "conv of one pixel": lambda: conv(F32, window=(1, 1), activation=1),
    "conv, dilated": lambda: conv(F32, dilation=2),
    "grouped conv": lambda: conv(F32, depth=(6, 10), groups=2),
    "depthwise": lambda: depthwise(F32, activation=1),
    "depthwise, several outputs a channel": lambda: depthwise(F32, depth=3, multiplier=2),
    "dense": lambda: dense(F32, activation=1),
    "average": lambda: pool("AVERAGE_POOL_2D", F32),
    "maximum pool": lambda: pool("MAX_POOL_2D", F32, activation=3),
    "add": lambda: binary("ADD", F32, (1, 4, 5, 3), (1, 4, 5, 3), 1),
    "subtract a channel": lambda: binary("SUB", F32, (1, 4, 5, 3), (3,)),
    "multiply": lambda: binary("MUL", F32, (1, 4, 5, 3), (1, 4, 5, 1)),
    "divide": lambda: binary("DIV", F32, (2, 30), (2, 30)),
    "maximum": lambda: binary("MAXIMUM", F32, (2, 30), (2, 30)),
    "softmax": lambda: softmax(F32),
    "logistic": lambda: unary("LOGISTIC", F32, 1, 0),
    "tangent": lambda: unary("TANH", F32, 1, 0),
    "relu6": lambda: unary("RELU6", F32, 1, 0),
    "elu": lambda: unary("ELU", F32, 1, 0),
    "hard swish": lambda: unary("HARD_SWISH", F32, 1, 0),
    "mean": lambda: mean(F32, (1, 2), keep=True),
    "the largest": lambda: largest("REDUCE_MAX", (1, 2)),
    "the smallest of channels": lambda: largest("REDUCE_MIN", (3,)),
    "nearest": lambda: resize("RESIZE_NEAREST_NEIGHBOR", F32, (7, 9), halves=False, aligned=False),
    "bilinear": lambda: resize("RESIZE_BILINEAR", F32, (7, 9), halves=True, aligned=False),
    "bilinear, aligned": lambda: resize(
        "RESIZE_BILINEAR", F32, (7, 9), halves=False, aligned=True
    ),
    "concatenation": lambda: concatenation(F32, 3),
    "pad": lambda: pad(F32),
    "transpose": lambda: transpose(F32, (3, 1, 0, 2), (2, 4, 5, 3)),
    "strided slice": lambda: strided_slice(F32),
    "largest": lambda: arg_max(F32),
    "svdf": lambda: svdf(F32),
    "product of two": lambda: matmul(F32, (3, 4, 5), (3, 5, 6)),
    "product of two, one for a batch": lambda: matmul(F32, (2, 3, 4, 5), (5, 6)),
    "product of two of many batches": lambda: matmul(F32, (2, 1, 4, 5), (3, 6, 5), adjoint=True),
    "product of two, the first transposed": lambda: matmul(
        F32, (2, 5, 4), (5, 6), transposed=True
    ),
    "transposed conv": lambda: transpose_conv(F32, stride=3),
    "transposed conv without padding": lambda: transpose_conv(F32, padding=1, batch=2),
    "gather": lambda: gather(F32, "int64", axis=2),
    "select": lambda: select(F32, (2, 1, 1), (2, 5, 30), (1,)),
    "power": lambda: binary("POW", F32, (2, 30), (1,)),
    "normalisation": lambda: operator_model(
        "L2_NORMALIZATION", [Given((2, 3, 7))], [Given((2, 3, 7))], ("L2NormOptions", {})
    ),
}


def check(
    data: bytes,
    folder: Path,
    reference: Callable[[Path], object],
    tolerance: float,
    rounding: str = "double",
) -> None:
    path = folder / "model.tflite"
    path.write_bytes(data)
    export = exported(path, rounding=rounding)
    machine = Machine.of(export, compiled(export, folder / "c", *SANITIZED))
    oracle = reference(path)
    for seed in range(RUNS):
        inputs = drawn(export, seed)
        (expected,) = oracle.run(list(inputs.values()))  # type: ignore[attr-defined]
        (found,) = machine.run(inputs).values()
        found = found.reshape(expected.shape)
        assert found.dtype == expected.dtype
        if tolerance:
            np.testing.assert_allclose(found, expected, tolerance, tolerance)
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MICRO)
def test_bytes_agree_with_tensorflow_lite_micro_to_the_bit(name: str, tmp_path: Path) -> None:
    check(MICRO[name](), tmp_path, Micro, 0.0)


@pytest.mark.parametrize("result", [S8, "int16"])
def test_sums_of_32_bits_agree_with_tensorflow_lite_micro_to_the_bit(result, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(quantise("int32", result))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", *SANITIZED))
    limits = np.iinfo(np.int32)
    sums = np.random.default_rng(0).integers(limits.min, limits.max, (3, 40), np.int32)
    sums[0, :2] = limits.min, limits.max
    (port,) = export.component.models[0].inputs
    (found,) = machine.run({port.port.name: sums}).values()
    (expected,) = Micro(path).run([sums])
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    assert len(np.unique(found)) > 50


def test_sums_of_a_larger_scale_than_their_result_are_refused(tmp_path):
    path = tmp_path / "model.tflite"
    sums, result = act("int32", 3, 40, scale=0.5, zero=0), act(S8, 3, 40, scale=0.25, zero=0)
    path.write_bytes(operator_model("QUANTIZE", [sums], [result]))
    with pytest.raises(NotExportedError, match=r"int32 of scale 0\.5 .* to scale 0\.25 is unsup"):
        exported(path)


@pytest.mark.parametrize("name", OF_16_BITS)
def test_numbers_of_16_bits_agree_with_tensorflow_lite_micro_to_the_bit(
    name: str, tmp_path: Path
) -> None:
    reference = Reference if name == "REDUCE_MAX" else Micro  # that has none
    check(operator_model(*OF_16_BITS[name]), tmp_path, reference, 0.0)


@pytest.mark.parametrize("name", LITERT)
def test_bytes_agree_with_the_reference_kernels_of_litert_to_the_bit(
    name: str, tmp_path: Path
) -> None:
    check(LITERT[name](), tmp_path, Reference, 0.0)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_agree_with_the_reference_kernels_of_litert(name: str, tmp_path: Path) -> None:
    check(FLOATS[name](), tmp_path, Reference, 1e-5)


def test_the_matrix_of_landmarks_agrees_with_our_runtime(tmp_path: Path) -> None:
    options = {
        "left_rotation_idx": 3, "right_rotation_idx": 7, "subset_idxs": [3, 1, 4, 9, 7],
        "output_height": 16, "output_width": 24, "scale_x": 1.5, "scale_y": 1.25,
    }  # fmt: skip
    data = operator_model("Landmarks2TransformMatrix", [Given((1, 12, 3))], [Given((1, 4, 4))],
                          ("", options))  # fmt: skip
    check(data, tmp_path, Ours, 1e-5)


def test_a_filter_that_keeps_bytes_agrees_with_our_runtime(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(svdf(S8, "int8", 0))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", *SANITIZED))
    oracle = Ours(path)
    for seed in range(RUNS):
        inputs = drawn(export, seed)
        (expected,) = oracle.run(list(inputs.values()))
        (found,) = machine.run(inputs).values()
        # Ours rounds once, by a scale of floats.
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


EVEN = (
    "conv of a stride", "depthwise", "dense with a clamp", "average, clamped", "add", "subtract",
    "multiply by a pixel", "softmax", "logistic", "hard swish", "leaky", "mean, another scale",
    "requantise", "quantise", "bilinear, twice as large", "transposed conv",
)  # fmt: skip


@pytest.mark.parametrize("name", EVEN)
def test_bytes_rounded_to_even_agree_with_our_runtime_to_the_bit(
    name: str, tmp_path: Path
) -> None:
    check(MICRO[name](), tmp_path, Ours, 0.0, "even")


@pytest.mark.parametrize("name", ["product of two", "svdf", "lstm"])
def test_bytes_without_a_kernel_that_rounds_to_even_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(MICRO[name]())
    with pytest.raises(NotExportedError, match="rounding=even is unsupported for"):
        exported(path, rounding="even")
