"""TFLite's operators, each on small operands of numbers."""

from collections.abc import Iterator, Sequence
from functools import cache

import ai_edge_litert.schema_py_generated as schema
import numpy as np
from flatbuffers import flexbuffers

from bench.sweep.outcome import Array
from bench.sweep.tflite_file import Operator, Options, Tensor, constant

_GENERATOR = np.random.default_rng(5)


def x(*shape: int, dtype: str = "float32") -> Tensor:
    """Return a tensor that is computed or fed."""
    return Tensor(shape, dtype)


def numbers(*shape: int) -> Tensor:
    """Return a constant of random numbers."""
    return constant(_GENERATOR.standard_normal(shape).astype(np.float32))


def integers(*values: object, dtype: str = "int32") -> Tensor:
    """Return a constant list of integers."""
    return constant(np.array(values, dtype))


def scalar(value: float, dtype: str = "int32") -> Tensor:
    """Return a constant without dimensions."""
    return constant(np.array(value, dtype))


IMAGE = x(1, 6, 8, 4)
ROWS = x(4, 9)
STEPS = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
POOL = ("Pool2DOptions", {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2})
HALVED = x(1, 3, 4, 4)
TRUTH = {"dtype": "bool"}


def pads(*pairs: tuple[int, int]) -> Tensor:
    """Return the padding before and after each axis."""
    return constant(np.array(pairs, np.int32))


def feeds(operator: Operator, seed: int = 0) -> list[Array]:
    """Return random arrays for the inputs of a model of this operator."""
    generator = np.random.default_rng(seed)
    return [_drawn(generator, each) for each in operator.fed]


def _drawn(generator: np.random.Generator, tensor: Tensor) -> Array:
    shape: Sequence[int] = tensor.shape
    if tensor.dtype.startswith("complex"):
        both = generator.standard_normal((2, *shape))
        return np.asarray(both[0] + 1j * both[1], tensor.dtype)
    if tensor.dtype.startswith("float"):
        return np.asarray(np.abs(generator.standard_normal(shape)) + 0.1, tensor.dtype)
    if tensor.scales:
        limits = np.iinfo(tensor.dtype)
        return np.asarray(generator.integers(limits.min, limits.max + 1, shape), tensor.dtype)
    low, high = (0, 2) if tensor.dtype == "bool" else (1, 5)
    return np.asarray(generator.integers(low, high, shape), tensor.dtype)


def convolution(
    code: str, shape: tuple[int, ...], weights: Tensor, result: Tensor, kind: str
) -> Operator:
    """Return a convolution with a bias."""
    bias = numbers(result.shape[-1])
    return Operator(code, (x(*shape), weights, bias), (result,), (kind, STEPS))


def lstm(code: str, units: int = 4, size: int = 3) -> Operator:
    """Return an LSTM over a sequence."""
    gates = [numbers(units, size) for _ in range(4)]
    recurrent = [numbers(units, units) for _ in range(4)]
    biases = [numbers(units) for _ in range(4)]
    state = Tensor((2, units), is_variable=True)
    inputs = (
        x(2, 5, size), *gates, *recurrent, None, None, None, *biases, None, None, state, state,
        None, None, None, None,
    )  # fmt: skip
    return Operator(
        code,
        inputs,
        (x(2, 5, units),),
        ("UnidirectionalSequenceLSTMOptions", {"fusedActivationFunction": 4}),
    )


def rnn(code: str, source: Tensor, result: Tensor, kind: str) -> Operator:
    """Return a recurrent layer with a state."""
    state = Tensor((2, 4), is_variable=True)
    inputs = (source, numbers(4, 3), numbers(4, 4), numbers(4), state)
    return Operator(code, inputs, (result,), (kind, {"fusedActivationFunction": 4}))


def svdf() -> Operator:
    """Return an SVDF layer."""
    state = Tensor((2, 10 * 6), is_variable=True)
    inputs = (x(2, 7), numbers(10, 7), numbers(10, 6), numbers(5), state)
    return Operator("SVDF", inputs, (x(2, 5),), ("SVDFOptions", {"rank": 2}))


