"""Integers that are quantised in the run, and their products, beside ONNX Runtime."""

import json
import subprocess
import sys
from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from arenite.pipeline.targets.compiling import lower_model
from support.running import (
    PoisonedSession,
    assert_refused,
    assert_same,
    build,
    random_feeds,
    reference_outputs,
)
from support.tiny_onnx import parse, save, with_random_integers

GENERATOR = np.random.default_rng(5)


def saved(folder, text):
    return save(folder, with_random_integers(parse(text, microsoft=True)))


def names_of_steps(path):
    return [type(step.operator).__name__ for step in lower_model(path).program.steps]


RANGES = {
    "around 0": (-3.0, 5.0), "above 0": (2.0, 9.0), "below 0": (-9.0, -2.0), "zeros": (0.0, 0.0),
    "one number": (4.5, 4.5), "tiny": (-1e-30, 3e-30), "large": (-3e30, 1e30),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(1,), (4, 6), (3, 1000), (1, 3, 9, 11), (70, 300)], ids=str)
def test_floats_are_quantised_to_the_bit(shape, tmp_path):
    text = (
        f"(float{list(shape)} x) => (uint8{list(shape)} y, float s, uint8 z) "
        "{y, s, z = DynamicQuantizeLinear(x)}"
    )
    path = saved(tmp_path, text)
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert session.backends() == ("arenite",)
        for low, high in RANGES.values():
            feeds = {"x": GENERATOR.uniform(low, high, shape).astype(np.float32)}
            outputs, expected = session.run(feeds), reference_outputs(path, feeds)
            for key, value in expected.items():
                np.testing.assert_array_equal(outputs[key], value)


def test_halves_are_rounded_to_even(tmp_path):
    path = saved(
        tmp_path, "(float[6] x) => (uint8[6] y, s, z) {y, s, z = DynamicQuantizeLinear(x)}"
    )
    feeds = {"x": np.array([0, 255, 0.5, 1.5, 2.5, 253.5], np.float32)}
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert session.run(feeds)["y"].tolist() == [0, 255, 0, 2, 2, 254]


ZEROS = {"": "", ", p": "{a} p = {{3}}, ", ", p, q": "{a} p = {{3}}, {b} q = {{2}}, ",
         ", p, r": "{a} p = {{3}}, {b}[{n}] r, "}  # fmt: skip
SIZES = [(1, 4, 1), (3, 5, 7), (17, 64, 33), (2, 3000, 40), (5, 30, 300)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("a", "b"), list(product(["int8", "uint8"], repeat=2)))
def test_a_product_of_integers_has_exact_sums(a, b, sizes, tmp_path):
    rows, depth, columns = sizes
    weights = GENERATOR.integers(np.iinfo(b).min, np.iinfo(b).max + 1, (depth, columns), b)
    for call, constants in ZEROS.items():
        stated = constants.format(a=a, b=b, n=columns)
        model = with_random_integers(
            parse(
                f"({a}[2,{rows},{depth}] x) => (int32[2,{rows},{columns}] y) <{stated}"
                f"{b}[{depth},{columns}] w> {{y = MatMulInteger(x, w{call})}}"
            )
        )
        (kept,) = (each for each in model.graph.initializer if each.name == "w")
        kept.CopyFrom(onnx.numpy_helper.from_array(weights, "w"))  # all 8 bits of it
        path = save(tmp_path, model)
        with PoisonedSession(build(path, tmp_path), guard=True) as session:
            assert session.backends() == ("arenite",)
            info = np.iinfo(a)
            numbers = GENERATOR.integers(info.min, info.max + 1, (2, rows, depth), a)
            (y,) = session.run({"x": numbers}).values()
            (expected,) = ReferenceEvaluator(model).run(None, {"x": numbers})
            np.testing.assert_array_equal(y, expected)


