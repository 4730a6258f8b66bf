"""The operators that the native core runs, one theme per module.

Each is a dataclass: its fields are its attributes in the program file, its traits state what the
planner may rely on. `schema.py` collects them and generates the schema of the file from them.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.operators.attention import LARGEST_HEAD, Attention, CacheRows, Rotary
    from arenite.runtime.operators.base import (
        FLOAT_BYTES,
        NO_PADDING,
        PANEL,
        UNSTORED,
        AlongLastAxes,
        Clamped,
        Pair,
        RowWise,
        RuntimeOperator,
        Sides,
        is_one_image,
        makes_one_image,
    )
    from arenite.runtime.operators.blocks import BlockGather, BlockProduct
    from arenite.runtime.operators.convolution import (
        Conv2D,
        Convolution,
        DepthwiseConv2D,
        PackFilter,
        TransposedConv2D,
        WeightGradient,
    )
    from arenite.runtime.operators.elementwise import (
        Binary,
        BinaryFunction,
        Convert,
        DynamicQuantise,
        MultiplyAdd,
        Select,
        Unary,
        UnaryFunction,
    )
    from arenite.runtime.operators.halves import SHORT_FLOATS
    from arenite.runtime.operators.linear import FullyConnected, MatMul
    from arenite.runtime.operators.loops import (
        InnerProgram,
        While,
        inner_programs,
        throughout,
        with_inner,
    )
    from arenite.runtime.operators.movement import (
        Append,
        Copy,
        Fetch,
        Gather,
        LoadWeights,
        PackBits,
        Resize2D,
        ScatterAdd,
        ScatterElements,
        ScatterFunction,
        ScatterSlices,
        Spill,
        UnpackBits,
        Wait,
    )
    from arenite.runtime.operators.moves import Move
    from arenite.runtime.operators.normalisation import (
        Hardmax,
        InstanceNorm,
        L2Norm,
        LayerNorm,
        LocalResponseNorm,
        Softmax,
    )
    from arenite.runtime.operators.recurrent import DynamicLstm, Gru, Lstm, Rnn, Svdf
    from arenite.runtime.operators.reduction import (
        ArgReduce,
        CumulativeSum,
        Pool2D,
        PoolKind,
        Reduce,
        ReduceFunction,
        TopK,
    )
    from arenite.runtime.operators.schema import operator_tables, operators, with_tables
    from arenite.runtime.operators.special import (
        DetectionPostProcess,
        External,
        NonMaxSuppression,
        Rfft2D,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "FLOAT_BYTES", "LARGEST_HEAD", "NO_PADDING", "PANEL", "SHORT_FLOATS", "UNSTORED",
    "AlongLastAxes", "Append", "ArgReduce", "Attention", "Binary", "BinaryFunction",
    "BlockGather", "BlockProduct", "CacheRows", "Clamped", "Conv2D", "Convert", "Convolution",
    "Copy",
    "CumulativeSum", "DepthwiseConv2D", "DetectionPostProcess", "DynamicLstm", "DynamicQuantise",
    "External", "Fetch", "FullyConnected", "Gather", "Gru", "Hardmax", "InnerProgram",
    "InstanceNorm", "L2Norm", "LayerNorm", "LoadWeights", "LocalResponseNorm", "Lstm",
    "MatMul", "Move", "MultiplyAdd", "NonMaxSuppression", "PackBits", "PackFilter", "Pair",
    "Pool2D", "PoolKind", "Reduce", "ReduceFunction", "Resize2D", "Rfft2D", "Rnn", "Rotary",
    "RowWise",
    "RuntimeOperator", "ScatterAdd", "ScatterElements", "ScatterFunction", "ScatterSlices",
    "Select", "Sides", "Softmax", "Spill", "Svdf", "TopK",
    "TransposedConv2D", "Unary", "UnaryFunction", "UnpackBits", "Wait", "WeightGradient",
    "While", "inner_programs", "is_one_image", "makes_one_image", "operator_tables", "operators",
    "throughout", "with_inner", "with_tables",
]  # fmt: skip
