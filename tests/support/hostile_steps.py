"""Steps that run, operands that do not fit them, and why each is refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from support.one_step import Given, OneStep, constant


def f32(*shape: int) -> Given:
    return Given(shape)


def f16(*shape: int) -> Given:
    return Given(shape, "float16")


def i8(*shape: int, **quantisation: Any) -> Given:
    return Given(shape, "int8", **quantisation)


def i16(*shape: int, **quantisation: Any) -> Given:
    return Given(shape, "int16", **quantisation)


def i32(*shape: int) -> Given:
    return Given(shape, "int32")


def i64(*shape: int) -> Given:
    return Given(shape, "int64")


def boolean(*shape: int) -> Given:
    return Given(shape, "bool")


def weights(*shape: int, dtype: str = "float32", **quantisation: Any) -> Given:
    return constant(np.zeros(shape, dtype), **quantisation)


SCALED: dict[str, Any] = {"scales": [0.5], "zero_point": 0}

# One of each operator that runs, in its smallest form.
SOUND = {
    "conv": OneStep("Conv2D", (f32(1, 4, 4, 2), weights(1, 3, 3, 2, 16), weights(3)),
                    (f32(1, 2, 2, 3),)),
    "conv by tiles": OneStep(
        "Conv2D", (f32(1, 4, 4, 2), weights(1, 3, 3, 2, 16), weights(3)), (f32(1, 2, 2, 3),),
        {"tile": 2}, scratch=16 * 4 * (3 * 16 + 48 + 80)),
    "conv of halves": OneStep(
        "Conv2D", (f16(1, 4, 4, 2), weights(1, 3, 3, 2, 16, dtype="float16"), weights(3)),
        (f16(1, 2, 2, 3),), scratch=4 * 16 * 2 * 9 + 192),
    "product of halves": OneStep(
        "FullyConnected", (f32(5, 8), weights(1, 8, 16, dtype="float16")), (f32(5, 3),),
        scratch=4 * 16 * 8),
    "gates of halves": OneStep(
        "Svdf", (f16(1, 2), weights(4, 2), weights(4, 3), None, f32(1, 4, 3)), (f16(1, 4),),
        kept=(4,), scratch=128),
    "quantised conv": OneStep(
        "Conv2D",
        (i8(1, 4, 4, 2, **SCALED), weights(1, 6, 64, dtype="int8", **SCALED), None, None,
         weights(3)),
        (i8(1, 2, 2, 3, **SCALED),), {"kernel": [3, 3]}),
    "depthwise conv of bytes": OneStep(
        "DepthwiseConv2D",
        (i8(1, 4, 4, 2, **SCALED), weights(1, 3, 3, 2, dtype="int8", **SCALED), None, None,
         weights(2)),
        (i8(1, 2, 2, 2, **SCALED),)),
    "sums of bytes": OneStep(
        "FullyConnected",
        (i8(2, 8, **SCALED), weights(1, 3, 64, dtype="int8", **SCALED), None, i32(2, 3)),
        (i32(2, 3),)),
    "sums as bytes": OneStep(
        "FullyConnected",
        (i8(2, 8, **SCALED), weights(1, 3, 64, dtype="int8", **SCALED), None, i32(2, 3),
         weights(3)),
        (i8(2, 3, **SCALED),)),
    "dense of the run": OneStep(
        "FullyConnected", (i8(2, 8, **SCALED), i8(3, 8, **SCALED)), (i8(2, 3, **SCALED),)),
    "conv of 16 bits": OneStep(
        "Conv2D",
        (i16(1, 4, 4, 2, **SCALED), weights(3, 3, 3, 2, dtype="int8", **SCALED)),
        (i16(1, 2, 2, 3, **SCALED),)),
    "sum of 16 bits": OneStep(
        "Binary", (i16(4, **SCALED), i16(4, **SCALED)), (i16(4, **SCALED),), {"function": "add"}),
    "softmax of 16 bits": OneStep("Softmax", (i16(2, 4, **SCALED),), (i16(2, 4, **SCALED),)),
    "tanh of 16 bits": OneStep(
        "Unary", (i16(4, **SCALED),), (i16(4, scales=[2.0**-15], zero_point=0),),
        {"function": "hyperbolic_tangent"}),
    "pool of 16 bits": OneStep(
        "Pool2D", (i16(1, 4, 4, 2, **SCALED),), (i16(1, 3, 3, 2, **SCALED),),
        {"kind": "average", "window": [2, 2]}),
    "rescaled": OneStep(
        "Convert", (i16(4, **SCALED),), (i8(4, **SCALED),), {"rescales": True}),
    "suppression": OneStep(
        "NonMaxSuppression", (f32(1, 5, 4), f32(1, 2, 5)), (i64(4, 3),), {"max_outputs": 2},
        scratch=60),
    "suppression of one class": OneStep(
        "NonMaxSuppression", (f32(5, 4), f32(5)), (i32(2), i32(), f32(2)), {"max_outputs": 2},
        scratch=60),
    "depthwise": OneStep("DepthwiseConv2D", (f32(1, 4, 4, 2), weights(1, 3, 3, 2)),
                         (f32(1, 2, 2, 2),)),
    "transposed": OneStep("TransposedConv2D", (f32(1, 2, 2, 2), weights(3, 3, 3, 2)),
                          (f32(1, 4, 4, 3),)),
    "transposed by inputs": OneStep(
        "TransposedConv2D", (f32(1, 2, 2, 2), f32(2, 3, 3, 3)), (f32(1, 4, 4, 3),),
        {"by_inputs": True}, scratch=4 * 16 * 2 * 9),
    "filter of the run": OneStep("PackFilter", (f32(20, 3, 2, 2),), (f32(2, 2, 2, 3, 16),)),
    "weight gradient": OneStep("WeightGradient", (f32(1, 4, 4, 2), f32(1, 2, 2, 3)),
                               (f32(3, 2, 3, 3),)),
    "dense": OneStep("FullyConnected", (f32(2, 8), weights(1, 8, 16), weights(3)), (f32(2, 3),)),
    "matmul": OneStep("MatMul", (f32(2, 3, 4), f32(2, 4, 5)), (f32(2, 3, 5),),
                      scratch=4 * 16 * 4),
    "pool": OneStep("Pool2D", (f32(1, 4, 4, 2),), (f32(1, 2, 2, 2),),
                    {"kind": "maximum", "window": [2, 2], "strides": [2, 2]}),
    "pool with places": OneStep(
        "Pool2D", (f32(1, 4, 4, 2),), (f32(1, 2, 2, 2), i64(1, 2, 2, 2)),
        {"kind": "maximum", "window": [2, 2], "strides": [2, 2]}),
    "quantised pool": OneStep("Pool2D", (i8(1, 4, 4, 2, **SCALED),), (i8(1, 2, 2, 2, **SCALED),),
                              {"kind": "average", "window": [2, 2], "strides": [2, 2]}),
    "unary": OneStep("Unary", (f32(8),), (f32(8),), {"function": "sine"}),
    "quantised unary": OneStep("Unary", (i8(8, **SCALED),), (i8(8, **SCALED),),
                               {"function": "sine"}),
    "binary": OneStep("Binary", (f32(2, 3), f32(3)), (f32(2, 3),), {"function": "add"}),
    "quantised binary": OneStep("Binary", (i8(2, 3, **SCALED), i8(3, **SCALED)),
                                (i8(2, 3, **SCALED),), {"function": "add"}),
    "integer binary": OneStep("Binary", (i32(2, 3), i32(3)), (i32(2, 3),), {"function": "add"}),
    "select": OneStep("Select", (boolean(2, 3), f32(3), f32(2, 3)), (f32(2, 3),)),
    "softmax": OneStep("Softmax", (f32(2, 3),), (f32(2, 3),)),
    "reduce": OneStep("Reduce", (f32(2, 3, 4),), (f32(2, 4),), {"function": "sum", "axes": [1]}),
    "quantised reduce": OneStep("Reduce", (i8(2, 3, 4, **SCALED),), (i8(2, 4, **SCALED),),
                                {"function": "mean", "axes": [1]}),
    "arg reduce": OneStep("ArgReduce", (f32(2, 3),), (i32(2),), {"axis": 1}),
    "neighbours": OneStep("LocalResponseNorm", (f32(2, 4),), (f32(2, 4),), {"size": 3}),
    "attention": OneStep(
        "Attention",
        (f32(2, 3, 8), f32(2, 5, 4), f32(2, 5, 6), f32(2, 3, 4, 5), i32(2)), (f32(2, 3, 12),),
        {"heads": 4, "key_heads": 2, "scale": 1.0, "causal": True}),
    "cache rows": OneStep(
        "CacheRows", (f32(2, 3, 16),), (i8(2, 3, 20),), {"width": 8}),
    "rotary": OneStep(
        "Rotary", (f32(2, 3, 16), f32(1, 3, 2), f32(1, 3, 2)), (f32(2, 3, 16),), {"heads": 4}),
    "layer norm": OneStep("LayerNorm", (f32(2, 4), f32(4), f32(4)), (f32(2, 4),)),
    "instance norm": OneStep("InstanceNorm", (f32(1, 6, 4), f32(4), f32(4)), (f32(1, 6, 4),)),
    "l2 norm": OneStep("L2Norm", (f32(2, 4),), (f32(2, 4),)),
    "cumulative sum": OneStep("CumulativeSum", (f32(2, 4),), (f32(2, 4),), {"axis": 1}),
    "partial sums": OneStep(
        "Pool2D", (i8(1, 6, 5, 4, **SCALED),), (i16(1, 3, 1, 4, **SCALED),),
        {"kind": "average", "window": [2, 5], "strides": [2, 5]}),
    "average of sums": OneStep(
        "Pool2D", (i16(1, 3, 1, 4, **SCALED),), (i8(1, 1, 1, 4, **SCALED),),
        {"kind": "average", "window": [6, 5], "strides": [6, 5]}),
    "gather": OneStep("Gather", (f32(4, 3), i32(2)), (f32(2, 3),), {"axis": 0}),
    "gather of elements": OneStep(
        "Gather", (f32(4, 3), i32(5, 2)), (f32(5),), {"axis": 0, "num_axes": 2}),
    "convert": OneStep("Convert", (f32(8),), (i32(8),)),
    "multiply-add": OneStep("MultiplyAdd", (f32(2, 4), f32(4), f32(4)), (f32(2, 4),)),
    "lstm": OneStep(
        "Lstm",
        (f32(2, 1, 3), weights(1, 1, 3, 64), weights(1, 1, 2, 64), weights(1, 1, 64), None, None),
        (f32(2, 1, 1, 2), f32(1, 1, 2), f32(1, 1, 2)), scratch=4 * 2 * 64),
    "gru": OneStep(
        "Gru",
        (f32(2, 1, 3), weights(1, 1, 3, 48), weights(1, 1, 2, 48), weights(1, 1, 48),
         weights(1, 1, 16), None),
        (f32(2, 1, 1, 2), f32(1, 1, 2)), scratch=4 * (2 * 48 + 2)),
    "svdf": OneStep("Svdf", (f32(1, 3), weights(4, 3), weights(4, 5), None, f32(1, 4, 5)),
                    (f32(1, 4),), kept=(4,)),
    "integer lstm": OneStep(
        "Lstm",
        (i8(2, 1, 3, **SCALED),
         weights(1, 8, 3, dtype="int8", scales=[0.5] * 8, axis=1),
         weights(1, 8, 2, dtype="int8", scales=[0.5] * 8, axis=1),
         weights(1, 8, dtype="int32"), i8(1, 2, **SCALED), i16(1, 2, scales=[2**-11])),
        (i8(2, 1, 1, 2, **SCALED),), {"keeps_state": True, "hidden_scale": 0.5}, kept=(4, 5)),
    "detection": OneStep(
        "DetectionPostProcess", (f32(1, 5, 4), f32(1, 5, 3), f32(5, 4)),
        (f32(1, 6, 4), f32(1, 6), f32(1, 6), f32(1)),
        {"num_classes": 2, "max_detections": 3, "classes_per_detection": 2,
         "scales": [1.0, 1.0, 1.0, 1.0]}, scratch=5 * 24 + 3 * 16 + 5),
    "rfft2d": OneStep("Rfft2D", (f32(3, 2, 5),), (f32(3, 4, 3, 2),), {"rows": 4, "columns": 4},
                      scratch=16 * (4 + 12)),
    "places": OneStep("NonZero", (f32(2, 3),), (i64(6, 2),)),
    "top k": OneStep("TopK", (f32(2, 5),), (f32(2, 3), i32(2, 3))),
    "scatter": OneStep("ScatterAdd", (i32(2), f32(2, 3)), (f32(4, 3),)),
    "scatter of elements": OneStep(
        "ScatterElements", (f32(4, 3), i64(2, 3), f32(2, 3)), (f32(4, 3),), {"axis": 0}),
    "scatter of slices": OneStep(
        "ScatterSlices", (f32(4, 3), i32(2, 1), f32(2, 3)), (f32(4, 3),), {"function": "add"}),
    "gru with lengths": OneStep(
        "Gru",
        (f32(2, 1, 3), weights(1, 1, 3, 48), weights(1, 1, 2, 48), weights(1, 1, 48),
         weights(1, 1, 16), None, i32(1)),
        (f32(2, 1, 1, 2), f32(1, 1, 2)), scratch=4 * (2 * 48 + 2)),
    "rnn": OneStep(
        "Rnn",
        (f32(2, 1, 3), weights(1, 1, 3, 16), weights(1, 1, 2, 16), weights(1, 1, 16), None),
        (f32(2, 1, 1, 2), f32(1, 1, 2)), scratch=4 * 2 * 16),
    "load": OneStep("LoadWeights", (weights(4, 3),), (f32(16),)),
}  # fmt: skip

# Which of them, what is put in the place of what, and the words of the refusal. Inputs and
# outputs go by their positions.
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "images of three axes": ("conv", {"in": {0: f32(4, 4, 2)}},
        "its input and output must have rank 4"),
    "halves without working memory": (
        "conv of halves", {"scratch": 0}, "its working memory has 0 B for its 16-bit floats"),
    "halves with working memory for one row": (
        "conv of halves", {"scratch": 4 * 16 * 2 * 9 + 64}, "for its 16-bit floats; it needs"),
    "a filter of halves without working memory": (
        "product of halves", {"scratch": 64}, "its working memory has 64 B; it needs 512"),
    "a filter of halves in groups": (
        "conv of halves",
        {"in": {0: f16(1, 4, 4, 4), 1: weights(2, 3, 3, 2, 16, dtype="float16"), 2: None},
         "out": {0: f16(1, 2, 2, 32)}, "told": {"groups": 2}, "scratch": 1 << 14},
        "has groups or Winograd tiles"),
    "a state of halves": (
        "gates of halves", {"in": {4: f16(1, 4, 3)}}, "a state of it is of 16-bit floats"),
    "tiles of three rows": ("conv by tiles", {"told": {"tile": 3}}, "must have 2, 4 or 6 rows"),
    "tiles of many rows": ("conv by tiles", {"told": {"tile": 2**31}}, "must have 2, 4 or 6 rows"),
    "tiles of a line of two": (
        "conv by tiles", {"in": {1: weights(1, 1, 3, 2, 16)}, "out": {0: f32(1, 4, 2, 3)}},
        "make eight points"),
    "tiles for no threads": (
        "conv by tiles", {"told": {"tile_threads": 0}}, "its number of threads must be 1 to 256"),
    "tiles for many threads": (
        "conv by tiles", {"told": {"tile_threads": 2**32 - 1}},
        "its number of threads must be 1 to 256"),
    "tiles with strides": (
        "conv by tiles", {"told": {"strides": [2, 1], "padding": [1, 0, 0, 0]}},
        "need windows of 3 x 3"),
    "tiles of other windows": (
        "conv by tiles", {"in": {1: weights(1, 3, 2, 2, 16)}, "out": {0: f32(1, 2, 3, 3)}},
        "need windows of 3 x 3"),
    "tiles for more threads than there is memory for": (
        "conv by tiles", {"told": {"tile_threads": 2}}, "its working memory has"),
    "a filter of three axes": ("conv", {"in": {1: weights(3, 3, 6)}}, "filter must have rank 5"),
    "an integer filter of too few inputs": (
        "quantised conv", {"in": {1: weights(1, 5, 64, dtype="int8", **SCALED)}},
        "its packed filter does not fit"),
    "an integer filter that is not packed": (
        "quantised conv",
        {"ins": (i8(1, 4, 4, 2, **SCALED), weights(3, 3, 3, 2, dtype="int8", **SCALED))},
        "need a packed filter and scales of their sums"),
    "sums of fewer rows": ("sums of bytes", {"in": {3: i32(1, 3)}}, "its addend must be int32"),
    "sums of more rows": ("sums as bytes", {"in": {3: i32(3, 3)}}, "its addend must be int32"),
    "sums of another type": ("sums of bytes", {"in": {3: f32(2, 3)}}, "its addend must be int32"),
    "bytes added to sums": (
        "sums as bytes", {"in": {3: i8(2, 3, **SCALED)}}, "its addend must be int32"),
    "sums as floats": ("sums as bytes", {"out": {0: f32(2, 3)}}, "its addend must be int32"),
    "sums as bytes of another sign": (
        "sums as bytes", {"out": {0: Given((2, 3), "uint8", **SCALED)}}, "differ in type"),
    "sums as bytes without scales": (
        "sums as bytes", {"in": {4: None}}, "its sums have an addend and no scales"),
    "sums of a filter with a zero point": (
        "sums of bytes",
        {"in": {1: weights(1, 3, 64, dtype="int8", scales=[0.5], zero_point=3)}},
        "its filter has an addend and a zero point"),
    "sums of a depthwise convolution": (
        "depthwise conv of bytes", {"in": {3: i32(1, 2, 2, 2)}}, "cannot have an addend"),
    "weights of the run with scales of their inputs": (
        "dense of the run", {"in": {1: i8(3, 8, scales=[0.5] * 8, axis=1)}}, "that are not those"),
    "a product of numbers without a scale": (
        "dense of the run", {"in": {0: i8(2, 8)}}, "have one scale each"),
    "weights of the run with a bias too short": (
        "dense of the run", {"ins": (i8(2, 8, **SCALED), i8(3, 8, **SCALED), i32(2))},
        "its bias does not fit"),
    "weights of the run with scales too far apart": (
        "dense of the run", {"out": {0: i8(2, 3, scales=[1e-30], zero_point=0)}}, "too far apart"),
    "images of 16 bits with a zero point": (
        "conv of 16 bits", {"in": {0: i16(1, 4, 4, 2, scales=[0.5], zero_point=3)}},
        "must have a zero point of 0"),
    "a filter of 16 bits": (
        "conv of 16 bits", {"in": {1: weights(3, 3, 3, 2, dtype="int16", **SCALED)}},
        "its filter must be int8"),
    "a filter of images of 16 bits with a zero point": (
        "conv of 16 bits",
        {"in": {1: weights(3, 3, 3, 2, dtype="int8", scales=[0.5], zero_point=3)}},
        "its filter has a zero point"),
    "images of 16 bits with a bias too short": (
        "conv of 16 bits",
        {"ins": (i16(1, 4, 4, 2, **SCALED), weights(3, 3, 3, 2, dtype="int8", **SCALED), i64(2))},
        "its bias does not fit"),
    "sums of 16 bits with scales too far apart": (
        "sum of 16 bits", {"out": {0: i16(4, scales=[1e-30], zero_point=0)}}, "too far apart"),
    "rows of 16 bits too long to add up": (
        "softmax of 16 bits", {"in": {0: i16(1, 2**16, **SCALED)},
                               "out": {0: i16(1, 2**16, **SCALED)}}, "its rows are too long"),
    "a tangent of 16 bits with another scale": (
        "tanh of 16 bits", {"out": {0: i16(4, **SCALED)}}, "must have a scale of 1/32768"),
    "a tangent of 16 bits of large numbers": (
        "tanh of 16 bits", {"in": {0: i16(4, scales=[99.0], zero_point=0)}},
        "its scale is too large"),
    "a pool of 16 bits that changes the scale": (
        "pool of 16 bits", {"out": {0: i16(1, 3, 3, 2, scales=[0.25], zero_point=0)}},
        "differ in scale"),
    "a pool of 16 bits that counts padding": (
        "pool of 16 bits", {"told": {"count_padding": True}}, "cannot count padding"),
    "a change of scale of numbers": (
        "rescaled", {"in": {0: f32(4)}}, "have one scale each"),
    "candidates of three numbers": (
        "suppression", {"in": {0: f32(1, 5, 3)}}, "must have 4 numbers"),
    "scores of other boxes": ("suppression", {"in": {1: f32(1, 2, 6)}}, "boxes and scores do not"),
    "boxes of integers": ("suppression", {"in": {0: i32(1, 5, 4)}}, "only float32"),
    "a row too few": ("suppression", {"out": {0: i64(3, 3)}}, "a row for each box"),
    "rows of four": ("suppression", {"out": {0: i64(4, 4)}}, "must be rows of three"),
    "candidates without memory": ("suppression", {"scratch": 59}, "its working memory has"),
    "no place for the count": (
        "suppression of one class", {"outs": (i32(2),)}, "no output for the count"),
    "a selected box too many": (
        "suppression of one class", {"out": {0: i32(3)}}, "an index for each box"),
    "scores of another length": (
        "suppression of one class", {"out": {2: f32(3)}}, "its output of scores does not fit"),
    "a filter of other channels": (
        "conv", {"in": {1: weights(1, 3, 3, 5, 16)}}, "groups and channels do not fit"),
    "a panel too many": (
        "conv", {"in": {1: weights(2, 3, 3, 2, 16)}}, "groups and channels do not fit"),
    "panels of other outputs": (
        "conv", {"in": {1: weights(1, 3, 3, 2, 8)}}, "groups and channels do not fit"),
    "a filter of integers": (
        "conv", {"in": {1: weights(3, 3, 3, 2, dtype="int8")}}, "and weights differ in type"),
    "a bias too short": ("conv", {"in": {2: weights(2)}}, "its bias does not fit"),
    "a bias of integers": ("conv", {"in": {2: weights(3, dtype="int32")}}, "no kernel runs it"),
    "an integer bias too short": (
        "quantised conv", {"in": {2: weights(2, dtype="int32")}}, "its bias does not fit"),
    "a result of another type": (
        "conv", {"out": {0: i32(1, 2, 2, 3)}}, "no kernel runs it on these element"),
    "another batch": ("conv", {"out": {0: f32(2, 2, 2, 3)}}, "the batches differ"),
    "images of no rows": ("conv", {"in": {0: f32(1, 0, 4, 2)}}, "an image is empty"),
    "a filter of no rows": (
        "conv", {"in": {1: weights(1, 0, 3, 2, 16)}}, "stride or dilation is 0"),
    "a filter of no outputs": (
        "conv", {"in": {1: weights(0, 3, 3, 2, 16), 2: weights(0)}, "out": {0: f32(1, 2, 2, 0)}},
        "an image is empty"),
    "groups whose product overflows": (
        "conv", {"in": {1: weights(1, 3, 3, 0, 16)}, "told": {"groups": 2**32 - 1}},
        "groups and channels do not fit"),
    "one filter too many": (
        "depthwise", {"in": {1: weights(1, 3, 3, 3)}}, "its filter and channels do not fit"),
    "images of no channels": (
        "depthwise", {"in": {0: f32(1, 4, 4, 0)}}, "an image is empty"),
    "no rows to transpose": (
        "transposed", {"in": {0: f32(1, 0, 2, 2)}}, "the batches differ"),
    "an adjustment of a stride": (
        "transposed", {"told": {"adjustment": [1, 1]}}, "stride or adjustment does not fit"),
    "a transposed result too large": (
        "transposed", {"out": {0: f32(1, 5, 4, 3)}}, "do not make the rows and columns"),
    "padding beyond the transposed result": (
        "transposed", {"told": {"padding": [9, 9, 9, 9]}}, "do not make the rows and columns"),
    "weights of other inputs": ("dense", {"in": {1: weights(1, 7, 16)}}, "and weights do not fit"),
    "weights of no inputs": (
        "dense", {"in": {0: f32(2, 0), 1: weights(1, 0, 16)}}, "rows and weights do not fit"),
    "weights of two axes": (
        "dense", {"in": {1: weights(3, 8)}}, "must be rows and a matrix in panels"),
    "panels of other products": (
        "dense", {"in": {1: weights(2, 8, 16)}}, "and weights do not fit"),
    "rows that are lost": ("dense", {"out": {0: f32(1, 3)}}, "rows and weights do not fit"),
    "attention of no heads": (
        "attention", {"told": {"heads": 0}}, "its heads are no multiple of those of its keys"),
    "attention to more heads": (
        "attention", {"told": {"key_heads": 8}}, "its heads are no multiple of those of its keys"),
    "attention of heads that are cut": (
        "attention", {"told": {"heads": 6}}, "its heads do not divide its queries"),
    "attention of a matrix": (
        "attention", {"in": {0: f32(6, 8)}}, "queries and its output must have 3 axes"),
    "attention to a matrix": ("attention", {"in": {1: f32(10, 4)}}, "or 4 by heads"),
    "attention to another batch": (
        "attention", {"in": {1: f32(3, 5, 4)}}, "the batches of queries and keys differ"),
    "attention to other heads": (
        "attention", {"in": {1: f32(2, 4, 5, 2)}}, "another number of heads"),
    "attention to heads that are cut": (
        "attention", {"in": {2: f32(2, 5, 7)}}, "another number of heads"),
    "attention to longer keys": (
        "attention", {"in": {1: f32(2, 5, 6)}}, "keys or values differ in length from its"),
    "attention to fewer values": ("attention", {"in": {2: f32(2, 4, 6)}}, "more keys than values"),
    "attention to rows of 8 bits that are cut": (
        "attention", {"in": {1: i8(2, 5, 4)}}, "keys or values differ in length from its queries"),
    "rows of a cache of no width": (
        "cache rows", {"told": {"width": 0}}, "its width does not divide its rows"),
    "rows of a cache that are cut": (
        "cache rows", {"told": {"width": 5}}, "its width does not divide its rows"),
    "rows of a cache without scales": (
        "cache rows", {"out": {0: i8(2, 3, 16)}}, "not have the bytes of its rows"),
    "more rows of a cache": ("cache rows", {"out": {0: i8(2, 4, 20)}}, "differ in their rows"),
    "rows of a cache of another rank": (
        "cache rows", {"out": {0: i8(6, 20)}}, "differ in rank"),
    "rows of a cache of bytes": ("cache rows", {"in": {0: i8(2, 3, 16)}}, "plain int8 of float32"),
    "rows of a cache with one scale": (
        "cache rows", {"out": {0: i8(2, 3, 20, scales=(1.0,))}}, "plain int8 of float32"),
    "attention of large heads": (
        "attention", {"in": {0: f32(2, 3, 1028), 1: f32(2, 5, 514)}}, "more than 256 elements"),
    "attention for fewer queries": (
        "attention", {"out": {0: f32(2, 2, 12)}}, "another number of queries"),
    "attention into other columns": (
        "attention", {"out": {0: f32(2, 3, 8)}}, "in length from its queries or its output"),
    "attention with an addend of other keys": (
        "attention", {"in": {3: f32(2, 3, 4, 4)}}, "a number for each key"),
    "attention with an addend of other heads": (
        "attention", {"in": {3: f32(2, 3, 2, 5)}}, "does not broadcast to the scores"),
    "attention with an addend of other queries": (
        "attention", {"in": {3: f32(2, 2, 4, 5)}}, "does not broadcast to the scores"),
    "attention with an addend of other batches": (
        "attention", {"in": {3: f32(3, 3, 4, 5)}}, "does not broadcast to the scores"),
    "attention to too many numbers of keys": (
        "attention", {"in": {4: i32(3)}}, "a number of keys of each batch"),
    "attention to numbers of keys that are floats": (
        "attention", {"in": {4: f32(2)}}, "a number of keys of each batch"),
    "attention of integers": ("attention", {"in": {0: i32(2, 3, 8)}}, "only float32"),
    "attention with a window of all keys": (
        "attention", {"told": {"causal": False, "window": 3}}, "but is not causal"),
    "attention with an endless scale": (
        "attention", {"told": {"scale": 1e39}}, "is not finite"),
    "a rotation of no heads": (
        "rotary", {"told": {"heads": 0}}, "its heads do not divide its elements"),
    "a rotation of heads that are cut": (
        "rotary", {"told": {"heads": 3}}, "its heads do not divide its elements"),
    "a rotation of a matrix": ("rotary", {"in": {0: f32(6, 16)}}, "do not have 3 axes"),
    "a rotation into other columns": ("rotary", {"out": {0: f32(2, 3, 12)}}, "output differ"),
    "a rotation by fewer sines": (
        "rotary", {"in": {2: f32(1, 3, 1)}}, "its cosines and sines differ"),
    "a rotation by angles of other batches": (
        "rotary", {"in": {1: f32(3, 3, 2), 2: f32(3, 3, 2)}}, "angles are of other batches"),
    "a rotation by angles of other places": (
        "rotary", {"in": {1: f32(1, 4, 2), 2: f32(1, 4, 2)}}, "angles are of other places"),
    "a rotation by more angles than pairs": (
        "rotary", {"in": {1: f32(1, 3, 3), 2: f32(1, 3, 3)}}, "more angles than pairs"),
    "a rotation of integers": ("rotary", {"in": {0: i32(2, 3, 16)}}, "only float32"),
    "vectors for matrices": ("matmul", {"in": {0: f32(4)}}, "its inputs must be matrices"),
    "matrices that do not fit": (
        "matmul", {"told": {"transpose_b": True}}, "the matrices do not fit"),
    "batches that do not broadcast": (
        "matmul", {"in": {0: f32(3, 3, 4)}}, "the batches do not broadcast"),
    "a product of another rank": ("matmul", {"out": {0: f32(3, 5)}}, "output has another rank"),
    "a product too small": ("matmul", {"out": {0: f32(2, 3, 4)}}, "not of the product's size"),
    "matrices of integers": ("matmul", {"in": {0: i32(2, 3, 4)}}, "only float32 is supported"),
    "a pool of other channels": ("pool", {"out": {0: f32(1, 2, 2, 3)}}, "the channels differ"),
    "a pool into another type": ("pool", {"out": {0: i32(1, 2, 2, 2)}}, "differ in type"),
    "a pool of a kind to come": ("pool", {"told": {"kind": 9}}, "its kind is unknown"),
    "a function's result too long": ("unary", {"out": {0: f32(9)}}, "input and output differ"),
    "a function into another type": ("unary", {"out": {0: i32(8)}}, "differ in type"),
    "a negation of numbers": (
        "unary", {"told": {"function": "logical_not"}}, "its inputs must be boolean"),
    "numbers that are numbers": (
        "unary", {"told": {"function": "is_nan"}},
        "its input must be float32 and its output boolean"),
    "a function to come": ("unary", {"told": {"function": 99}}, "its function is unknown"),
    "a function to come, quantised": (
        "quantised unary", {"told": {"function": 99}}, "its function is unknown"),
    "a function of two to come, quantised": (
        "quantised binary", {"told": {"function": 99}}, "no kernel runs it on these element"),
    "a reduction to come, quantised": (
        "quantised reduce", {"told": {"function": 99}}, "no kernel runs it on these element"),
    "a pool of a kind to come, quantised": (
        "quantised pool", {"told": {"kind": 9}}, "its kind is unknown"),
    "a scale for each channel of a function": (
        "quantised unary", {"in": {0: i8(8, scales=[0.5] * 8, axis=0)}},
        "an operand has a scale for each channel"),
    "shapes that do not broadcast": (
        "binary", {"in": {1: f32(2)}}, "the input shapes do not broadcast to the output shape"),
    "a sum too small": ("binary", {"out": {0: f32(3)}}, "more axes than the output"),
    "a sum of two types": ("binary", {"in": {1: i32(3)}}, "the inputs differ in type"),
    "a comparison that makes numbers": (
        "binary", {"told": {"function": "less"}}, "no kernel runs it on these element"),
    "a conjunction that makes numbers": (
        "binary", {"told": {"function": "logical_and"}, "in": {0: boolean(2, 3), 1: boolean(3)}},
        "its output must be boolean"),
    "integers that do not broadcast": ("integer binary", {"in": {1: i32(2)}}, "do not broadcast"),
    "a condition of numbers": (
        "select", {"in": {0: f32(2, 3)}}, "its condition must be boolean"),
    "a choice of two types": ("select", {"in": {1: i32(3)}}, "input and output differ in type"),
    "a choice that does not broadcast": ("select", {"in": {1: f32(2)}}, "do not broadcast"),
    "a softmax too long": ("softmax", {"out": {0: f32(2, 4)}}, "input and output differ"),
    "a reduction of nothing": (
        "quantised reduce", {"in": {0: i8(2, 0, 4, **SCALED)}}, "its input is empty"),
    "a reduction too long": ("reduce", {"out": {0: f32(2, 5)}}, "the wrong number of elements"),
    "a reduction into another type": ("reduce", {"out": {0: i32(2, 4)}}, "differ in type"),
    "an index of no axis": ("arg reduce", {"told": {"axis": 2}}, "the axis is out of range"),
    "an index in another type": ("arg reduce", {"out": {0: f32(2)}}, "no kernel runs it"),
    "indices too many": ("arg reduce", {"out": {0: i32(3)}}, "the wrong number of elements"),
    "no neighbours": ("neighbours", {"told": {"size": 0}}, "the size must be above 0"),
    "neighbours in another shape": (
        "neighbours", {"out": {0: f32(4, 2)}}, "input and output differ"),
    "more axes than there are": ("layer norm", {"told": {"num_axes": 3}}, "more axes than its"),
    "no axes": ("layer norm", {"told": {"num_axes": 0}}, "it has more axes than its input"),
    "a factor too short": ("layer norm", {"in": {1: f32(3)}}, "its scale or shift does not fit"),
    "integers to normalise": (
        "layer norm", {"in": {0: i32(2, 4)}}, "only float32 is supported"),
    "an image's factor too short": (
        "instance norm", {"in": {2: f32(3)}}, "its scale or shift does not fit"),
    "an image of one axis": (
        "instance norm", {"in": {0: f32(4)}, "out": {0: f32(4)}}, "input and output differ"),
    "a norm of integers": ("l2 norm", {"in": {0: i32(2, 4)}}, "only float32 is supported"),
    "a running sum over no axis": (
        "cumulative sum", {"told": {"axis": 2}}, "the axis is out of range"),
    "a running sum of integers": ("cumulative sum", {"in": {0: i32(2, 4)}}, "differ in type"),
    "a running sum of truths": (
        "cumulative sum", {"in": {0: boolean(2, 4)}, "out": {0: boolean(2, 4)}},
        "no kernel runs it"),
    "sums of no rows": (
        "partial sums", {"told": {"window": [0, 5]}}, "not of all groups of rows"),
    "sums that leave rows": (
        "partial sums", {"told": {"window": [4, 5]}}, "not of all groups of rows"),
    "sums of parts of rows": (
        "partial sums", {"told": {"window": [2, 4]}}, "not of whole rows"),
    "sums beyond 16 bits": (
        "partial sums", {"told": {"window": [2, 129]}, "in": {0: i8(1, 6, 129, 4)}},
        "of too many for 16 bits"),
    "a largest of sums": (
        "partial sums", {"told": {"kind": "maximum"}}, "only an average of a window has sums"),
    "sums of several images": (
        "partial sums", {"in": {0: i8(2, 6, 5, 4)}}, "an operand of sums is not one image"),
    "sums of other channels": (
        "partial sums", {"in": {0: i8(1, 6, 5, 3)}}, "the channels differ"),
    "sums of floats": (
        "partial sums", {"in": {0: f32(1, 6, 5, 4)}}, "input and output differ in type"),
    "an average of nothing": (
        "average of sums", {"told": {"window": [0, 5]}}, "its window is not what it has sums of"),
    "an average of too much": (
        "average of sums", {"told": {"window": [1 << 13, 1 << 13]}},
        "its window is not what it has sums of"),
    "an average of several columns": (
        "average of sums", {"in": {0: i16(1, 3, 2, 4)}}, "not one pixel of the channels"),
    "slices of no axis": ("gather", {"told": {"axis": 2}}, "the axis is out of range"),
    "batches beyond the axis": ("gather", {"told": {"batch_axes": 1}}, "the axis is out of range"),
    "batches that differ": (
        "gather", {"told": {"axis": 1, "batch_axes": 1}}, "data and indices differ in a batch"),
    "elements of three axes": (
        "gather of elements", {"told": {"num_axes": 3}}, "the axis is out of range"),
    "slices of no axes": ("gather", {"told": {"num_axes": 0}}, "the axis is out of range"),
    "elements by three indices": (
        "gather of elements", {"in": {1: i32(5, 3)}}, "one for each axis"),
    "slices of nothing": ("gather", {"in": {0: f32(0, 3)}}, "the axis has no elements"),
    "a slice too many": ("gather", {"out": {0: f32(3, 3)}}, "one slice for each index"),
    "indices that are numbers": ("gather", {"in": {1: f32(2)}}, "no kernel runs it"),
    "a conversion too long": ("convert", {"out": {0: i32(9)}}, "input and output differ"),
    "a conversion by channel": (
        "convert", {"out": {0: i8(8, scales=[0.5] * 8, axis=0)}}, "a scale for each channel"),
    "factors too few": ("multiply-add", {"in": {1: f32(3)}}, "factors or terms do not fit"),
    "cells clipped to nothing": (
        "lstm", {"told": {"cell_clip": 0.0}}, "cell_clip must be above 0"),
    "scratch too small": ("lstm", {"scratch": 511}, "has 511 B; it needs 512"),
    "an LSTM that keeps a constant": (
        "lstm",
        {"told": {"keeps_state": True}, "in": {4: weights(1, 1, 2), 5: weights(1, 1, 2)},
         "outs": (f32(2, 1, 1, 2),)},
        "writes a constant"),
    "an LSTM without what it keeps": (
        "lstm", {"told": {"keeps_state": True}, "outs": (f32(2, 1, 1, 2),)},
        "all operands must be present"),
    "an LSTM of integers that forgets": (
        "integer lstm",
        {"told": {"keeps_state": False}, "outs": (i8(2, 1, 1, 2), i8(1, 2), i16(1, 2))},
        "an integer LSTM must keep its state"),
    "cells of integers clipped to nothing": (
        "integer lstm", {"told": {"cell_clip": -1.0}}, "cell_clip must be above 0"),
    "an LSTM of integers both ways": (
        "integer lstm",
        {"in": {1: weights(2, 8, 3, dtype="int8"), 2: weights(2, 8, 2, dtype="int8")},
         "out": {0: i8(2, 2, 1, 2)}},
        "an integer LSTM must have one direction"),
    "weights of numbers beside integers": (
        "integer lstm", {"in": {1: weights(1, 8, 3)}}, "missing or has an unsupported type"),
    "a state of numbers beside integers": (
        "integer lstm", {"in": {5: f32(1, 2)}}, "missing or has an unsupported type"),
    "weights of integers that are computed": (
        "integer lstm", {"in": {1: i8(1, 8, 3)}}, "its weights must be constant"),
    "one scale for all gates": (
        "integer lstm", {"in": {2: weights(1, 8, 2, dtype="int8", **SCALED)}},
        "scales that are not those of its gates"),
    "cells whose scale is no power": (
        "integer lstm", {"in": {5: i16(1, 2, scales=[0.001])}}, "not a power of 2"),
    "cells whose scale is too large": (
        "integer lstm", {"in": {5: i16(1, 2, scales=[0.25])}}, "not a power of 2"),
    "a hidden state without a scale": (
        "integer lstm", {"in": {4: i8(1, 2)}}, "needs exactly one scale"),
    "a hidden state of no scale": (
        "integer lstm", {"told": {"hidden_scale": 0.0}}, "its hidden state does not fit"),
    "a gate's scale too large": (
        "integer lstm", {"in": {0: i8(2, 1, 3, scales=[1e30])}}, "scales do not fit each other"),
    "anchors too few": ("detection", {"in": {2: f32(4, 4)}}, "do not fit each other"),
    "boxes of three numbers": ("detection", {"in": {0: f32(1, 5, 3)}}, "do not fit each other"),
    "two images": (
        "detection", {"in": {0: f32(2, 5, 4), 1: f32(2, 5, 3)}}, "do not fit each other"),
    "scores of other classes": (
        "detection", {"told": {"num_classes": 4}}, "do not fit its number of classes"),
    "scores of no classes": ("detection", {"told": {"num_classes": 0}}, "do not fit its number"),
    "no detections": (
        "detection", {"told": {"max_detections": 0}}, "its number of detections is 0"),
    "no classes of a detection": (
        "detection", {"told": {"classes_per_detection": 0}}, "its number of detections is 0"),
    "a class without detections": (
        "detection", {"told": {"detections_per_class": 0}}, "its number of detections is 0"),
    "detections too many": (
        "detection", {"told": {"max_detections": 4}}, "a row for each detection"),
    "detections beyond measure": (
        "detection", {"told": {"max_detections": 2**27}}, "too many boxes, classes or"),
    "boxes too few": ("detection", {"out": {0: f32(1, 5, 4)}}, "a row for each detection"),
    "counts of detections": ("detection", {"out": {3: f32(2)}}, "a row for each detection"),
    "a box's scale too few": (
        "detection", {"told": {"scales": [1.0] * 3}},
        "a scale for each of the four numbers of a box"),
    "detections of integers": ("detection", {"out": {1: i32(1, 6)}}, "only float32 is supported"),
    "detections without a count": (
        "detection", {"outs": (f32(1, 6, 4), f32(1, 6), f32(1, 6))}, "too few outputs"),
    "detections without room": ("detection", {"scratch": 172}, "has 172 B; it needs 173"),
    "a transform of three rows": ("rfft2d", {"told": {"rows": 3}}, "must be powers of 2"),
    "a transform of one column": ("rfft2d", {"told": {"columns": 1}}, "must be powers of 2"),
    "a transform of too many rows": ("rfft2d", {"told": {"rows": 2**31}}, "must be powers of 2"),
    "a transform of too many rows and columns": (
        "rfft2d", {"told": {"rows": 2**20, "columns": 2**20}}, "too many rows and columns"),
    "a transform without imaginary parts": (
        "rfft2d", {"out": {0: f32(3, 4, 3)}}, "pairs of floats"),
    "a transform of a vector": (
        "rfft2d", {"in": {0: f32(5)}, "out": {0: f32(3, 2)}}, "pairs of floats"),
    "a transform of other columns": (
        "rfft2d", {"told": {"columns": 8}}, "has the wrong shape"),
    "transforms too many": ("rfft2d", {"out": {0: f32(4, 4, 3, 2)}}, "input and output differ"),
    "a transform of integers": ("rfft2d", {"in": {0: i32(3, 2, 5)}}, "only float32 is supported"),
    "a transform without room": ("rfft2d", {"scratch": 255}, "has 255 B; it needs 256"),
    "more than there are": (
        "top k", {"in": {0: f32(2, 2)}}, "its k does not fit"),
    "a place too few": ("places", {"out": {0: i64(5, 2)}}, "a row of indices for each element"),
    "places of three axes": (
        "places", {"out": {0: i64(6, 3)}}, "a row of indices for each element"),
    "places of 32 bits": ("places", {"out": {0: i32(6, 2)}}, "a row of indices for each element"),
    "places of a scalar": (
        "places", {"in": {0: f32()}, "outs": (i64(1, 0),)}, "a scalar has no axes"),
    "places of doubles": ("places", {"in": {0: Given((2, 3), "float64")}}, "no kernel runs it"),
    "the largest of other rows": ("top k", {"in": {0: f32(3, 5)}}, "its k does not fit"),
    "the largest without indices": ("top k", {"outs": (f32(2, 3),)}, "too few outputs"),
    "indices of others": ("top k", {"out": {1: i32(2, 2)}}, "its outputs differ"),
    "indices that are no integers": ("top k", {"out": {1: f32(2, 3)}}, "no kernel runs it"),
    "the largest of another type": ("top k", {"in": {0: i32(2, 5)}}, "differ in type"),
    "the largest of another rank": ("top k", {"in": {0: f32(2, 1, 5)}}, "differ in rank"),
    "slices too few": ("scatter", {"in": {1: f32(1, 3)}}, "one slice for each index"),
    "parts of slices": ("scatter", {"in": {1: f32(2, 2)}}, "one slice for each index"),
    "no rows to add to": ("scatter", {"out": {0: f32(0, 3)}}, "it has no rows"),
    "places that are numbers": ("scatter", {"in": {0: f32(2)}}, "no kernel runs it"),
    "slices of another type": ("scatter", {"in": {1: i32(2, 3)}}, "differ in type"),
    "elements along no axis": (
        "scatter of elements", {"told": {"axis": 2}}, "the axis is out of range"),
    "indices of another rank": (
        "scatter of elements", {"in": {1: i64(2, 3, 1)}}, "another rank than its data"),
    "indices beyond the data": (
        "scatter of elements", {"in": {1: i64(2, 4), 2: f32(2, 4)}}, "reach beyond its data"),
    "updates without an index": (
        "scatter of elements", {"in": {2: f32(1, 3)}}, "one update for each index"),
    "updates of another type": (
        "scatter of elements", {"in": {2: i32(2, 3)}}, "differ in type"),
    "scattered onto another shape": (
        "scatter of elements", {"out": {0: f32(3, 4)}}, "differ in shape"),
    "indices that are floats": (
        "scatter of elements", {"in": {1: f32(2, 3)}}, "no kernel runs it"),
    "indices of too many axes": (
        "scatter of slices", {"in": {1: i32(2, 3)}}, "indices do not have one for each axis"),
    "indices of no axis": (
        "scatter of slices", {"in": {1: i32(2, 0)}}, "indices do not have one for each axis"),
    "one index for all slices": (
        "scatter of slices", {"in": {1: i32()}}, "indices do not have one for each axis"),
    "more slices than indices": (
        "scatter of slices", {"in": {2: f32(3, 3)}}, "one slice for each index"),
    "a part of a slice": ("scatter of slices", {"in": {2: f32(2, 2)}}, "one slice for each index"),
    "sums of truth values": (
        "scatter of slices",
        {"in": {0: boolean(4, 3), 2: boolean(2, 3)}, "out": {0: boolean(4, 3)}},
        "no kernel runs it"),
    "lengths of other sequences": ("gru with lengths", {"in": {6: i32(2)}}, "the wrong size"),
    "lengths that are floats": (
        "gru with lengths", {"in": {6: f32(1)}}, "missing or has an unsupported type"),
    "an RNN with the weights of a GRU": (
        "rnn", {"in": {1: weights(1, 1, 3, 48)}}, "weights do not fit"),
    "an RNN with another state": ("rnn", {"in": {4: f32(1, 1, 3)}}, "the wrong size"),
    "weights of other gates": ("lstm", {"in": {1: weights(1, 1, 3, 48)}}, "weights do not fit"),
    "weights that are not packed": ("lstm", {"in": {1: weights(1, 8, 3)}}, "another rank"),
    "weights of other tiles": ("lstm", {"in": {2: weights(1, 2, 2, 64)}}, "weights do not fit"),
    "a bias that is not packed": ("lstm", {"in": {3: weights(1, 8)}}, "the wrong size"),
    "a GRU's second bias of all gates": (
        "gru", {"in": {4: weights(1, 1, 48)}}, "the wrong size"),
    "three directions": (
        "gru", {"in": {1: weights(3, 1, 3, 48), 2: weights(3, 1, 2, 48)}},
        "only one or two directions are supported"),
    "places of an average": (
        "pool with places", {"told": {"kind": "average"}}, "only a maximum has indices"),
    "places of another type": (
        "pool with places", {"out": {1: i32(1, 2, 2, 2)}}, "the indices must be int64"),
    "too few places": (
        "pool with places", {"out": {1: i64(1, 2, 2, 1)}}, "the indices must be int64"),
    "a GRU's scratch too small": ("gru", {"scratch": 391}, "has 391 B; it needs 392"),
    "a GRU's state too short": ("gru", {"out": {1: f32(1, 1, 1)}}, "the wrong size"),
    "a window smaller than its weights": (
        "load", {"out": {0: f32(11)}}, "its window has 44 B; its weights have 48"),
    "weights that are computed": (
        "load", {"in": {0: f32(4, 3)}}, "its weights must be constant"),
    "a window of integers": ("load", {"out": {0: i32(16)}}, "its window is of another type"),
    "weights of none": ("load", {"in": {0: weights(0, 3)}}, "it has no weights"),
    "filters of no rank": ("svdf", {"told": {"rank": 0}}, "must be a multiple of the rank"),
    "filters of another rank": ("svdf", {"told": {"rank": 3}}, "must be a multiple of the rank"),
    "a state that is constant": (
        "svdf", {"in": {4: weights(1, 4, 5)}}, "a state is a constant"),
    "a state of another size": ("svdf", {"in": {4: f32(1, 4, 4)}}, "its state does not fit"),
}  # fmt: skip


def changed(sound: OneStep, changes: Mapping[str, Any]) -> OneStep:
    """The step with other operands and attributes."""
    inputs = list(changes.get("ins", sound.inputs))
    outputs = list(changes.get("outs", sound.outputs))
    for place, operands in ((inputs, changes.get("in", {})), (outputs, changes.get("out", {}))):
        for position, operand in operands.items():
            place[position] = operand
    kernel = {**sound.kernel, **changes.get("told", {})}
    scratch = changes.get("scratch", sound.scratch)
    return replace(
        sound, inputs=tuple(inputs), outputs=tuple(outputs), kernel=kernel, scratch=scratch
    )
