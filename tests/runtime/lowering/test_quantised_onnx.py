"""QDQ and QLinear models made by ONNX Runtime's own tool, run beside ONNX Runtime."""

from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest

import arenite
from arenite.pipeline.targets.compiling import lower
from arenite.planner.importers import load
from arenite.runtime.operators import Convert
from support.quantised_onnx import FORMS, quantised
from support.running import PoisonedSession, build, reference_outputs
from support.tiny_onnx import parse, save

IMAGE = "(float[1,6,12,10] x) => (y)"
GRAPHS = {
    "conv": IMAGE + "<float[8,6,3,3] w, float[8] b> {y = Conv<pads=[1,1,1,1]>(x, w, b)}",
    "conv and relu": IMAGE + "<float[8,6,3,3] w> {c = Conv<strides=[2,2]>(x, w) y = Relu(c)}",
    "conv and clip": IMAGE + "<float[8,6,1,1] w, float l = {0}, float h = {6}> "
    "{c = Conv(x, w) y = Clip(c, l, h)}",
    "depthwise conv": IMAGE + "<float[6,1,3,3] w, float[6] b> {y = Conv<group=6>(x, w, b)}",
    "grouped conv": IMAGE + "<float[4,3,3,3] w> {y = Conv<group=2>(x, w)}",
    "gemm": "(float[3,20] x) => (y) <float[8,20] w, float[8] b> {y = Gemm<transB=1>(x, w, b)}",
    "matmul": "(float[3,20] x) => (y) <float[20,8] w> {y = MatMul(x, w)}",
    "add": IMAGE + "{s = Sigmoid(x) y = Add(x, s)}",
    "mul": IMAGE + "{s = Sigmoid(x) y = Mul(x, s)}",
    "concat": IMAGE + "{s = Sigmoid(x) y = Concat<axis=1>(x, s)}",
    "max pool": IMAGE
    + "<float[6,6,1,1] w> {c = Conv(x, w) y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c)}",
    "average pool": IMAGE
    + "<float[6,6,1,1] w> {c = Conv(x, w) y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(c)}",
    "global average pool": IMAGE + "<float[6,6,1,1] w> {c = Conv(x, w) y = GlobalAveragePool(c)}",
    "leaky relu": IMAGE + "{y = LeakyRelu<alpha=0.2>(x)}",
    "softmax": "(float[4,9] x) => (y) {y = Softmax(x)}",
    "pad": IMAGE + "<float[6,6,1,1] w, int64[8] p = {0,0,1,2,0,0,3,0}> "
    "{c = Conv(x, w) y = Pad(c, p)}",
    "split": IMAGE + "{a, b = Split<axis=1>(x) y = Add(a, b)}",
    "transpose and reshape": IMAGE + "<float[6,6,1,1] w, int64[2] s = {1,720}> "
    "{c = Conv(x, w) t = Transpose<perm=[0,2,3,1]>(c) y = Reshape(t, s)}",
}


def outputs(path, folder):
    """Return ours and ONNX Runtime's on the same input, and whose kernels ran.

    ONNX Runtime computes as the model is written: its own softmax on integers, for one, is off
    by one in a sixth of the elements.
    """
    session = PoisonedSession(build(path, folder))
    (port,) = session.inputs
    x = np.random.default_rng(1).uniform(-2, 2, port.shape).astype(port.dtype)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = onnxruntime.InferenceSession(str(path), options)
    (expected,) = reference.run(None, {port.name: x})
    return session.run({port.name: x})["y"], expected, session.backends()


def output_scale(path):
    """Return the scale of the quantised numbers behind the output."""
    program = lower(load(path, weights=True))
    (output,) = program.output_tensors
    (last,) = (step for step in program.steps if step.outputs[0] == program.root(output)[0])
    return program.tensors[last.inputs[0]].quantisation.scales[0]


@pytest.mark.parametrize(("graph", "form"), list(product(GRAPHS, FORMS)))
def test_a_quantised_operator_gives_what_onnxruntime_gives_within_one_quantum(
    graph, form, tmp_path
):
    path = quantised(tmp_path, FORMS[form], GRAPHS[graph])
    own, expected, backends = outputs(path, tmp_path)
    assert "onnxruntime" not in backends
    quanta = np.abs(own - expected) / output_scale(path)
    assert quanta.max() < 1.01
    assert (quanta > 0.5).mean() < 0.05


@pytest.mark.parametrize("form", [name for name in FORMS if name.startswith("qdq")])
def test_nothing_is_converted_between_the_ends_of_a_qdq_network(form, tmp_path):
    text = (
        IMAGE + "<float[8,6,3,3] w, float[8,1,3,3] d, float[4,8] g, int64[2] s = {1,8}> "
        "{c = Conv(x, w) r = Relu(c) e = Conv<group=8, pads=[1,1,1,1]>(r, d) a = Add(e, r) "
        "p = GlobalAveragePool(a) f = Reshape(p, s) y = Gemm<transB=1>(f, g)}"
    )
    program = lower(load(quantised(tmp_path, FORMS[form], text), weights=True))
    kinds = [type(step.operator) for step in program.steps]
    assert [kinds[0], kinds[-1]] == [Convert, Convert]
    assert Convert not in kinds[1:-1]


