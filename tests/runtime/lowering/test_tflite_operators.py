"""TFLite operators that we lower, run beside LiteRT, on numbers and on integers of 8 bits."""

import numpy as np
import pytest

from arenite.runtime import Session
from support.running import PoisonedSession, build
from support.tflite_operator import Given, Reference, operator_model, weights

GENERATOR = np.random.default_rng(7)


def numbers(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32)


def integers(*values):
    return weights(np.array(values, np.int32))


def given(*shape):
    return Given(shape)


X = given(1, 6, 8, 4)
SAME, VALID = 0, 1
STEPS = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


def unary(code, shape=(2, 5, 3), options=None):
    return code, [given(*shape)], [given(*shape)], options


def binary(code, options=None, *, other=(1, 1, 4)):
    return code, [X, given(*other)], [X], options


def reduction(code, *, keeps):
    shape = (1, 1, 1, 4) if keeps else (1, 4)
    return code, [X, integers(1, 2)], [given(*shape)], ("ReducerOptions", {"keepDims": keeps})


FLOAT = {
    **{code: unary(code) for code in (
        "ABS", "CEIL", "COS", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6",
        "RELU_N1_TO_1", "ROUND", "SIN", "SQUARE", "TANH", "ELU",
    )},
    "LEAKY_RELU": unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": 0.2})),
    "GELU": unary("GELU", options=("GeluOptions", {"approximate": False})),
    "SOFTMAX": unary("SOFTMAX", (4, 9), ("SoftmaxOptions", {"beta": 1.0})),
    "SOFTMAX with a beta": unary("SOFTMAX", (4, 9), ("SoftmaxOptions", {"beta": 0.5})),
    "LOG_SOFTMAX": unary("LOG_SOFTMAX", (4, 9), ("LogSoftmaxOptions", {})),
    "L2_NORMALIZATION": unary("L2_NORMALIZATION", (1, 2, 3, 8), ("L2NormOptions", {})),
    "ADD": binary("ADD", ("AddOptions", {"fusedActivationFunction": 1})),
    "SUB": binary("SUB", ("SubOptions", {})),
    "MUL": binary("MUL", ("MulOptions", {"fusedActivationFunction": 3})),
    "DIV": binary("DIV", ("DivOptions", {})),
    "MAXIMUM": binary("MAXIMUM"),
    "MINIMUM": binary("MINIMUM"),
    "SPACE_TO_BATCH_ND": (
        "SPACE_TO_BATCH_ND",
        [X, integers(2, 3), weights(np.array([[1, 3], [4, 0]], np.int32))],
        [given(6, 5, 4, 4)], ("SpaceToBatchNDOptions", {}),
    ),
    "BATCH_TO_SPACE_ND": (
        "BATCH_TO_SPACE_ND",
        [given(6, 5, 4, 4), integers(2, 3), weights(np.array([[1, 3], [4, 0]], np.int32))],
        [X], ("BatchToSpaceNDOptions", {}),
    ),
    "SQUARED_DIFFERENCE": binary("SQUARED_DIFFERENCE"),
    "PRELU": ("PRELU", [X, weights(numbers(1, 1, 4))], [X], None),
    "MEAN": reduction("MEAN", keeps=True),
    "SUM": reduction("SUM", keeps=False),
    "REDUCE_MAX": reduction("REDUCE_MAX", keeps=True),
    "REDUCE_MIN": reduction("REDUCE_MIN", keeps=False),
    "CONV_2D": (
        "CONV_2D", [X, weights(numbers(5, 3, 3, 4)), weights(numbers(5))], [given(1, 3, 4, 5)],
        ("Conv2DOptions", {**STEPS, "strideH": 2, "strideW": 2, "fusedActivationFunction": 1}),
    ),
    "CONV_2D dilated": (
        "CONV_2D", [X, weights(numbers(5, 3, 3, 4)), weights(numbers(5))], [given(1, 2, 4, 5)],
        ("Conv2DOptions",
         {**STEPS, "padding": VALID, "dilationHFactor": 2, "dilationWFactor": 2}),
    ),
    "DEPTHWISE_CONV_2D": (
        "DEPTHWISE_CONV_2D", [X, weights(numbers(1, 3, 3, 8)), weights(numbers(8))],
        [given(1, 6, 8, 8)], ("DepthwiseConv2DOptions", {**STEPS, "depthMultiplier": 2}),
    ),
    "TRANSPOSE_CONV": (
        "TRANSPOSE_CONV", [integers(1, 12, 16, 5), weights(numbers(5, 3, 3, 4)), X],
        [given(1, 12, 16, 5)], ("TransposeConvOptions", {"strideH": 2, "strideW": 2}),
    ),
    "FULLY_CONNECTED": (
        "FULLY_CONNECTED", [given(3, 6), weights(numbers(5, 6)), weights(numbers(5))],
        [given(3, 5)], ("FullyConnectedOptions", {"fusedActivationFunction": 1}),
    ),
    "FULLY_CONNECTED of two inputs": (
        "FULLY_CONNECTED", [given(3, 6), given(5, 6), None], [given(3, 5)],
        ("FullyConnectedOptions", {"fusedActivationFunction": 1}),
    ),
    "FULLY_CONNECTED of two inputs and a bias": (
        "FULLY_CONNECTED", [given(2, 3, 6), given(5, 6), weights(numbers(5))], [given(6, 5)],
        ("FullyConnectedOptions", {"fusedActivationFunction": 3}),
    ),
    "BATCH_MATMUL": (
        "BATCH_MATMUL", [given(2, 3, 4), given(2, 5, 4)], [given(2, 3, 5)],
        ("BatchMatMulOptions", {"adjY": True}),
    ),
    "AVERAGE_POOL_2D": (
        "AVERAGE_POOL_2D", [X], [given(1, 3, 4, 4)],
        ("Pool2DOptions", {"strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 3}),
    ),
    "MAX_POOL_2D": (
        "MAX_POOL_2D", [X], [given(1, 3, 4, 4)],
        ("Pool2DOptions", {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}),
    ),
    "RESHAPE": ("RESHAPE", [X, integers(1, 48, 4)], [given(1, 48, 4)], None),
    "TRANSPOSE": ("TRANSPOSE", [X, integers(0, 3, 1, 2)], [given(1, 4, 6, 8)], None),
    "PAD": ("PAD", [X, weights(np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32))],
            [given(1, 9, 11, 4)], None),
    "MIRROR_PAD": (
        "MIRROR_PAD", [X, weights(np.array([[0, 0], [1, 2], [2, 1], [0, 0]], np.int32))],
        [given(1, 9, 11, 4)], ("MirrorPadOptions", {"mode": 0}),
    ),
    "SLICE": ("SLICE", [X, integers(0, 1, 2, 0), integers(1, 3, 4, 4)], [given(1, 3, 4, 4)],
              ("SliceOptions", {})),
    "STRIDED_SLICE": (
        "STRIDED_SLICE", [X, integers(0, 1, 0, 0), integers(1, 6, 8, 4), integers(1, 2, 3, 1)],
        [given(1, 3, 3, 4)], ("StridedSliceOptions", {}),
    ),
    "CONCATENATION": (
        "CONCATENATION", [X, X], [given(1, 6, 16, 4)], ("ConcatenationOptions", {"axis": 2})
    ),
    "PACK": ("PACK", [given(3, 4), given(3, 4)], [given(3, 2, 4)],
             ("PackOptions", {"valuesCount": 2, "axis": 1})),
    "TILE": ("TILE", [given(2, 3), integers(2, 2)], [given(4, 6)], None),
    "DEPTH_TO_SPACE": ("DEPTH_TO_SPACE", [X], [given(1, 12, 16, 1)],
                       ("DepthToSpaceOptions", {"blockSize": 2})),
    "SPACE_TO_DEPTH": ("SPACE_TO_DEPTH", [X], [given(1, 3, 4, 16)],
                       ("SpaceToDepthOptions", {"blockSize": 2})),
    "RESIZE_BILINEAR": ("RESIZE_BILINEAR", [X, integers(9, 12)], [given(1, 9, 12, 4)],
                        ("ResizeBilinearOptions", {"halfPixelCenters": True})),
    "RESIZE_NEAREST_NEIGHBOR": (
        "RESIZE_NEAREST_NEIGHBOR", [X, integers(12, 16)], [given(1, 12, 16, 4)],
        ("ResizeNearestNeighborOptions", {}),
    ),
    "GATHER": ("GATHER", [given(5, 3), integers(4, 0, 4)], [given(3, 3)],
               ("GatherOptions", {"axis": 0})),
    "CUMSUM": ("CUMSUM", [given(2, 5), weights(np.array(1, np.int32))], [given(2, 5)],
               ("CumsumOptions", {})),
}  # fmt: skip


def feeds(session, scale=1.0):
    made = {}
    for port in session.inputs:
        if port.dtype.kind == "f":
            made[port.name] = (GENERATOR.standard_normal(port.shape) * scale).astype(port.dtype)
        else:
            low, high = np.iinfo(port.dtype).min, np.iinfo(port.dtype).max + 1
            made[port.name] = GENERATOR.integers(low, high, port.shape).astype(port.dtype)
    return made


@pytest.mark.parametrize("name", FLOAT)
def test_an_operator_on_numbers_gives_what_litert_gives(name, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(*FLOAT[name]))
    reference = Reference(path)
    session = PoisonedSession(build(path, tmp_path))
    inputs = feeds(session)
    expected = reference.run(list(inputs.values()))
    for own, other in zip(session.run(inputs).values(), expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-5)


def eight(*shape, scale=0.05, zero_point=3, dtype="int8"):
    return Given(shape, dtype, None, (scale,), zero_point)


def filters(*shape, axis):
    count = shape[axis]
    array = GENERATOR.integers(-127, 128, shape).astype(np.int8)
    return weights(array, scales=tuple(np.linspace(0.002, 0.01, count)), axis=axis)


def bias(source, kernel):
    scales = [source.scales[0] * scale for scale in kernel.scales]
    array = GENERATOR.integers(-2000, 2000, len(scales)).astype(np.int32)
    return weights(array, scales=scales)


Q = eight(1, 6, 8, 4)
CONV, DEPTHWISE, DENSE = (
    filters(5, 3, 3, 4, axis=0), filters(1, 3, 3, 4, axis=3), filters(5, 6, axis=0)
)  # fmt: skip
SMALL = Given((1, 6, 8, 4), "int8", None, (0.03,), -5)
UNIT = {"scale": 1 / 256, "zero_point": -128}
INT8 = {
    "CONV_2D": ("CONV_2D", [Q, CONV, bias(Q, CONV)], [eight(1, 6, 8, 5, scale=0.2)],
                ("Conv2DOptions", {**STEPS, "fusedActivationFunction": 1})),
    "DEPTHWISE_CONV_2D": (
        "DEPTHWISE_CONV_2D", [Q, DEPTHWISE, bias(Q, DEPTHWISE)], [eight(1, 6, 8, 4, scale=0.1)],
        ("DepthwiseConv2DOptions", {**STEPS, "depthMultiplier": 1}),
    ),
    "FULLY_CONNECTED": (
        "FULLY_CONNECTED", [eight(3, 6), DENSE, bias(Q, DENSE)], [eight(3, 5, scale=0.1)],
        ("FullyConnectedOptions", {}),
    ),
    "ADD": ("ADD", [Q, SMALL], [eight(1, 6, 8, 4, scale=0.08)], ("AddOptions", {})),
    "SUB": ("SUB", [Q, SMALL], [eight(1, 6, 8, 4, scale=0.08)], ("SubOptions", {})),
    "MUL": ("MUL", [Q, SMALL], [eight(1, 6, 8, 4, scale=0.1)], ("MulOptions", {})),
    "AVERAGE_POOL_2D": (
        "AVERAGE_POOL_2D", [Q], [eight(1, 3, 4, 4)],
        ("Pool2DOptions", {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}),
    ),
    "MAX_POOL_2D": (
        "MAX_POOL_2D", [Q], [eight(1, 3, 4, 4)],
        ("Pool2DOptions", {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}),
    ),
    "MEAN": ("MEAN", [Q, integers(1)], [eight(1, 8, 4)], ("ReducerOptions", {})),
    "LOGISTIC": ("LOGISTIC", [Q], [eight(1, 6, 8, 4, **UNIT)], None),
    "TANH": ("TANH", [Q], [eight(1, 6, 8, 4, scale=1 / 128, zero_point=0)], None),
    "HARD_SWISH": ("HARD_SWISH", [Q], [eight(1, 6, 8, 4, scale=0.04)], None),
    "LEAKY_RELU": ("LEAKY_RELU", [Q], [eight(1, 6, 8, 4)], ("LeakyReluOptions", {"alpha": 0.3})),
    "SOFTMAX": ("SOFTMAX", [eight(4, 9)], [eight(4, 9, **UNIT)],
                ("SoftmaxOptions", {"beta": 1.0})),
    "QUANTIZE": ("QUANTIZE", [given(4, 9)], [eight(4, 9)], None),
    "DEQUANTIZE": ("DEQUANTIZE", [eight(4, 9)], [given(4, 9)], None),
    "QUANTIZE with another scale": ("QUANTIZE", [Q], [SMALL], None),
    "PAD": ("PAD", [Q, weights(np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32))],
            [eight(1, 9, 11, 4)], None),
    "CONCATENATION": ("CONCATENATION", [Q, Q], [eight(1, 6, 8, 8)],
                      ("ConcatenationOptions", {"axis": 3})),
    "RESHAPE": ("RESHAPE", [Q, integers(1, 192)], [eight(1, 192)], None),
    "TRANSPOSE": ("TRANSPOSE", [Q, integers(0, 3, 1, 2)], [eight(1, 4, 6, 8)], None),
}  # fmt: skip


