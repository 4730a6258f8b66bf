"""Gradient rules by operator of ONNX."""

from collections.abc import Mapping
from typing import Final

from arenite.training import rules_elementwise as elementwise
from arenite.training import rules_layers as layers
from arenite.training import rules_shapes as shapes
from arenite.training import rules_windows as windows
from arenite.training.backward import Rule

RULES: Final[Mapping[str, Rule]] = {
    "Conv": windows.conv,
    "ConvTranspose": windows.conv_transpose,
    "Gemm": layers.gemm,
    "MatMul": layers.matmul,
    "MaxPool": windows.max_pool,
    "AveragePool": windows.average_pool,
    "GlobalAveragePool": windows.global_average_pool,
    "GlobalMaxPool": windows.global_max_pool,
    "BatchNormalization": layers.frozen,
    layers.WITH_BATCH_STATISTICS: layers.of_the_batch,
    **elementwise.OF_ONE_NUMBER,
    "LeakyRelu": elementwise.leaky_relu,
    "PRelu": elementwise.prelu,
    "Clip": elementwise.clip,
    "Elu": elementwise.elu,
    "Selu": elementwise.selu,
    "Sigmoid": elementwise.sigmoid,
    "HardSigmoid": elementwise.hard_sigmoid,
    "HardSwish": elementwise.hard_swish,
    "Softsign": elementwise.softsign,
    "Softmax": elementwise.softmax,
    "LogSoftmax": elementwise.log_softmax,
    "Add": elementwise.add,
    "Sum": elementwise.add,
    "Mean": elementwise.mean,
    "Sub": elementwise.subtract,
    "Mul": elementwise.multiply,
    "Div": elementwise.divide,
    "Pow": elementwise.power,
    "Max": elementwise.largest,
    "Min": elementwise.largest,
    "Where": elementwise.where,
    "Identity": elementwise.identity,
    "Dropout": elementwise.identity,
    "Cast": elementwise.cast,
    **dict.fromkeys(
        ("ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
         "LessOrEqual", "Round", "Shape", "Sign", "Size"),
        elementwise.no_gradient,
    ),
    "ReduceSum": shapes.reduce_sum,
    "ReduceMean": shapes.reduce_mean,
    "ReduceMax": shapes.reduce_max,
    "ReduceMin": shapes.reduce_max,
    "ReduceL2": shapes.reduce_l2,
    "ReduceSumSquare": shapes.reduce_sum_square,
    "Reshape": shapes.reshape,
    "Flatten": shapes.reshape,
    "Squeeze": shapes.reshape,
    "Unsqueeze": shapes.reshape,
    "Transpose": shapes.transpose,
    "Concat": shapes.concat,
    "Split": shapes.split,
    "Slice": shapes.cut,
    "Pad": shapes.pad,
    "Expand": shapes.expand,
    "Tile": shapes.tile,
    "Gather": shapes.gather,
    "Resize": shapes.resize,
    "DepthToSpace": shapes.depth_to_space,
    "SpaceToDepth": shapes.space_to_depth,
}  # fmt: skip
"""Operators without a rule are refused by name."""
