"""Every kernel, on a model of one operator, against TensorFlow Lite's reference kernels.

Integers must agree to the bit: with TensorFlow Lite Micro's interpreter, or where that has no such
kernel with LiteRT's.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arenite.runtime.session import Session
from arenite.strategies import find
from support.exported_c import Machine, Micro, compiled, drawn, exported
from support.tflite_layers import integer_lstm
from support.tflite_operator import Given, Reference, operator_model, weights

SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
RUNS = 4
S8, U8, F32 = "int8", "uint8", "float32"


def act(dtype: str, *shape: int, scale: float = 0.05, zero: int = 3) -> Given:
    if dtype == F32:
        return Given(shape)
    return Given(shape, dtype, None, (scale,), zero + (128 if dtype == U8 else 0))


def filter_of(dtype: str, shape: tuple[int, ...], axis: int, *, per_channel: bool) -> Given:
    random = np.random.default_rng(5)
    if dtype == F32:
        return weights(random.standard_normal(shape).astype(np.float32))
    if dtype == U8:
        return weights(random.integers(0, 256, shape).astype(np.uint8), scales=(0.01,),
                       zero_point=121)  # fmt: skip
    count = shape[axis] if per_channel else 1
    scales = tuple(map(float, random.uniform(0.004, 0.02, count)))
    return weights(random.integers(-127, 128, shape).astype(np.int8), scales=scales, axis=axis)


def bias_of(dtype: str, filter_: Given, count: int) -> Given:
    random = np.random.default_rng(6)
    if dtype == F32:
        return weights(random.standard_normal(count).astype(np.float32))
    scales = tuple(0.05 * each for each in filter_.scales)
    return weights(random.integers(-2000, 2000, count).astype(np.int32), scales=scales)


def conv(
    dtype: str = S8,
    size: tuple[int, int] = (9, 7),
    depth: tuple[int, int] = (5, 6),
    window: tuple[int, int] = (3, 3),
    stride: int = 1,
    dilation: int = 1,
    padding: int = 0,
    activation: int = 0,
    *,
    per_channel: bool = True,
    groups: int = 1,
    batch: int = 1,
) -> bytes:
    (height, width), (inputs, outputs) = size, depth
    extents = [dilation * (each - 1) + 1 for each in window]
    out = [
        -(-length // stride) if padding == 0 else (length - extent) // stride + 1
        for length, extent in zip(size, extents, strict=True)
    ]
    kernel = filter_of(dtype, (outputs, *window, inputs // groups), 0, per_channel=per_channel)
    return operator_model(
        "CONV_2D",
        [act(dtype, batch, height, width, inputs), kernel, bias_of(dtype, kernel, outputs)],
        [act(dtype, batch, *out, outputs, scale=0.11, zero=-5)],
        (
            "Conv2DOptions",
            {"strideH": stride, "strideW": stride, "dilationHFactor": dilation,
             "dilationWFactor": dilation, "padding": padding,
             "fusedActivationFunction": activation},
        ),
    )  # fmt: skip


def depthwise(
    dtype: str = S8, depth: int = 6, multiplier: int = 1, stride: int = 1, padding: int = 0,
    dilation: int = 1, activation: int = 0, batch: int = 1,
) -> bytes:  # fmt: skip
    size, window = (8, 9), (3, 3)
    extent = 2 * dilation + 1
    out = [
        -(-length // stride) if padding == 0 else (length - extent) // stride + 1
        for length in size
    ]
    outputs = depth * multiplier
    kernel = filter_of(dtype, (1, *window, outputs), 3, per_channel=True)
    return operator_model(
        "DEPTHWISE_CONV_2D",
        [act(dtype, batch, *size, depth), kernel, bias_of(dtype, kernel, outputs)],
        [act(dtype, batch, *out, outputs, scale=0.06, zero=7)],
        (
            "DepthwiseConv2DOptions",
            {"strideH": stride, "strideW": stride, "dilationHFactor": dilation,
             "dilationWFactor": dilation, "padding": padding, "depthMultiplier": multiplier,
             "fusedActivationFunction": activation},
        ),
    )  # fmt: skip


def dense(dtype: str = S8, rows: int = 2, activation: int = 0, *, with_bias: bool = True) -> bytes:
    kernel = filter_of(dtype, (10, 13), 0, per_channel=False)
    return operator_model(
        "FULLY_CONNECTED",
        [act(dtype, rows, 13), kernel, bias_of(dtype, kernel, 10) if with_bias else None],
        [act(dtype, rows, 10, scale=0.09, zero=-11)],
        ("FullyConnectedOptions", {"fusedActivationFunction": activation}),
    )


def pool(kind: str, dtype: str, padding: int = 0, stride: int = 2, activation: int = 0) -> bytes:
    out = [-(-each // stride) if padding == 0 else (each - 3) // stride + 1 for each in (9, 8)]
    return operator_model(
        kind,
        [act(dtype, 1, 9, 8, 5)],
        [act(dtype, 1, *out, 5)],
        (
            "Pool2DOptions",
            {"strideH": stride, "strideW": stride, "filterHeight": 3, "filterWidth": 3,
             "padding": padding, "fusedActivationFunction": activation},
        ),
    )  # fmt: skip


def binary(
    kind: str, dtype: str, one: tuple[int, ...], other: tuple[int, ...], activation: int = 0
) -> bytes:
    shape = np.broadcast_shapes(one, other)
    name = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
    same = kind in ("MAXIMUM", "MINIMUM")
    stated = {} if same else {"fusedActivationFunction": activation}
    scales = (0.05, 0.05, 0.05) if same else (0.05, 0.031, 0.083)
    zeros = (3, 3, 3) if same else (3, -7, 12)
    tensors = [
        act(dtype, *each, scale=scale, zero=zero)
        for each, scale, zero in zip((one, other, shape), scales, zeros, strict=True)
    ]
    options = (name.get(kind, "MaximumMinimumOptions"), stated)
    return operator_model(kind, tensors[:2], tensors[2:], options)


def unary(
    kind: str, dtype: str, scale: float, zero: int, options: object = None, own: float = 0.07
) -> bytes:
    source, result = act(dtype, 3, 50, scale=own), act(dtype, 3, 50, scale=scale, zero=zero)
    return operator_model(kind, [source], [result], options)


def softmax(dtype: str, width: int = 11) -> bytes:
    return operator_model(
        "SOFTMAX",
        [act(dtype, 3, width, scale=0.15)],
        [act(dtype, 3, width, scale=1 / 256, zero=-128)],
        ("SoftmaxOptions", {"beta": 1.0}),
    )


def mean(dtype: str, axes: tuple[int, ...], *, keep: bool, scale: float = 0.05) -> bytes:
    shape = [5, 7, 6, 4]
    shape[0] = 1
    out = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
    return operator_model(
        "MEAN",
        [act(dtype, *shape), weights(np.array(axes, np.int32))],
        [act(dtype, *out, scale=scale, zero=-9)],
        ("ReducerOptions", {"keepDims": keep}),
    )


def largest(kind: str, axes: tuple[int, ...]) -> bytes:
    return operator_model(
        kind,
        [act(F32, 1, 7, 6, 4), weights(np.array(axes, np.int32))],
        [act(F32, *(n for i, n in enumerate((1, 7, 6, 4)) if i not in axes))],
        ("ReducerOptions", {"keepDims": False}),
    )


def resize(kind: str, dtype: str, size: tuple[int, int], *, halves: bool, aligned: bool) -> bytes:
    name = {"RESIZE_BILINEAR": "ResizeBilinearOptions"}
    return operator_model(
        kind,
        [act(dtype, 1, 4, 5, 3), weights(np.array(size, np.int32))],
        [act(dtype, 1, *size, 3)],
        (
            name.get(kind, "ResizeNearestNeighborOptions"),
            {"alignCorners": aligned, "halfPixelCenters": halves},
        ),
    )


def concatenation(dtype: str, axis: int) -> bytes:
    shapes = [[1, 4, 3, 2] for _ in range(3)]
    for number, shape in enumerate(shapes):
        shape[axis] = number + 1
    whole = list(shapes[0])
    whole[axis] = 6
    return operator_model(
        "CONCATENATION",
        [act(dtype, *each) for each in shapes],
        [act(dtype, *whole)],
        ("ConcatenationOptions", {"axis": axis}),
    )


def pad(dtype: str) -> bytes:
    widths = np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32)
    return operator_model("PAD", [act(dtype, 1, 3, 4, 2), weights(widths)],
                          [act(dtype, 1, 6, 7, 2)])  # fmt: skip


def transpose(dtype: str, axes: tuple[int, ...], shape: tuple[int, ...]) -> bytes:
    return operator_model(
        "TRANSPOSE",
        [act(dtype, *shape), weights(np.array(axes, np.int32))],
        [act(dtype, *(shape[axis] for axis in axes))],
    )


def strided_slice(dtype: str) -> bytes:
    begin, end, strides = ([0, 1, 0, 1], [1, 6, 8, 4], [1, 2, 3, 1])
    return operator_model(
        "STRIDED_SLICE",
        [act(dtype, 1, 6, 8, 4), *(weights(np.array(e, np.int32)) for e in (begin, end, strides))],
        [act(dtype, 1, 3, 3, 3)],
        ("StridedSliceOptions", {}),
    )


def arg_max(dtype: str, out: str = "int32") -> bytes:
    return operator_model(
        "ARG_MAX",
        [act(dtype, 4, 9), weights(np.array(1, np.int32))],
        [Given((4,), out)],
        ("ArgMaxOptions", {"outputType": {"int32": 2, "int64": 4}[out]}),
    )


def quantise(source: str, result: str) -> bytes:
    kind = "DEQUANTIZE" if result == F32 else "QUANTIZE"
    scales = {S8: 0.07, U8: 0.07, "int16": 0.003, F32: 1.0}
    into = {S8: (0.031, -20), "int16": (1e-4, 0), "int32": (1e-4, 0), F32: (1.0, 0)}
    zero = 0 if source == "int16" else 3
    (scale, to_zero) = into[result]
    return operator_model(
        kind,
        [act(source, 3, 40, scale=scales[source], zero=zero)],
        [act(result, 3, 40, scale=scale, zero=to_zero)],
    )


def svdf(dtype: str = S8, state: str = "int16", activation: int = 1) -> bytes:
    random = np.random.default_rng(2)
    filters, rank, memory, inputs = 8, 2, 5, 7
    if dtype == F32:
        features = weights(random.standard_normal((filters, inputs)).astype(np.float32))
        times = weights(random.standard_normal((filters, memory)).astype(np.float32))
        bias = weights(random.standard_normal(filters // rank).astype(np.float32))
        kept = Given((2, filters * memory), F32, None, is_variable=True)
    else:
        features = weights(random.integers(-127, 128, (filters, inputs)).astype(np.int8),
                           scales=(0.01,))  # fmt: skip
        limit = 120 if state == "int8" else 30000
        times = weights(random.integers(-limit, limit, (filters, memory)).astype(state),
                        scales=(1e-4 if state == "int16" else 0.02,))  # fmt: skip
        bias = weights(random.integers(-500, 500, filters // rank).astype(np.int32),
                       scales=(1e-4 * 2e-3,))  # fmt: skip
        kept = Given((2, filters * memory), state, None,
                     (2e-3 if state == "int16" else 0.3,), 0, is_variable=True)  # fmt: skip
    return operator_model(
        "SVDF",
        [act(dtype, 2, inputs), features, times, bias, kept],
        [act(dtype, 2, filters // rank, scale=0.4, zero=4)],
        ("SVDFOptions", {"rank": rank, "fusedActivationFunction": activation}),
    )


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
    "depthwise": depthwise,
    "depthwise of a stride": lambda: depthwise(stride=2, activation=3),
    "depthwise, several outputs a channel": lambda: depthwise(depth=3, multiplier=3),
    "depthwise, one channel": lambda: depthwise(depth=1, multiplier=6),
    "depthwise, dilated": lambda: depthwise(dilation=2),
    "depthwise without padding": lambda: depthwise(padding=1, batch=2),
    "depthwise of fours": lambda: depthwise(depth=8),
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
    "softmax": lambda: softmax(S8),
    "softmax of many": lambda: softmax(S8, 900),
    "logistic": lambda: unary("LOGISTIC", S8, 1 / 256, -128),
    "tangent": lambda: unary("TANH", S8, 1 / 128, 0),
    "relu": lambda: unary("RELU", S8, 0.04, -100),
    "relu6": lambda: unary("RELU6", S8, 0.07, 3),
    "leaky": lambda: unary("LEAKY_RELU", S8, 0.06, 5, ("LeakyReluOptions", {"alpha": 0.3})),
    "hard swish": lambda: unary("HARD_SWISH", S8, 0.06, -100),
    "hard swish of a small scale": lambda: unary("HARD_SWISH", S8, 0.03, 5, None, 0.02),
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
    "lstm": integer_lstm,
    "lstm, clipped": lambda: integer_lstm(clip=3.0, zero_point=5),
    "lstm, times first": lambda: integer_lstm(time_major=True, batch=3, cell_scale=2**-12),
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
}


def check(
    data: bytes, folder: Path, reference: Callable[[Path], object], tolerance: float
) -> None:
    path = folder / "model.tflite"
    path.write_bytes(data)
    export = exported(path)
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


@pytest.mark.parametrize("name", LITERT)
def test_bytes_agree_with_the_reference_kernels_of_litert_to_the_bit(
    name: str, tmp_path: Path
) -> None:
    check(LITERT[name](), tmp_path, Reference, 0.0)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_agree_with_the_reference_kernels_of_litert(name: str, tmp_path: Path) -> None:
    check(FLOATS[name](), tmp_path, Reference, 1e-5)


def test_a_filter_that_keeps_bytes_agrees_with_our_runtime(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(svdf(S8, "int8", 0))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", *SANITIZED))
    with Session(path, strategy=find("greedy-by-size")) as session:
        for seed in range(RUNS):
            inputs = drawn(export, seed)
            (expected,) = session.run(inputs).values()
            (found,) = machine.run(inputs).values()
            # Ours rounds once, by a scale of floats.
            assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1