@pytest.mark.parametrize("name", INT8)
def test_an_operator_on_integers_gives_what_litert_gives_within_one_quantum(name, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(*INT8[name]))
    reference = Reference(path)
    session = Session(build(path, tmp_path))
    inputs = feeds(session, 4.0)
    expected = reference.run(list(inputs.values()))
    for own, other in zip(session.run(inputs).values(), expected, strict=True):
        assert own.dtype == other.dtype
        tolerance = 1 if own.dtype.kind == "i" else 1e-6
        np.testing.assert_allclose(own.astype(float), other.astype(float), rtol=0, atol=tolerance)
        assert len(np.unique(own)) > 3


def lstm_model(batch=2, times=5, inputs=3, units=4, clip=0.0):
    gates = [weights(numbers(units, inputs)) for _ in range(4)]
    recurrent = [weights(numbers(units, units)) for _ in range(4)]
    biases = [weights(numbers(units)) for _ in range(4)]
    state = Given((batch, units), is_variable=True)
    tensors = [
        given(batch, times, inputs), *gates, *recurrent, None, None, None, *biases, None, None,
        state, state, None, None, None, None,
    ]  # fmt: skip
    return operator_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", tensors, [given(batch, times, units)],
        ("UnidirectionalSequenceLSTMOptions", {"fusedActivationFunction": 4, "cellClip": clip}),
    )  # fmt: skip


