"""Convolutions and products whose weights are made in the run, beside ONNX Runtime."""

import random

import numpy as np
import onnx
import onnx.helper
import pytest

from arenite.runtime import Session
from support.running import assert_agrees, build, random_feeds
from support.tiny_onnx import parse, save, with_random_weights

CASES = {
    "conv": "(float[2,6,9,11] x, float[20,6,3,3] w, float[20] b) => (y) "
    "{y = Conv<strides=[2,1], pads=[1,0,2,1], dilations=[1,2]>(x, w, b)}",
    "conv grouped": "(float[1,6,9,11] x, float[9,2,3,2] w) => (y) {y = Conv<group=3>(x, w)}",
    "conv of rows": "(float[2,6,20] x, float[8,6,3] w) => (y) "
    "{y = Conv<strides=[2], pads=[1,1]>(x, w)}",
    "conv by a filter that is stored otherwise": "(float[1,6,9,11] x, float[6,3,3,8] v) => (y) "
    "{w = Transpose<perm=[3,0,1,2]>(v) c = Conv(x, w) y = Relu(c)}",
    "depthwise": "(float[2,20,9,11] x, float[20,1,3,3] w, float[20] b) => (y) "
    "{y = Conv<group=20, pads=[1,1,1,1], strides=[2,2]>(x, w, b)}",
    "depthwise with a multiplier": "(float[1,6,9,11] x, float[12,1,3,3] w) => (y) "
    "{y = Conv<group=6>(x, w)}",
    "transposed": "(float[2,6,5,7] x, float[6,20,3,3] w, float[20] b) => (y) "
    "{y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x, w, b)}",
    "transposed, of rows": "(float[2,6,7] x, float[6,4,3] w) => (y) "
    "{y = ConvTranspose<strides=[3], pads=[1,0]>(x, w)}",
    "transposed with gaps, and a clamp": "(float[1,6,5,7] x, float[6,4,1,1] w, float[4] b) => (y) "
    "{c = ConvTranspose<strides=[2,3]>(x, w, b) y = Relu(c)}",
    "transposed depthwise": "(float[2,20,5,7] x, float[20,1,3,3] w) => (y) "
    "{y = ConvTranspose<group=20, strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x, w)}",
    "batch norm": "(float[2,6,5,7] x, float[6] g, float[6] b, float[6] m, float[6] v) => (y) "
    "{u = Abs(v) y = BatchNormalization(x, g, b, m, u)}",
    "batch norm of rows of numbers, its scale made in the run": "(float[4,6] x, float[6] g) "
    "=> (y) <float[6] b, float[6] m, float[6] v = {1,2,3,4,5,6}> "
    "{y = BatchNormalization<epsilon=0.1>(x, g, b, m, v)}",
    "gemm": "(float[3,5] x, float[5,7] w, float[7] b) => (y) "
    "{y = Gemm<alpha=0.5, beta=2.0>(x, w, b)}",
    "gemm transposed": "(float[5,3] x, float[7,5] w, float[3,7] b) => (y) "
    "{y = Gemm<transA=1, transB=1>(x, w, b)}",
    "gemm scaled": "(float[3,5] x, float[7,5] w) => (y) {y = Gemm<transB=1, alpha=-1.0>(x, w)}",
    "gemm behind a flattened image": "(float[2,6,3,4] x, float[60,7] w) => (y) <float[5,6,1,1] c> "
    "{a = Conv(x, c) f = Flatten(a) y = Gemm(f, w)}",
}


def check(text, folder, seed=0):
    path = save(folder, with_random_weights(parse(text)))
    assert_agrees(path, folder, seed=seed, backends={"arenite"})


@pytest.mark.parametrize("name", CASES)
def test_a_step_with_such_weights_gives_what_onnxruntime_gives(name, tmp_path):
    check(CASES[name], tmp_path)


def random_case(draw):
    """Return a convolution of any window, or a transposed one, and how they are grouped."""
    kernel, strides, dilations = ([draw.randint(1, 3) for _ in range(2)] for _ in range(3))
    pads = [draw.randint(0, 2) for _ in range(4)]
    groups = draw.choice([1, 1, 2, 5, 17])
    inputs, outputs = (draw.choice([1, 1, 3, 18]) for _ in range(2))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    lengths = [draw.randint(extent, extent + 6) for extent in extents]
    attributes = {"group": groups, "kernel_shape": kernel, "strides": strides,
                  "dilations": dilations, "pads": pads}  # fmt: skip
    if draw.random() < 0.4:
        w = [groups * outputs, inputs, *kernel]
        return "Conv", [draw.randint(1, 3), groups * inputs, *lengths], w, attributes
    lengths = [draw.randint(5, 8) for _ in range(2)]
    attributes["output_padding"] = [draw.randint(0, stride - 1) for stride in strides]
    w = [groups * inputs, outputs, *kernel]
    return "ConvTranspose", [draw.randint(1, 3), groups * inputs, *lengths], w, attributes


@pytest.mark.parametrize("seed", range(40))
def test_any_window_gives_what_onnxruntime_gives(seed, tmp_path):
    op_type, x, w, attributes = random_case(random.Random(seed))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, ["x", "w"], ["y"], **attributes)], "g",
        [value(name, onnx.TensorProto.FLOAT, shape) for name, shape in (("x", x), ("w", w))],
        [value("y", onnx.TensorProto.FLOAT, [None] * 4)],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = save(tmp_path, onnx.shape_inference.infer_shapes(model))
    assert_agrees(path, tmp_path, seed=seed, backends={"arenite"})


def test_threads_do_not_change_a_bit(tmp_path):
    text = (
        "(float[2,64,20,20] x, float[70,64,3,3] w, float[70,32,3,3] v) => (y) "
        "{a = Conv<pads=[1,1,1,1]>(x, w) b = ConvTranspose<group=2, strides=[2,2]>(a, v) "
        "y = Relu(b)}"
    )
    path = build(save(tmp_path, parse(text)), tmp_path)
    made = []
    for threads in (1, 2, 3):
        with Session(path, threads=threads) as session:
            made.append(session.run(random_feeds(session))["y"])
    assert all(np.array_equal(made[0], other) for other in made[1:])
