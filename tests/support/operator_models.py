"""TFLite models of one operator each, of bytes or floats."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from support.tflite_operator import Given, operator_model, weights

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
    extreme: bool = False,
) -> bytes:
    """Return a convolution; `extreme` ones have outputs whose results are all alike."""
    (height, width), (inputs, outputs) = size, depth
    extents = [dilation * (each - 1) + 1 for each in window]
    out = [
        -(-length // stride) if padding == 0 else (length - extent) // stride + 1
        for length, extent in zip(size, extents, strict=True)
    ]
    kernel = filter_of(dtype, (outputs, *window, inputs // groups), 0, per_channel=per_channel)
    bias = bias_of(dtype, kernel, outputs)
    if extreme:
        assert kernel.array is not None
        assert bias.array is not None
        bias.array[:3] = 2**30, -(2**30), 7
        kernel.array[2] = 0
        scales = (1e-9, 3e-10, 1e-12, *kernel.scales[3:])
        kernel, bias = replace(kernel, scales=scales), replace(bias, scales=scales)
    return operator_model(
        "CONV_2D",
        [act(dtype, batch, height, width, inputs), kernel, bias],
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
    dilation: int = 1, activation: int = 0, batch: int = 1, window: tuple[int, int] = (3, 3),
) -> bytes:  # fmt: skip
    size = (8, 9)
    extents = [dilation * (each - 1) + 1 for each in window]
    out = [
        -(-length // stride) if padding == 0 else (length - extent) // stride + 1
        for length, extent in zip(size, extents, strict=True)
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
    same = kind in ("MAXIMUM", "MINIMUM", "POW")
    stated = {} if same else {"fusedActivationFunction": activation}
    scales = (0.05, 0.05, 0.05) if same else (0.05, 0.031, 0.083)
    zeros = (3, 3, 3) if same else (3, -7, 12)
    tensors = [
        act(dtype, *each, scale=scale, zero=zero)
        for each, scale, zero in zip((one, other, shape), scales, zeros, strict=True)
    ]
    if kind in ("PRELU", "SQUARED_DIFFERENCE"):
        return operator_model(kind, tensors[:2], tensors[2:])
    options = ("PowOptions" if kind == "POW" else name.get(kind, "MaximumMinimumOptions"), stated)
    return operator_model(kind, tensors[:2], tensors[2:], options)


def unary(
    kind: str,
    dtype: str,
    scale: float,
    zero: int,
    options: tuple[str, Mapping[str, object]] | None = None,
    own: float = 0.07,
    own_zero: int = 3,
) -> bytes:
    source = act(dtype, 3, 50, scale=own, zero=own_zero)
    result = act(dtype, 3, 50, scale=scale, zero=zero)
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


def largest(kind: str, axes: tuple[int, ...], dtype: str = F32) -> bytes:
    return operator_model(
        kind,
        [act(dtype, 1, 7, 6, 4), weights(np.array(axes, np.int32))],
        [act(dtype, *(n for i, n in enumerate((1, 7, 6, 4)) if i not in axes))],
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
    scales = {S8: 0.07, U8: 0.07, "int16": 0.003, "int32": 1.6e-9, F32: 1.0}
    into = {S8: (0.031, -20), "int16": (1e-4, 0), "int32": (1e-4, 0), F32: (1.0, 0)}
    zero = 0 if source in ("int16", "int32") else 3
    (scale, to_zero) = into[result]
    return operator_model(
        kind,
        [act(source, 3, 40, scale=scales[source], zero=zero)],
        [act(result, 3, 40, scale=scale, zero=to_zero)],
    )


def svdf(dtype: str = S8, state: str = "int16", activation: int = 1, state_zero: int = 0) -> bytes:
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
                       scales=(1e-4 * 2e-3 if state == "int16" else 0.02 * 0.3,))  # fmt: skip
        kept = Given((2, filters * memory), state, None,
                     (2e-3 if state == "int16" else 0.3,), state_zero,
                     is_variable=True)  # fmt: skip
    return operator_model(
        "SVDF",
        [act(dtype, 2, inputs), features, times, bias, kept],
        [act(dtype, 2, filters // rank, scale=0.4, zero=4)],
        ("SVDFOptions", {"rank": rank, "fusedActivationFunction": activation}),
    )


def matmul(
    dtype: str, one: tuple[int, ...], other: tuple[int, ...], *, adjoint: bool = False,
    transposed: bool = False,
) -> bytes:  # fmt: skip
    rows, columns = one[-1 if transposed else -2], other[-2 if adjoint else -1]
    batch = np.broadcast_shapes(one[:-2], other[:-2])
    return operator_model(
        "BATCH_MATMUL",
        [act(dtype, *one), act(dtype, *other, scale=0.02, zero=-7)],
        [act(dtype, *batch, rows, columns, scale=0.3, zero=11)],
        ("BatchMatMulOptions", {"adjX": transposed, "adjY": adjoint}),
    )


def transpose_conv(
    dtype: str, stride: int = 2, padding: int = 0, depth: tuple[int, int] = (5, 6), batch: int = 1
) -> bytes:
    (height, width), (inputs, outputs), window = (4, 5), depth, (3, 4)
    out = [
        length * stride if padding == 0 else (length - 1) * stride + taps
        for length, taps in zip((height, width), window, strict=True)
    ]
    kernel = filter_of(dtype, (outputs, *window, inputs), 0, per_channel=True)
    return operator_model(
        "TRANSPOSE_CONV",
        [weights(np.array([batch, *out, outputs], np.int32)), kernel,
         act(dtype, batch, height, width, inputs), bias_of(dtype, kernel, outputs)],
        [act(dtype, batch, *out, outputs, scale=0.11, zero=-5)],
        ("TransposeConvOptions", {"strideH": stride, "strideW": stride, "padding": padding}),
    )  # fmt: skip


def gather(dtype: str, index: str = "int32", axis: int = 1, batch: int = 0) -> bytes:
    data = (2, 5, 7)
    constant = (np.array([[3, 0, 2], [1, 1, 4]]) % data[axis]).astype(index)
    shape = (*data[:axis], *constant.shape[batch:], *data[axis + 1 :])
    return operator_model(
        "GATHER",
        [act(dtype, *data), weights(constant)],
        [act(dtype, *shape)],
        ("GatherOptions", {"axis": axis, "batchDims": batch}),
    )


def select(dtype: str, *shapes: tuple[int, ...]) -> bytes:
    return operator_model(
        "SELECT_V2",
        [Given(shapes[0], "bool"), *(act(dtype, *each) for each in shapes[1:])],
        [act(dtype, *np.broadcast_shapes(*shapes))],
        ("SelectV2Options", {}),
    )


def compare(kind: str, dtype: str) -> bytes:
    names = {"EQUAL": "EqualOptions", "NOT_EQUAL": "NotEqualOptions", "LESS": "LessOptions",
             "LOGICAL_AND": "LogicalAndOptions", "LOGICAL_OR": "LogicalOrOptions",
             "GREATER_EQUAL": "GreaterEqualOptions"}  # fmt: skip
    operands = [Given((4, 30), dtype), Given((4, 30), dtype)]
    return operator_model(kind, operands, [Given((4, 30), "bool")], (names[kind], {}))


def cast(source: str, result: str) -> bytes:
    codes = {"float32": 0, "int32": 2, "int64": 4, "bool": 6, "int16": 7}
    options = {"inDataType": codes[source], "outDataType": codes[result]}
    return operator_model(
        "CAST", [Given((3, 40), source)], [Given((3, 40), result)], ("CastOptions", options)
    )


def floor_divide(*divisors: int) -> bytes:
    given = Given((30, len(divisors)), "int32")
    operands = [given, weights(np.array(divisors, np.int32))]
    return operator_model("FLOOR_DIV", operands, [given], ("FloorDivOptions", {}))


def signal_window(window: np.ndarray, shape: tuple[int, ...], shift: int) -> bytes:
    given = Given(shape, "int16")
    return operator_model(
        "SignalWindow", [given, weights(window)], [given], ("", {"shift": shift})
    )