@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_an_lstm_keeps_its_state_from_run_to_run_as_litert_does(clip, tmp_path):
    path = tmp_path / "lstm.tflite"
    path.write_bytes(lstm_model(clip=clip))
    reference = Reference(path)
    session = PoisonedSession(build(path, tmp_path))
    inputs = feeds(session)
    first, second = (next(iter(session.run(inputs).values())) for _ in range(2))
    for own in (first, second):
        np.testing.assert_allclose(own, reference.run(list(inputs.values()))[0], atol=1e-5)
    assert not np.allclose(first, second)
    session.reset()
    np.testing.assert_array_equal(next(iter(session.run(inputs).values())), first)


def svdf_model(*, quantised, rank=2, batch=2, inputs=7, units=5, memory=6):
    filter_count = units * rank
    state_shape = (batch, filter_count * memory)
    if not quantised:
        tensors = [
            given(batch, inputs), weights(numbers(filter_count, inputs)),
            weights(numbers(filter_count, memory)), weights(numbers(units)),
            Given(state_shape, is_variable=True),
        ]  # fmt: skip
        output = given(batch, units)
    else:
        features = GENERATOR.integers(-127, 128, (filter_count, inputs)).astype(np.int8)
        times = GENERATOR.integers(-3000, 3000, (filter_count, memory)).astype(np.int16)
        offsets = GENERATOR.integers(-9000, 9000, units).astype(np.int32)
        tensors = [
            eight(batch, inputs), weights(features, scales=(0.01,)),
            weights(times, scales=(0.001,)), weights(offsets, scales=(1e-6,)),
            Given(state_shape, "int16", None, (0.001,), 0, 0, is_variable=True),
        ]  # fmt: skip
        output = eight(batch, units, scale=0.5, zero_point=-128)
    return operator_model(
        "SVDF",
        tensors,
        [output],
        ("SVDFOptions", {"rank": rank, "fusedActivationFunction": int(quantised)}),
    )


