"""Steps that run, operands that do not fit them, and why each is refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from support.hostile_programs import OneStep, Operand


def f32(*shape: int) -> Operand:
    return Operand("float32", shape)


def i8(*shape: int, **quantisation: object) -> Operand:
    return Operand("int8", shape, quantisation=quantisation)


def i32(*shape: int) -> Operand:
    return Operand("int32", shape)


def boolean(*shape: int) -> Operand:
    return Operand("boolean", shape)


def weights(*shape: int, dtype: str = "float32", **quantisation: object) -> Operand:
    return Operand(dtype, shape, is_constant=True, quantisation=quantisation)


SCALED: dict[str, Any] = {"scales": [0.5], "zero_point": 0}

# One of each operator that runs, in its smallest form.
SOUND = {
    "conv": OneStep("Conv2D", (f32(1, 4, 4, 2), weights(1, 3, 3, 2, 16), weights(3)),
                    (f32(1, 2, 2, 3),)),
    "quantised conv": OneStep(
        "Conv2D",
        (i8(1, 4, 4, 2, **SCALED), weights(3, 3, 3, 2, dtype="int8", **SCALED)),
        (i8(1, 2, 2, 3, **SCALED),)),
    "depthwise": OneStep("DepthwiseConv2D", (f32(1, 4, 4, 2), weights(1, 3, 3, 2)),
                         (f32(1, 2, 2, 2),)),
    "transposed": OneStep("TransposedConv2D", (f32(1, 2, 2, 2), weights(3, 3, 3, 2)),
                          (f32(1, 4, 4, 3),)),
    "dense": OneStep("FullyConnected", (f32(2, 8), weights(1, 8, 16), weights(3)), (f32(2, 3),)),
    "matmul": OneStep("MatMul", (f32(2, 3, 4), f32(2, 4, 5)), (f32(2, 3, 5),),
                      scratch=4 * 16 * 4),
    "pool": OneStep("Pool2D", (f32(1, 4, 4, 2),), (f32(1, 2, 2, 2),),
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
    "layer norm": OneStep("LayerNorm", (f32(2, 4), f32(4), f32(4)), (f32(2, 4),)),
    "instance norm": OneStep("InstanceNorm", (f32(1, 6, 4), f32(4), f32(4)), (f32(1, 6, 4),)),
    "l2 norm": OneStep("L2Norm", (f32(2, 4),), (f32(2, 4),)),
    "cumulative sum": OneStep("CumulativeSum", (f32(2, 4),), (f32(2, 4),), {"axis": 1}),
    "gather": OneStep("Gather", (f32(4, 3), i32(2)), (f32(2, 3),), {"axis": 0}),
    "convert": OneStep("Convert", (f32(8),), (i32(8),)),
    "multiply-add": OneStep("MultiplyAdd", (f32(2, 4), f32(4), f32(4)), (f32(2, 4),)),
    "lstm": OneStep(
        "Lstm", (f32(2, 1, 3), weights(1, 8, 3), weights(1, 8, 2), weights(1, 8), None, None),
        (f32(2, 1, 1, 2), f32(1, 1, 2), f32(1, 1, 2)), scratch=4 * 16),
    "gru": OneStep(
        "Gru", (f32(2, 1, 3), weights(1, 6, 3), weights(1, 6, 2), weights(1, 6), weights(1, 6),
                None),
        (f32(2, 1, 1, 2), f32(1, 1, 2)), scratch=4 * 14),
    "svdf": OneStep("Svdf", (f32(1, 3), weights(4, 3), weights(4, 5), None, f32(1, 4, 5)),
                    (f32(1, 4),), kept=(4,)),
    "load": OneStep("LoadWeights", (weights(4, 3),), (f32(16),)),
}  # fmt: skip

# Which of them, what is put in the place of what, and the words of the refusal. Inputs and
# outputs go by their positions.
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "images of three axes": ("conv", {"in": {0: f32(4, 4, 2)}}, "it must read and make images"),
    "a filter of three axes": ("conv", {"in": {1: weights(3, 3, 6)}}, "filter must have rank 5"),
    "an integer filter of three axes": (
        "quantised conv", {"in": {1: weights(3, 3, 6, dtype="int8", **SCALED)}},
        "filter must have rank 4"),
    "an integer filter that is computed": (
        "quantised conv", {"in": {1: i8(3, 3, 3, 2, **SCALED)}}, "its weights are not constant"),
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
    "an integer bias that is computed": (
        "quantised conv",
        {"ins": (i8(1, 4, 4, 2, **SCALED), weights(3, 3, 3, 2, dtype="int8", **SCALED), i32(3))},
        "its bias does not fit"),
    "a result of another type": (
        "conv", {"out": {0: i32(1, 2, 2, 3)}}, "no kernel runs it on operands"),
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
        "dense", {"in": {1: weights(3, 8)}}, "must read rows, and a matrix in panels"),
    "panels of other products": (
        "dense", {"in": {1: weights(2, 8, 16)}}, "and weights do not fit"),
    "rows that are lost": ("dense", {"out": {0: f32(1, 3)}}, "rows and weights do not fit"),
    "vectors for matrices": ("matmul", {"in": {0: f32(4)}}, "it must read matrices"),
    "matrices that do not fit": (
        "matmul", {"told": {"transpose_b": True}}, "the matrices do not fit"),
    "batches that do not broadcast": (
        "matmul", {"in": {0: f32(3, 3, 4)}}, "the batches do not broadcast"),
    "a product of another rank": ("matmul", {"out": {0: f32(3, 5)}}, "output has another rank"),
    "a product too small": ("matmul", {"out": {0: f32(2, 3, 4)}}, "not of the product's size"),
    "matrices of integers": ("matmul", {"in": {0: i32(2, 3, 4)}}, "computes in 32-bit floats"),
    "a pool of other channels": ("pool", {"out": {0: f32(1, 2, 2, 3)}}, "the channels differ"),
    "a pool into another type": ("pool", {"out": {0: i32(1, 2, 2, 2)}}, "differ in type"),
    "a pool of a kind to come": ("pool", {"told": {"kind": 9}}, "its kind is unknown"),
    "a function's result too long": ("unary", {"out": {0: f32(9)}}, "input and output differ"),
    "a function into another type": ("unary", {"out": {0: i32(8)}}, "differ in type"),
    "a negation of numbers": (
        "unary", {"told": {"function": "logical_not"}}, "it reads booleans"),
    "numbers that are numbers": (
        "unary", {"told": {"function": "is_nan"}}, "it reads 32-bit floats and makes booleans"),
    "a function to come": ("unary", {"told": {"function": 99}}, "its function is unknown"),
    "a function to come, quantised": (
        "quantised unary", {"told": {"function": 99}}, "its function is unknown"),
    "a function of two to come, quantised": (
        "quantised binary", {"told": {"function": 99}}, "no kernel runs it on operands"),
    "a reduction to come, quantised": (
        "quantised reduce", {"told": {"function": 99}}, "no kernel runs it on operands"),
    "a pool of a kind to come, quantised": (
        "quantised pool", {"told": {"kind": 9}}, "its kind is unknown"),
    "a scale for each channel of a function": (
        "quantised unary", {"in": {0: i8(8, scales=[0.5] * 8, axis=0)}},
        "an operand has a scale for each channel"),
    "shapes that do not broadcast": (
        "binary", {"in": {1: f32(2)}}, "the shapes do not broadcast to that of the output"),
    "a sum too small": ("binary", {"out": {0: f32(3)}}, "more axes than the output"),
    "a sum of two types": ("binary", {"in": {1: i32(3)}}, "the inputs differ in type"),
    "a comparison that makes numbers": (
        "binary", {"told": {"function": "less"}}, "no kernel runs it on operands"),
    "a conjunction that makes numbers": (
        "binary", {"told": {"function": "logical_and"}, "in": {0: boolean(2, 3), 1: boolean(3)}},
        "it makes booleans"),
    "integers that do not broadcast": ("integer binary", {"in": {1: i32(2)}}, "do not broadcast"),
    "a condition of numbers": (
        "select", {"in": {0: f32(2, 3)}}, "its condition is not boolean"),
    "a choice of two types": ("select", {"in": {1: i32(3)}}, "input and output differ in type"),
    "a choice that does not broadcast": ("select", {"in": {1: f32(2)}}, "do not broadcast"),
    "a softmax too long": ("softmax", {"out": {0: f32(2, 4)}}, "input and output differ"),
    "a reduction of nothing": ("reduce", {"in": {0: f32(2, 0, 4)}}, "it reduces nothing"),
    "a reduction too long": ("reduce", {"out": {0: f32(2, 5)}}, "one element for each that is"),
    "a reduction into another type": ("reduce", {"out": {0: i32(2, 4)}}, "differ in type"),
    "an index of no axis": ("arg reduce", {"told": {"axis": 2}}, "its axis is beyond its input"),
    "an index in another type": ("arg reduce", {"out": {0: f32(2)}}, "no kernel runs it"),
    "indices too many": ("arg reduce", {"out": {0: i32(3)}}, "one element for each that is made"),
    "indices of nothing": (
        "arg reduce", {"in": {0: f32(2, 0)}}, "one element for each that is made"),
    "no neighbours": ("neighbours", {"told": {"size": 0}}, "it has no neighbours"),
    "neighbours in another shape": (
        "neighbours", {"out": {0: f32(4, 2)}}, "input and output differ"),
    "more axes than there are": ("layer norm", {"told": {"num_axes": 3}}, "more axes than its"),
    "no axes": ("layer norm", {"told": {"num_axes": 0}}, "it has more axes than its input"),
    "a factor too short": ("layer norm", {"in": {1: f32(3)}}, "its scale or shift does not fit"),
    "integers to normalise": (
        "layer norm", {"in": {0: i32(2, 4)}}, "it computes in 32-bit floats"),
    "an image's factor too short": (
        "instance norm", {"in": {2: f32(3)}}, "its scale or shift does not fit"),
    "an image of one axis": (
        "instance norm", {"in": {0: f32(4)}, "out": {0: f32(4)}}, "input and output differ"),
    "a norm of integers": ("l2 norm", {"in": {0: i32(2, 4)}}, "it computes in 32-bit floats"),
    "a running sum over no axis": (
        "cumulative sum", {"told": {"axis": 2}}, "its axis is beyond its input"),
    "a running sum of integers": ("cumulative sum", {"in": {0: i32(2, 4)}}, "no kernel runs it"),
    "slices of no axis": ("gather", {"told": {"axis": 2}}, "its axis is beyond its input"),
    "batches beyond the axis": ("gather", {"told": {"batch_axes": 1}}, "its axis is beyond its"),
    "batches that differ": (
        "gather", {"told": {"axis": 1, "batch_axes": 1}}, "data and indices differ in a batch"),
    "slices of nothing": ("gather", {"in": {0: f32(0, 3)}}, "its axis is empty"),
    "a slice too many": ("gather", {"out": {0: f32(3, 3)}}, "one slice for each index"),
    "indices that are numbers": ("gather", {"in": {1: f32(2)}}, "no kernel runs it on operands"),
    "a conversion too long": ("convert", {"out": {0: i32(9)}}, "input and output differ"),
    "a conversion by channel": (
        "convert", {"out": {0: i8(8, scales=[0.5] * 8, axis=0)}}, "a scale for each channel"),
    "factors too few": ("multiply-add", {"in": {1: f32(3)}}, "factors or terms do not fit"),
    "cells clipped to nothing": (
        "lstm", {"told": {"cell_clip": 0.0}}, "it clips its cells to nothing"),
    "scratch too small": ("lstm", {"scratch": 63}, "has 63 B; it needs 64"),
    "an LSTM that keeps a constant": (
        "lstm",
        {"told": {"keeps_state": True}, "in": {4: weights(1, 1, 2), 5: weights(1, 1, 2)},
         "outs": (f32(2, 1, 1, 2),)},
        "writes a constant"),
    "an LSTM without what it keeps": (
        "lstm", {"told": {"keeps_state": True}, "outs": (f32(2, 1, 1, 2),)},
        "needs all operands"),
    "weights of other gates": ("lstm", {"in": {1: weights(1, 6, 3)}}, "weights do not fit"),
    "three directions": (
        "gru", {"in": {1: weights(3, 6, 3), 2: weights(3, 6, 2)}}, "it has another direction"),
    "a GRU's state too short": ("gru", {"out": {1: f32(1, 1, 1)}}, "another size"),
    "a window smaller than its weights": (
        "load", {"out": {0: f32(11)}}, "its window has 44 B; its weights have 48"),
    "weights that are computed": (
        "load", {"in": {0: f32(4, 3)}}, "its weights are not constant"),
    "a window of integers": ("load", {"out": {0: i32(16)}}, "it loads 32-bit floats only"),
    "weights of none": ("load", {"in": {0: weights(0, 3)}}, "it has no weights"),
    "filters of no rank": ("svdf", {"told": {"rank": 0}}, "no multiple of its rank"),
    "filters of another rank": ("svdf", {"told": {"rank": 3}}, "no multiple of its rank"),
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