def nms(code: str) -> Operator:
    """Return a suppression of boxes that overlap."""
    inputs = (x(6, 4), x(6), scalar(4), scalar(0.5, "float32"), scalar(0.1, "float32"))
    found, count = x(4, dtype="int32"), Tensor((), "int32")
    if code.endswith("V4"):
        return Operator(code, inputs, (found, count), ("NonMaxSuppressionV4Options", {}))
    return Operator(
        code,
        (*inputs, scalar(0.0, "float32")),
        (found, x(4), count),
        ("NonMaxSuppressionV5Options", {}),
    )


def segments(code: str) -> Operator:
    """Return a reduction of the rows of each segment."""
    ids, kind = integers(0, 2, 1, 2), "".join(each.title() for each in code.split("_"))
    return Operator(code, (ROWS, ids, scalar(3)), (x(3, 9),), (f"{kind}Options", {}))


def control(code: str) -> Operator:
    """Return an operator that enters subgraphs."""
    body = Operator("ABS", (ROWS,), (ROWS,))
    if code == "IF":
        condition = Tensor((), "bool")
        return Operator(
            code,
            (condition, ROWS),
            (ROWS,),
            ("IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}),
            (body, Operator("NEG", (ROWS,), (ROWS,))),
        )
    if code in ("CALL_ONCE", "CALL"):
        options = ("CallOnceOptions", {"initSubgraphIndex": 1})
        return Operator(
            code,
            (ROWS,),
            (ROWS,),
            options if code == "CALL_ONCE" else ("CallOptions", {"subgraph": 1}),
            (body,),
        )
    if code == "STABLEHLO_COMPOSITE":
        return Operator(
            code,
            (ROWS,),
            (ROWS,),
            ("StableHLOCompositeOptions", {"decompositionSubgraphIndex": 1}),
            (body,),
        )
    value = Tensor((), "float32")
    test = Operator("LESS", (value, scalar(3.0, "float32")), (Tensor((), "bool"),))
    kind = "WhileOptions" if code == "WHILE" else "StablehloWhileOptions"
    return Operator(
        code,
        (value,),
        (value,),
        (kind, {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}),
        (test, Operator("EXP", (value,), (value,))),
    )


def detection_options() -> bytes:
    """Return the options of a detector's last step."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in (
            ("max_detections", 1),  # of rows without one LiteRT leaves the bytes as they were
            ("max_classes_per_detection", 1),
            ("num_classes", 2),
        ):
            builder.Key(name)
            builder.Int(value)
        for name, number in (
            ("nms_score_threshold", 0.1),
            ("nms_iou_threshold", 0.5),
            ("y_scale", 10.0),
            ("x_scale", 10.0),
            ("h_scale", 5.0),
            ("w_scale", 5.0),
        ):
            builder.Key(name)
            builder.Float(number)
    return bytes(builder.Finish())


CUSTOM = ("TFLite_Detection_PostProcess",)
"""Custom operators that deployed models have."""


def written_out() -> Iterator[Operator]:
    """Yield the operators that have operands of their own kind."""
    yield Operator("SOFTMAX", (ROWS,), (ROWS,), ("SoftmaxOptions", {"beta": 1.0}))
    yield Operator("LOG_SOFTMAX", (ROWS,), (ROWS,), ("LogSoftmaxOptions", {}))
    yield Operator("PRELU", (IMAGE, numbers(1, 1, 4)), (IMAGE,))
    yield convolution("CONV_2D", (1, 6, 8, 4), numbers(5, 3, 3, 4), x(1, 6, 8, 5), "Conv2DOptions")
    yield Operator(
        "DEPTHWISE_CONV_2D",
        (IMAGE, numbers(1, 3, 3, 8), numbers(8)),
        (x(1, 6, 8, 8),),
        ("DepthwiseConv2DOptions", {**STEPS, "depthMultiplier": 2}),
    )
    yield Operator(
        "TRANSPOSE_CONV",
        (integers(1, 12, 16, 5), numbers(5, 3, 3, 4), IMAGE),
        (x(1, 12, 16, 5),),
        ("TransposeConvOptions", {"strideH": 2, "strideW": 2}),
    )
    yield Operator(
        "CONV_3D",
        (x(1, 4, 5, 6, 2), numbers(3, 3, 3, 2, 4), numbers(4)),
        (x(1, 4, 5, 6, 4),),
        ("Conv3DOptions", {"strideD": 1, "strideH": 1, "strideW": 1}),
    )
    yield Operator(
        "CONV_3D_TRANSPOSE",
        (integers(1, 4, 5, 6, 4), numbers(3, 3, 3, 4, 2), x(1, 4, 5, 6, 2), numbers(4)),
        (x(1, 4, 5, 6, 4),),
        ("Conv3DOptions", {"strideD": 1, "strideH": 1, "strideW": 1}),
    )
    yield Operator(
        "FULLY_CONNECTED",
        (x(3, 6), numbers(5, 6), numbers(5)),
        (x(3, 5),),
        ("FullyConnectedOptions", {}),
    )
    yield Operator(
        "BATCH_MATMUL",
        (x(2, 3, 4), x(2, 5, 4)),
        (x(2, 3, 5),),
        ("BatchMatMulOptions", {"adjY": True}),
    )
    for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        yield Operator(code, (IMAGE,), (HALVED,), POOL)
    yield Operator("RESHAPE", (IMAGE, integers(1, 48, 4)), (x(1, 48, 4),))
    yield Operator("STABLEHLO_RESHAPE", (IMAGE,), (x(1, 48, 4),))
    yield Operator("SQUEEZE", (x(1, 6, 1, 4),), (x(6, 4),), ("SqueezeOptions", {}))
    yield Operator("EXPAND_DIMS", (ROWS, scalar(1)), (x(4, 1, 9),))
    yield Operator("BITCAST", (ROWS,), (x(4, 9, dtype="int32"),))
    yield Operator("TRANSPOSE", (IMAGE, integers(0, 3, 1, 2)), (x(1, 4, 6, 8),))
    yield Operator(
        "STABLEHLO_TRANSPOSE",
        (ROWS,),
        (x(9, 4),),
        ("StablehloTransposeOptions", {"permutation": [1, 0]}),
    )
    yield Operator("PAD", (IMAGE, pads((0, 0), (1, 2), (0, 3), (0, 0))), (x(1, 9, 11, 4),))
    yield Operator(
        "PADV2",
        (IMAGE, pads((0, 0), (1, 2), (0, 3), (0, 0)), scalar(1.5, "float32")),
        (x(1, 9, 11, 4),),
    )
    yield Operator(
        "MIRROR_PAD",
        (IMAGE, pads((0, 0), (1, 2), (2, 1), (0, 0))),
        (x(1, 9, 11, 4),),
        ("MirrorPadOptions", {"mode": 0}),
    )
    yield Operator("SLICE", (IMAGE, integers(0, 1, 2, 0), integers(1, 3, 4, 4)), (HALVED,))
    yield Operator(
        "STRIDED_SLICE",
        (IMAGE, integers(0, 1, 0, 0), integers(1, 6, 8, 4), integers(1, 2, 3, 1)),
        (x(1, 3, 3, 4),),
        ("StridedSliceOptions", {}),
    )
    yield Operator("DYNAMIC_UPDATE_SLICE", (ROWS, x(2, 3), integers(1, 2)), (ROWS,))
    yield Operator(
        "CONCATENATION", (IMAGE, IMAGE), (x(1, 6, 16, 4),), ("ConcatenationOptions", {"axis": 2})
    )
    yield Operator(
        "STABLEHLO_CONCATENATE",
        (ROWS, ROWS),
        (x(8, 9),),
        ("StablehloConcatenateOptions", {"dimension": 0}),
    )
    yield Operator(
        "PACK", (x(3, 4), x(3, 4)), (x(3, 2, 4),), ("PackOptions", {"valuesCount": 2, "axis": 1})
    )
    yield Operator(
        "UNPACK", (x(3, 2, 4),), (x(3, 4), x(3, 4)), ("UnpackOptions", {"num": 2, "axis": 1})
    )
    yield Operator(
        "SPLIT",
        (scalar(2), IMAGE),
        (x(1, 6, 4, 4), x(1, 6, 4, 4)),
        ("SplitOptions", {"numSplits": 2}),
    )
    yield Operator(
        "SPLIT_V",
        (IMAGE, integers(3, 5), scalar(2)),
        (x(1, 6, 3, 4), x(1, 6, 5, 4)),
        ("SplitVOptions", {"numSplits": 2}),
    )
    yield Operator("TILE", (x(2, 3), integers(2, 2)), (x(4, 6),))
    yield Operator(
        "BROADCAST_ARGS", (x(2, dtype="int32"), x(2, dtype="int32")), (x(2, dtype="int32"),)
    )
    yield Operator("BROADCAST_TO", (x(1, 9), integers(4, 9)), (ROWS,))
    yield Operator(
        "DEPTH_TO_SPACE", (IMAGE,), (x(1, 12, 16, 1),), ("DepthToSpaceOptions", {"blockSize": 2})
    )
    yield Operator(
        "SPACE_TO_DEPTH", (IMAGE,), (x(1, 3, 4, 16),), ("SpaceToDepthOptions", {"blockSize": 2})
    )
    yield Operator(
        "SPACE_TO_BATCH_ND", (IMAGE, integers(2, 2), pads((0, 0), (0, 0))), (x(4, 3, 4, 4),)
    )
    yield Operator(
        "BATCH_TO_SPACE_ND", (x(4, 3, 4, 4), integers(2, 2), pads((0, 0), (0, 0))), (IMAGE,)
    )
    yield Operator(
        "RESIZE_BILINEAR",
        (IMAGE, integers(9, 12)),
        (x(1, 9, 12, 4),),
        ("ResizeBilinearOptions", {"halfPixelCenters": True}),
    )
    yield Operator(
        "RESIZE_NEAREST_NEIGHBOR",
        (IMAGE, integers(12, 16)),
        (x(1, 12, 16, 4),),
        ("ResizeNearestNeighborOptions", {}),
    )
    yield Operator("GATHER", (x(5, 3), integers(4, 0, 4)), (x(3, 3),), ("GatherOptions", {}))
    yield Operator("GATHER_ND", (x(5, 3), integers([4, 0], [1, 2])), (x(2),))
    yield Operator("SCATTER_ND", (integers([4], [1]), x(2, 3), integers(5, 3)), (x(5, 3),))
    yield Operator("EMBEDDING_LOOKUP", (integers(2, 0), numbers(5, 3)), (x(2, 3),))
    yield Operator("CUMSUM", (x(2, 5), scalar(1)), (x(2, 5),), ("CumsumOptions", {}))
    yield Operator("REVERSE_V2", (ROWS, integers(1)), (ROWS,))
    yield Operator(
        "REVERSE_SEQUENCE",
        (x(2, 5, 3), integers(3, 5)),
        (x(2, 5, 3),),
        ("ReverseSequenceOptions", {"seqDim": 1, "batchDim": 0}),
    )
    yield Operator("ADD_N", (ROWS, ROWS, ROWS), (ROWS,))
    yield Operator("CAST", (ROWS,), (x(4, 9, dtype="int32"),), ("CastOptions", {}))
    yield Operator("QUANTIZE", (ROWS,), (Tensor((4, 9), "int8", None, (0.05,), 3),))
    yield Operator(
        "ARG_MAX", (ROWS, scalar(1)), (x(4, dtype="int32"),), ("ArgMaxOptions", {"outputType": 2})
    )
    yield Operator(
        "ARG_MIN", (ROWS, scalar(1)), (x(4, dtype="int32"),), ("ArgMinOptions", {"outputType": 2})
    )
    yield Operator("TOPK_V2", (ROWS, scalar(3)), (x(4, 3), x(4, 3, dtype="int32")))
    yield Operator(
        "ONE_HOT",
        (x(4, dtype="int32"), scalar(3), scalar(2.0, "float32"), scalar(0.5, "float32")),
        (x(4, 3),),
        ("OneHotOptions", {}),
    )
    for code in ("LOGICAL_AND", "LOGICAL_OR"):
        yield Operator(code, (x(4, 9, **TRUTH), x(4, 9, **TRUTH)), (x(4, 9, **TRUTH),))
    yield Operator("LOGICAL_NOT", (x(4, 9, **TRUTH),), (x(4, 9, **TRUTH),))
    for code in ("REDUCE_ANY", "REDUCE_ALL"):
        yield Operator(
            code, (x(4, 9, **TRUTH), integers(1)), (x(4, **TRUTH),), ("ReducerOptions", {})
        )
    yield Operator("SELECT", (x(4, 9, **TRUTH), ROWS, ROWS), (ROWS,))
    yield Operator("SELECT_V2", (x(4, 1, **TRUTH), ROWS, x(1, 9)), (ROWS,))
    yield Operator("STABLEHLO_SELECT", (x(4, 9, **TRUTH), ROWS, ROWS), (ROWS,))
    yield Operator(
        "STABLEHLO_COMPARE",
        (ROWS, ROWS),
        (x(4, 9, **TRUTH),),
        ("StablehloCompareOptions", {"comparisonDirection": 4}),
    )
    for code in ("BITWISE_XOR", "RIGHT_SHIFT"):
        yield Operator(
            code, (x(4, 9, dtype="int32"), x(4, 9, dtype="int32")), (x(4, 9, dtype="int32"),)
        )
    yield Operator("WHERE", (x(4, **TRUTH),), (x(4, 1, dtype="int64"),))
    yield Operator("SHAPE", (ROWS,), (x(2, dtype="int32"),), ("ShapeOptions", {"outType": 2}))
    yield Operator("RANK", (ROWS,), (Tensor((), "int32"),))
    yield Operator("FILL", (integers(4, 9), Tensor((), "float32")), (ROWS,))
    yield Operator("RANGE", (scalar(0), scalar(4), scalar(1)), (x(4, dtype="int32"),))
    yield Operator(
        "UNIQUE",
        (x(4, dtype="int32"),),
        (x(4, dtype="int32"), x(4, dtype="int32")),
        ("UniqueOptions", {"idxOutType": 2}),
    )
    yield Operator(
        "SPARSE_TO_DENSE",
        (integers([0, 1], [2, 2]), integers(4, 9), x(2), scalar(0.0, "float32")),
        (ROWS,),
    )
    yield Operator("MATRIX_DIAG", (ROWS,), (x(4, 9, 9),))
    yield Operator("MATRIX_SET_DIAG", (x(4, 9), x(4)), (ROWS,))
    yield Operator("SEGMENT_SUM", (ROWS, integers(0, 0, 1, 2)), (x(3, 9),))
    for end in ("MAX", "MIN", "PROD", "SUM"):
        yield segments(f"UNSORTED_SEGMENT_{end}")
    yield Operator(
        "BUCKETIZE",
        (ROWS,),
        (x(4, 9, dtype="int32"),),
        ("BucketizeOptions", {"boundaries": [-1.0, 0.0, 1.0]}),
    )
    yield Operator("RFFT2D", (x(2, 4, 8), integers(4, 8)), (x(2, 4, 5, dtype="complex64"),))
    for code in ("REAL", "IMAG", "COMPLEX_ABS"):
        yield Operator(code, (x(4, 9, dtype="complex64"),), (ROWS,))
    for code in ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"):
        yield nms(code)
    yield lstm("UNIDIRECTIONAL_SEQUENCE_LSTM")
    yield rnn("RNN", x(2, 3), x(2, 4), "RNNOptions")
    yield rnn("UNIDIRECTIONAL_SEQUENCE_RNN", x(2, 5, 3), x(2, 5, 4), "SequenceRNNOptions")
    yield svdf()
    yield Operator(
        "DILATE", (ROWS, integers(2, 1), scalar(0.0, "float32")), (x(7, 9),), ("DilateOptions", {})
    )
    yield Operator(
        "STABLEHLO_CLAMP", (Tensor((), "float32"), ROWS, Tensor((), "float32")), (ROWS,)
    )
    yield Operator("STABLEHLO_CONVERT", (ROWS,), (x(4, 9, dtype="int32"),))
    for code in ("IF", "WHILE", "CALL_ONCE", "CALL", "STABLEHLO_WHILE", "STABLEHLO_COMPOSITE"):
        yield control(code)
    yield Operator(
        CUSTOM[0],
        (x(1, 6, 4), x(1, 6, 3), integers(*np.ones((6, 4)), dtype="float32")),
        (x(1, 1, 4), x(1, 1), x(1, 1), x(1)),
        custom_options=detection_options(),
    )


_NO_OPERATORS = frozenset({"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"})


def builtin_operators() -> list[str]:
    """Return the names of the schema's operators, sorted."""
    names = vars(schema.BuiltinOperator)
    return sorted(name for name in names if name[0] != "_" and name not in _NO_OPERATORS)


_UNARY: dict[str, Options] = {
    **dict.fromkeys((
        "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG",
        "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT",
        "SQUARE", "TANH", "ZEROS_LIKE", "STABLEHLO_LOGISTIC", "STABLEHLO_ABS",
        "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR", "STABLEHLO_LOG",
        "STABLEHLO_NEGATE", "STABLEHLO_RSQRT", "STABLEHLO_TANH", "STABLEHLO_CBRT",
    )),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.2}),
    "GELU": ("GeluOptions", {"approximate": False}),
    "FAKE_QUANT": ("FakeQuantOptions", {"min": -1.0, "max": 1.0, "numBits": 8}),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        {"radius": 1, "bias": 1.0, "alpha": 0.1, "beta": 0.5},
    ),
    "L2_NORMALIZATION": ("L2NormOptions", {}),
    "DEQUANTIZE": None,
}  # fmt: skip
_BINARY: dict[str, Options] = {
    **dict.fromkeys((
        "DIV", "MAXIMUM", "MINIMUM", "POW", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE",
        "ATAN2", "STABLEHLO_ADD", "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM",
        "STABLEHLO_MINIMUM", "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_SUBTRACT",
    )),
    "ADD": ("AddOptions", {}),
    "SUB": ("SubOptions", {}),
    "MUL": ("MulOptions", {}),
}  # fmt: skip
_COMPARED = ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL")
_REDUCED = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")


@cache
def operators() -> dict[str, Operator]:
    """Return a form of each built-in operator, and of the custom ones, by name.

    One of which nothing more is known here takes and gives one tensor, enough to see whether it
    is imported and planned.
    """
    found = {code: Operator(code, (IMAGE,), (IMAGE,), options) for code, options in _UNARY.items()}
    for code, options in _BINARY.items():
        found[code] = Operator(code, (IMAGE, IMAGE), (IMAGE,), options)
    for code in _COMPARED:
        found[code] = Operator(code, (ROWS, ROWS), (x(4, 9, **TRUTH),))
    for code in _REDUCED:
        found[code] = Operator(code, (IMAGE, integers(1, 2)), (x(1, 4),), ("ReducerOptions", {}))
    found |= {each.code: each for each in written_out()}
    for code in builtin_operators():
        found.setdefault(code, Operator(code, (IMAGE,), (IMAGE,)))
    return {code: found[code] for code in (*builtin_operators(), *CUSTOM)}