@pytest.mark.parametrize("quantised", [False, True])
def test_an_svdf_keeps_its_state_from_run_to_run_as_litert_does(quantised, tmp_path):
    path = tmp_path / "svdf.tflite"
    path.write_bytes(svdf_model(quantised=quantised))
    reference = Reference(path)
    session = PoisonedSession(build(path, tmp_path))
    runs = [feeds(session) for _ in range(4)]
    own = [next(iter(session.run(inputs).values())) for inputs in runs]
    for result, inputs in zip(own, runs, strict=True):
        (expected,) = reference.run(list(inputs.values()))
        tolerance = 1 if quantised else 1e-4
        np.testing.assert_allclose(
            result.astype(float), expected.astype(float), rtol=1e-5, atol=tolerance
        )
    assert not np.array_equal(own[0], own[-1])
    session.reset()
    np.testing.assert_array_equal(next(iter(session.run(runs[0]).values())), own[0])


@pytest.mark.parametrize("code", ["MEAN", "SUM"])
def test_an_axis_of_length_1_is_reduced_where_it_lies(code, tmp_path):
    path = tmp_path / "one.tflite"
    operands = [given(1, 4, 1, 3), integers(2)], [given(1, 4, 1, 3)]
    path.write_bytes(operator_model(code, *operands, ("ReducerOptions", {"keepDims": True})))
    with Session(build(path, tmp_path)) as session:
        (port,) = session.inputs
        source = np.arange(12, dtype=np.float32).reshape(port.shape)
        (made,) = session.run({port.name: source}).values()
        np.testing.assert_array_equal(made, source)
        assert session.arena_bytes == 64