@pytest.mark.parametrize(
    ("scale", "backend"), [(1e-20, "arenite"), (1e4, "onnxruntime")], ids=["tiny", "huge"]
)
def test_a_filter_of_a_strange_scale_is_computed_or_left_to_onnxruntime(tmp_path, scale, backend):
    text = (
        "(float[1,2,5,5] x) => (y) <float s = {0.02}, int8 z = {0}, int8[2] n = {0,0}, "
        "int8[2,2,1,1] w = {100,-90,80,70}> { q = QuantizeLinear(x, s, z) "
        "c = QLinearConv(q, s, z, w, t, n, s, z) y = DequantizeLinear(c, s, z) }"
    )
    model = parse(text, opset=13)
    model.graph.initializer.append(
        onnx.numpy_helper.from_array(np.array([0.01, scale], np.float32), "t")
    )
    own, expected, backends = outputs(save(tmp_path, model), tmp_path)
    assert backends[1] == backend
    np.testing.assert_allclose(own, expected, rtol=1e-6)


def test_rows_of_a_table_have_the_scale_of_what_they_are_moved_to(tmp_path):
    table = ",".join(map(str, range(24)))
    text = (
        f"(int64[1,5] i) => (y) <uint8[6,4] w = {{{table}}}, float s = {{0.5}}, uint8 z = {{3}}>"
        "{ g = Gather(w, i) t = Transpose<perm=[1,0,2]>(g) y = DequantizeLinear(t, s, z) }"
    )
    path = save(tmp_path, parse(text, opset=17))
    with arenite.Session(path) as session:
        feeds = {"i": np.array([[0, 1, 2, 5, 3]])}
        assert set(session.backends()) == {"arenite"}
        np.testing.assert_array_equal(session.run(feeds)["y"], reference_outputs(path, feeds)["y"])


def test_the_front_of_a_table_of_bytes_is_moved_over_a_range(tmp_path):
    table = ",".join(map(str, range(60)))
    text = (
        f"(float[n,3] x) => (y) <uint8[20,3] t = {{{table}}}, float s = {{0.5}}, uint8 z = {{3}}, "
        "int64 zero = {0}, int64 one = {1}> { a = Shape(x) c = Gather(a, zero) "
        "r = Range(zero, c, one) g = Gather(t, r) u = Transpose<perm=[1,0]>(g) "
        "d = DequantizeLinear(u, s, z) e = Transpose<perm=[1,0]>(d) y = Add(x, e) }"
    )
    path = save(tmp_path, parse(text, opset=17))
    with arenite.Session(path, dims={"n": "1..20"}) as session:
        for n in (1, 7, 20):
            feeds = {"x": np.random.default_rng(n).random((n, 3), np.float32)}
            right = reference_outputs(path, feeds)["y"]
            np.testing.assert_array_equal(session.run(feeds)["y"], right)


BY_HAND = {
    "integers made by a cast": "(float[2,8] u) => (y) <uint8 z = {3}, float s = {0.05}, "
    "int64[1] sh = {16}, float k = {20}, float lo = {0}, float hi = {255}> {b = Mul(u, k) "
    "e = Round(b) f = Clip(e, lo, hi) x = Cast<to=2>(f) a = Reshape(x, sh) "
    "c = DequantizeLinear(a, s, z) y = Relu(c)}",
    "integers that are read as numbers": "(int64[1,5] i) => (y, w) <uint8[6,4] t = {"
    + ",".join(map(str, range(100, 124))) + "}, float s = {0.5}, uint8 z = {3}> {x = Gather(t, i) "
    "a = Transpose<perm=[1,0,2]>(x) c = DequantizeLinear(a, s, z) d = Cast<to=1>(x) y = Relu(c) "
    "w = Relu(d)}",
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_moved_integers_are_still_numbers_to_a_cast(name, tmp_path):
    path = save(tmp_path, parse(BY_HAND[name], opset=17))
    draw = np.random.default_rng(0)
    feeds = {"u": draw.random((2, 8), np.float32)} if "made" in name else {
        "i": draw.integers(0, 6, (1, 5))
    }  # fmt: skip
    with arenite.Session(path) as session:
        made = session.run(feeds)
    for key, right in reference_outputs(path, feeds).items():
        np.testing.assert_array_equal(made[key], right)


def test_what_has_no_kernel_for_integers_is_computed_on_numbers(tmp_path):
    text = (
        "(float[1,4] x) => (y) <float s = {0.05}, int8 z = {3}> {"
        "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) e = ReduceSum<keepdims=1>(d) "
        "p = QuantizeLinear(e, s, z) y = DequantizeLinear(p, s, z)}"
    )
    own, expected, _ = outputs(save(tmp_path, parse(text, opset=13)), tmp_path)
    np.testing.assert_allclose(own, expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [np.inf, np.nan, 0.0, -0.1])
def test_a_scale_that_is_not_finite_or_not_positive_is_left_to_onnx_runtime(tmp_path, scale):
    text = (
        "(float[1,4] x) => (y) <int8 z = {0}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"
    )
    model = parse(text, opset=13)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(scale), "s"))
    path = save(tmp_path, model)
    x = np.ones((1, 4), np.float32)
    (expected,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    found = PoisonedSession(build(path, tmp_path)).run({"x": x})
    np.testing.assert_array_equal(found["y"], expected)


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_a_product_whose_scale_is_not_finite_is_left_to_onnx_runtime(tmp_path, scale):
    text = (
        "(float[2,4] x) => (y) <int8 z = {0}, float s = {0.1}, int8[4,4] w = "
        "{1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}> { q = QuantizeLinear(x, s, z) "
        "p = QLinearMatMul(q, s, z, w, s, z, t, z) y = DequantizeLinear(p, s, z) }"
    )
    model = parse(text, opset=13)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(scale), "t"))
    own, expected, _ = outputs(save(tmp_path, model), tmp_path)
    np.testing.assert_array_equal(own, expected)
