"""For each operator of TFLite, what translates it."""

from collections.abc import Callable, Mapping

from arenite.runtime.lowering.tflite import (
    elementwise,
    linear,
    movement,
    pooling,
    recurrent,
    resizing,
)
from arenite.runtime.lowering.tflite.translation import Translation

Translate = Callable[[Translation], None]

TRANSLATORS: Mapping[str, Translate] = {
    **dict.fromkeys(elementwise.UNARY, elementwise.unary),
    **dict.fromkeys(elementwise.CLAMPS, elementwise.relu),
    **dict.fromkeys(elementwise.BINARY, elementwise.binary),
    **dict.fromkeys(pooling.REDUCTIONS, pooling.reduction),
    **dict.fromkeys(("CAST", "DEQUANTIZE", "QUANTIZE"), elementwise.convert),
    **dict.fromkeys(("SELECT", "SELECT_V2"), elementwise.select),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), pooling.pool),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), pooling.arg_reduction),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX"), pooling.softmax),
    **dict.fromkeys(("EXPAND_DIMS", "RESHAPE", "SQUEEZE"), movement.reshape),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2"), movement.pad),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), resizing.resize),
    **dict.fromkeys(("SPLIT", "SPLIT_V"), movement.split),
    "BATCH_MATMUL": linear.batch_matmul,
    "BATCH_TO_SPACE_ND": linear.batch_to_space,
    "BROADCAST_TO": movement.broadcast_to,
    "CONCATENATION": movement.concatenation,
    "CONV_2D": linear.conv_2d,
    "CUMSUM": pooling.cumulative_sum,
    "DEPTHWISE_CONV_2D": linear.depthwise_conv_2d,
    "DEPTH_TO_SPACE": movement.depth_to_space,
    "ELU": elementwise.elu,
    "FULLY_CONNECTED": linear.fully_connected,
    "GATHER": movement.gather,
    "GELU": elementwise.gelu,
    "L2_NORMALIZATION": pooling.l2_normalisation,
    "LEAKY_RELU": elementwise.leaky_relu,
    "LOCAL_RESPONSE_NORMALIZATION": pooling.local_response_normalisation,
    "PACK": movement.pack,
    "SLICE": movement.slice_,
    "SPACE_TO_BATCH_ND": movement.space_to_batch,
    "SPACE_TO_DEPTH": movement.space_to_depth,
    "STRIDED_SLICE": movement.strided_slice,
    "SVDF": recurrent.svdf,
    "TILE": movement.tile,
    "TRANSPOSE": movement.transpose,
    "TRANSPOSE_CONV": linear.transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": recurrent.sequence_lstm,
    "UNPACK": movement.unpack,
}