def hybrid(array, axis):
    """Weights of 8 bits, a scale for each index of an axis, and the numbers they stand for."""
    scales = np.float32(0.01) * (1 + np.arange(array.shape[axis], dtype=np.float32))
    shape = [-1 if each == axis else 1 for each in range(array.ndim)]
    stated = weights(array, scales=tuple(map(float, scales)), axis=axis)
    return stated, weights(array.astype(np.float32) * scales.reshape(shape))


HYBRID = {
    "FULLY_CONNECTED": (given(3, 6), (5, 6), 0, given(3, 5), ("FullyConnectedOptions", {})),
    "CONV_2D": (
        X, (5, 3, 3, 4), 0, given(1, 6, 8, 5),
        ("Conv2DOptions", {"padding": SAME, "strideH": 1, "strideW": 1}),
    ),
    "DEPTHWISE_CONV_2D": (
        X, (1, 3, 3, 4), 3, given(1, 6, 8, 4),
        ("DepthwiseConv2DOptions", {"padding": SAME, "strideH": 1, "strideW": 1}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", HYBRID)
def test_weights_of_8_bits_beside_numbers_are_taken_as_numbers(code, tmp_path):
    source, shape, axis, result, options = HYBRID[code]
    array = np.random.default_rng(11).integers(-127, 128, shape).astype(np.int8)
    made = []
    x = numbers(*source.shape)
    for number, filters in enumerate(hybrid(array, axis)):
        path = tmp_path / f"{number}.tflite"
        path.write_bytes(operator_model(code, [source, filters], [result], options))
        with Session(build(path, tmp_path)) as session:
            (port,) = session.inputs
            made += session.run({port.name: x}).values()
    np.testing.assert_array_equal(made[0], made[1])