CONVOLUTIONS = {
    "plain": ("[1,3,9,11]", "[8,3,3,3]", ""),
    "strided and padded": ("[2,6,9,11]", "[8,6,3,2]", "<strides=[2,1], pads=[1,0,2,1]>"),
    "dilated": ("[1,6,9,11]", "[8,6,3,3]", "<dilations=[2,2], pads=[2,2,2,2]>"),
    "grouped": ("[1,6,9,11]", "[9,2,3,3]", "<group=3>"),
    "of pixels": ("[1,64,5,5]", "[300,64,1,1]", ""),
    "in one dimension": ("[1,6,20]", "[8,6,3]", "<strides=[2], pads=[1,1]>"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_of_integers_has_the_sums_of_onnxruntime(name, tmp_path):
    source, weights, attributes = CONVOLUTIONS[name]
    shape = json.loads(source)
    path = saved(
        tmp_path,
        f"(uint8{source} x) => (y) <uint8{weights} w, uint8 p = {{7}}, uint8 q = {{130}}> "
        f"{{y = ConvInteger{attributes}(x, w, p, q)}}",
    )
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert set(session.backends()) == {"arenite"}
        x = GENERATOR.integers(0, 256, shape, np.uint8)
        (y,) = session.run({"x": x}).values()
        (expected,) = reference_outputs(path, {"x": x}).values()
        np.testing.assert_array_equal(y, expected)


_QUANTISE = "q, s, z = DynamicQuantizeLinear(x)"
LAYERS = {
    "a layer": (
        "(float[3,40] x) => (y) <int8[40,18] w, int8 o = {0}, float t = {0.01}> "
        f"{{{_QUANTISE} m = MatMulInteger(q, w, z, o) f = Cast<to=1>(m) u = Mul(s, t) "
        "y = Mul(f, u)}",
        ["DynamicQuantise", "FullyConnected"],
    ),
    "a layer with a bias and a clamp, by channels": (
        "(float[2,3,40] x) => (y) <uint8[40,18] w, uint8[18] o, float[18] t, float[18] b> "
        f"{{{_QUANTISE} m = MatMulInteger(q, w, z, o) f = Cast<to=1>(m) u = Mul(s, t) "
        "v = Mul(u, f) a = Add(v, b) y = Relu(a)}",
        ["DynamicQuantise", "FullyConnected"],
    ),
    "a layer that is scaled twice": (
        "(float[3,40] x) => (y) <int8[40,18] w, float[18] t, float[18] c> "
        f"{{{_QUANTISE} m = MatMulInteger(q, w, z) f = Cast<to=1>(m) u = Mul(s, t) "
        "v = Mul(f, u) y = Mul(v, c)}",
        ["DynamicQuantise", "FullyConnected"],
    ),
    "layers of one source": (
        "(float[3,40] x) => (y, v) <int8[40,18] w, int8[40,9] n, float t = {0.01}> "
        f"{{{_QUANTISE} m = MatMulInteger(q, w, z) f = Cast<to=1>(m) u = Mul(s, t) y = Mul(f, u) "
        "k = MatMulInteger(q, n, z) g = Cast<to=1>(k) v = Mul(g, u)}",
        ["DynamicQuantise", "FullyConnected", "FullyConnected"],
    ),
    "a convolution with a bias": (
        "(float[1,6,9,11] x) => (y) <int8[8,6,3,3] w, int8 o = {0}, float t = {0.01}, "
        f"float[1,8,1,1] b> {{{_QUANTISE} m = ConvInteger<pads=[1,1,1,1]>(q, w, z, o) "
        "f = Cast<to=1>(m) u = Mul(s, t) v = Mul(f, u) y = Add(v, b)}",
        ["DynamicQuantise", "Conv2D"],
    ),
    "a product to floats": (
        "(float[3,40] x) => (y) <uint8[40,18] w, uint8 o = {120}, float t = {0.01}, float[18] b> "
        f"{{{_QUANTISE} y = com.microsoft.MatMulIntegerToFloat(q, w, s, t, z, o, b)}}",
        ["DynamicQuantise", "FullyConnected"],
    ),
    "a product that quantises": (
        "(float[3,40] x) => (y) <int8[40,18] w, float[18] t, int8[18] o, float[18] b> "
        "{y = com.microsoft.DynamicQuantizeMatMul(x, w, t, o, b)}",
        ["DynamicQuantise", "FullyConnected"],
    ),
    "a product that quantises, without zero point and bias": (
        "(float[3,40] x) => (y) <uint8[40,18] w, float t = {0.02}> "
        "{y = com.microsoft.DynamicQuantizeMatMul(x, w, t)}",
        ["DynamicQuantise", "FullyConnected"],
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_one_product_to_floats(name, tmp_path):
    text, steps = LAYERS[name]
    path = saved(tmp_path, text)
    assert sorted(set(names_of_steps(path)) - {"Copy"}) == sorted(set(steps))
    assert len(names_of_steps(path)) <= len(steps) + 2
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


@pytest.mark.parametrize("extra", ["", ", n", ', "", z, o, p'])
def test_attention_of_integers_gives_what_onnxruntime_gives(extra, tmp_path):
    mask = {"": "", ", n": ", int32[2] n"}.get(extra, ", float[2,2,2,3,4] p")
    has_past = extra.endswith("p")
    path = saved(
        tmp_path,
        f"(float[2,5,12] x{mask}) => (y{', k' if has_past else ''}) <int8[12,24] w, "
        "float[24] b, float t = {0.01}, int8 o = {0}> "
        f"{{{_QUANTISE} y{', k' if has_past else ''} = com.microsoft.QAttention<num_heads=2"
        f"{', unidirectional=1' if has_past else ''}>(q, w, b, s, t{extra or ', , z, o'}"
        f"{', z, o' if extra == ', n' else ''})}}",
    )
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        feeds = random_feeds(session)
        if "n" in feeds:
            feeds["n"] = np.array([2, 5], np.int32)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


def test_sums_of_which_other_steps_read_the_integers_stay_integers(tmp_path):
    path = saved(
        tmp_path,
        "(float[3,40] x) => (y, int32[3,18] m) <int8[40,18] w, float t = {0.01}> "
        f"{{{_QUANTISE} m = MatMulInteger(q, w, z) f = Cast<to=1>(m) u = Mul(s, t) "
        "y = Mul(f, u)}",
    )
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        feeds = random_feeds(session)
        outputs, expected = session.run(feeds), reference_outputs(path, feeds)
    np.testing.assert_array_equal(outputs["m"], expected["m"])
    assert_same({"y": outputs["y"]}, {"y": expected["y"]}, 1e-5)


VECTORS = """
import sys, numpy as np
from arenite.runtime import Session
with Session(sys.argv[1]) as session:
    (y,) = session.run({"x": np.load(sys.argv[2])}).values()
np.save(sys.argv[3], y)
"""


@pytest.mark.parametrize("vectors", ["avx512", "avx2", "any"])
def test_a_layer_is_the_same_on_smaller_processors(vectors, tmp_path, monkeypatch):
    path = saved(tmp_path, LAYERS["a layer with a bias and a clamp, by channels"][0])
    program, x = build(path, tmp_path), GENERATOR.standard_normal((2, 3, 40), np.float32)
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setenv("ARENITE_VECTORS", vectors)
    files = [program, tmp_path / "x.npy", tmp_path / "y.npy"]
    subprocess.run([sys.executable, "-c", VECTORS, *map(str, files)], check=True)
    expected = reference_outputs(path, {"x": x})["y"]
    np.testing.assert_allclose(np.load(files[2]), expected, rtol=1e-5, atol=1e-4)


LEFT = {
    "input 1 is not constant": (
        "(uint8[3,5] a, uint8[5,7] b) => (int32[3,7] y) {y = MatMulInteger(a, b)}"
    ),
    "group=6 is unsupported, supported: groups of several channels": (
        "(uint8[1,6,9,11] x) => (int32[1,6,7,9] y) <uint8[6,1,3,3] w> "
        "{y = ConvInteger<group=6>(x, w)}"
    ),
    "a matrix does": "(uint8[2,3,5] a) => (int32[2,3,7] y) <int8[2,5,7] b> "
    "{y = MatMulInteger(a, b)}",
}


@pytest.mark.parametrize("reason", LEFT)
def test_a_form_that_we_lack_is_left_to_onnxruntime(reason, tmp_path):
    program = lower_model(saved(tmp_path, LEFT[reason])).program
    assert reason in " ".join(program.notes)


# Shapes that the file declares are taken where onnx has no definition of an operator.
HOSTILE = {
    "weights of another size": "(uint8[3,5] a) => (int32[3,7] y) <int8[4,7] b> "
    "{y = MatMulInteger(a, b)}",
    "zero points of another size": "(uint8[3,5] a) => (int32[3,7] y) <uint8 p = {0}, int8[4] q, "
    "int8[5,7] b> {y = MatMulInteger(a, b, p, q)}",
    "groups that do not divide": "(uint8[1,6,5,5] x) => (int32[1,8,3,3] y) <uint8[8,2,3,3] w> "
    "{y = ConvInteger<group=4>(x, w)}",
    "no groups": "(uint8[1,6,5,5] x) => (int32[1,8,3,3] y) <uint8[8,2,3,3] w> "
    "{y = ConvInteger<group=0>(x, w)}",
    "scales of another size": "(uint8[3,5] a, float s) => (float[3,7] y) <int8[5,7] b, float[4] t>"
    " {y = com.microsoft.MatMulIntegerToFloat(a, b, s, t)}",
    "a bias of another size": "(uint8[3,5] a, float s) => (float[3,7] y) <int8[5,7] b, "
    'float t = {1}, float[4] c> {y = com.microsoft.MatMulIntegerToFloat(a, b, s, t, "", "", c)}',
    "weights of another rank": "(float[3,5] a) => (float[3,7] y) <int8[5] b, float t = {1}> "
    "{y = com.microsoft.DynamicQuantizeMatMul(a, b, t)}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_operands_that_do_not_fit_are_refused(name, tmp_path):
    assert_refused(saved(tmp_path, HOSTILE[name]), tmp_path)


def outputs_of_one_thread(path, feeds):
    """Return what ONNX Runtime makes of a whole batch; threads would have a range each."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("sizes", [(30, 1, 7, 6), (3, 3, 16, 70)], ids=str)
def test_a_dynamically_quantised_lstm_gives_what_onnxruntime_gives(
    sizes, direction, weights, tmp_path
):
    times, batch, inputs, units = sizes
    d = 2 if direction == "bidirectional" else 1
    state = f"float[{d},{batch},{units}]"
    # ONNX Runtime's results of two directions with a scale for each row differ from run to run.
    kinds = [f"{d}"] if d == 2 else [f"{d}", f"{d},{4 * units}"]
    for states, scales in product((True, False), kinds):
        zero = "130" if weights == "uint8" else "0"
        zeros = f"{{{', '.join([zero] * d)}}}"
        text = f"""(float[{times},{batch},{inputs}] x, {state} h, {state} c) => (y, last, cell)
            <{weights}[{d},{inputs},{4 * units}] w, {weights}[{d},{units},{4 * units}] r,
            float[{d},{8 * units}] b, {weights}[{d}] z = {zeros},
            float[{scales}] s, float[{scales}] t> {{
            y, last, cell = com.microsoft.DynamicQuantizeLSTM<hidden_size={units},
            direction="{direction}">(x, w, r, b, , {"h, c" if states else ","}, , s, z, t, z) }}"""
        model = with_random_integers(parse(text, microsoft=True))
        for tensor in model.graph.initializer:
            if tensor.name in "st":
                array = np.abs(onnx.numpy_helper.to_array(tensor)) / 500
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        path = save(tmp_path, model)
        with PoisonedSession(build(path, tmp_path), guard=True) as session:
            assert set(session.backends()) == {"arenite"}
            feeds = random_feeds(session)
            for _ in range(2):  # nothing is left of the run before
                assert_same(session.run(feeds), outputs_of_one_thread(path, feeds), 1e-5)
