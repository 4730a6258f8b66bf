"""For each operator of ONNX, what translates it."""

from collections.abc import Callable, Mapping

from arenite.runtime.lowering.onnx import (
    convolution,
    elementwise,
    linear,
    movement,
    normalisation,
    pooling,
    recurrent,
    reduction,
    resizing,
)
from arenite.runtime.lowering.onnx.translation import Translation

Translate = Callable[[Translation], None]

TRANSLATORS: Mapping[str, Translate] = {
    **dict.fromkeys(elementwise.UNARY, elementwise.unary),
    **dict.fromkeys(elementwise.BINARY, elementwise.binary),
    **dict.fromkeys(elementwise.VARIADIC, elementwise.variadic),
    **dict.fromkeys(reduction.REDUCTIONS, reduction.reduction),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), movement.reshape),
    **dict.fromkeys(("Dropout", "Identity"), elementwise.view),
    **dict.fromkeys(("Softmax", "LogSoftmax"), normalisation.softmax),
    **dict.fromkeys(("ArgMax", "ArgMin"), reduction.arg_reduction),
    **dict.fromkeys(("Resize", "Upsample"), resizing.resize),
    "AveragePool": pooling.average_pool,
    "BatchNormalization": normalisation.batch_normalisation,
    "Cast": elementwise.cast,
    "Clip": elementwise.clip,
    "Concat": movement.concat,
    "Conv": convolution.conv,
    "ConvTranspose": convolution.conv_transpose,
    "CumSum": reduction.cumulative_sum,
    "DepthToSpace": movement.depth_to_space,
    "Expand": movement.expand,
    "GRU": recurrent.gru,
    "Gather": movement.gather,
    "Gemm": linear.gemm,
    "GlobalAveragePool": pooling.global_average_pool,
    "GlobalMaxPool": pooling.global_max_pool,
    "InstanceNormalization": normalisation.instance_normalisation,
    "LRN": normalisation.local_response_normalisation,
    "LSTM": recurrent.lstm,
    "LayerNormalization": normalisation.layer_normalisation,
    "LpNormalization": normalisation.lp_normalisation,
    "MatMul": linear.matmul,
    "MaxPool": pooling.max_pool,
    "Mod": elementwise.modulus,
    "Pad": movement.pad,
    "Relu": elementwise.relu,
    "Slice": movement.slice_,
    "SpaceToDepth": movement.space_to_depth,
    "Split": movement.split,
    "Tile": movement.tile,
    "Transpose": movement.transpose,
    "Where": elementwise.where,
    "com.microsoft.FusedConv": convolution.fused_conv,
    "com.microsoft.Gelu": elementwise.unary,
}
