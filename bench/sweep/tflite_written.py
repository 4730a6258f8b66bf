"""The operators of TFLite that have operands of their own kind, one by one."""

from collections.abc import Iterator

import numpy as np

from sweep.tflite_file import Operator, Tensor
from sweep.tflite_layers import (
    control,
    convolution,
    detection_options,
    lstm,
    nms,
    rnn,
    segments,
    svdf,
)
from sweep.tflite_operands import (
    HALVED,
    IMAGE,
    POOL,
    ROWS,
    STEPS,
    TRUTH,
    integers,
    numbers,
    pads,
    scalar,
    x,
)

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
