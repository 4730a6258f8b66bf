"""Models of 16-bit floats, which are computed with 32 bits, beside ONNX Runtime."""

import numpy as np
import onnx
import pytest

import arenite
from arenite.pipeline.base import Reading
from arenite.pipeline.targets.compiling import lower_model
from arenite.planner import DType
from arenite.runtime.rewrites import Activations
from support.running import PoisonedSession, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save

GENERATOR = np.random.default_rng(3)


def saved(folder, text):
    model = parse(text)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float16 and not array.any():
            numbers = GENERATOR.standard_normal(array.shape).astype(np.float16)
            tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    return save(folder, model)


CASES = {
    "a network": "(float16[1,3,16,16] x) => (float16[1,5] y) <float16[8,3,3,3] w, float16[8] b, "
    "float16[128,5] f> {c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w, b) r = Relu(c) "
    "p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r) l = Flatten(p) m = MatMul(l, f) "
    "y = Softmax(m)}",
    "floats outside": "(float[2,6] x) => (float[2,5] y) <float16[6,5] w> "
    "{h = Cast<to=10>(x) m = MatMul(h, w) t = Tanh(m) y = Cast<to=1>(t)}",
    "an output that others read": "(float16[2,6] x) => (float16[2,6] a, float16[2,6] y) "
    "{a = Tanh(x) y = Sigmoid(a)}",
    "an input that is an output": "(float16[2,6] x) => (float16[2,6] y, float16[2,6] z) "
    "{y = Identity(x) z = Tanh(x)}",
}


@pytest.mark.parametrize("name", CASES)
def test_a_model_of_16_bit_floats_gives_what_onnxruntime_gives(name, tmp_path):
    path = saved(tmp_path, CASES[name])
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert set(session.backends()) == {"arenite"}
        feeds = random_feeds(session)
        outputs, expected = session.run(feeds), reference_outputs(path, feeds)
        for key, value in expected.items():
            assert outputs[key].dtype == value.dtype
            np.testing.assert_allclose(outputs[key], value, rtol=4e-3, atol=1e-3)


def test_an_operator_of_onnxruntime_has_wide_constants(tmp_path):
    text = (
        "(float16[3,4] x) => (float16[3,5] y) <float16[4,5] w, int64[1] n = {1}> "
        "{t = Trilu(w) m = MatMul(x, t) u = Trilu(m) y = Tanh(u)}"
    )
    path = saved(tmp_path, text)
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert set(session.backends()) == {"arenite", "onnxruntime"}
        feeds = random_feeds(session)
        (y,) = session.run(feeds).values()
        (expected,) = reference_outputs(path, feeds).values()
        np.testing.assert_allclose(y, expected, rtol=4e-3, atol=1e-3)


def test_floats_that_are_only_stored_stay_narrow(tmp_path):
    path = saved(
        tmp_path,
        "(float[2,6] x) => (float[6,2] y) {h = Cast<to=10>(x) t = Transpose(h) y = Cast<to=1>(t)}",
    )
    tensors = lower_model(path).program.tensors.values()
    assert any(tensor.dtype is DType.FLOAT16 for tensor in tensors)


def test_conversions_have_the_bits_of_numpy(tmp_path):
    """All halves, and floats around each and around their midpoints."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    wide = halves.astype(np.float32)
    ordered = np.sort(wide)
    middles = (ordered[1:] + ordered[:-1]) / 2
    beyond = np.float32([65519, 65520, 65536, 1e9, np.inf, 1e-8, 2e-8, 3e-8, 1e-40])
    numbers = [np.nextafter(each, np.float32(end)) for each in (wide, middles) for end in (-9, 9)]
    floats = np.concatenate([wide, middles, *numbers, beyond, -beyond])
    text = (
        f"(float[{floats.size}] x, float16[{halves.size}] h) => (float16[{floats.size}] n, "
        f"float[{halves.size}] w) {{n = Cast<to=10>(x) w = Cast<to=1>(h)}}"
    )
    with PoisonedSession(build(saved(tmp_path, text), tmp_path)) as session:
        outputs = session.run({"x": floats, "h": halves})
    with np.errstate(over="ignore"):
        expected = floats.astype(np.float16)
    np.testing.assert_array_equal(outputs["n"].view(np.uint16), expected.view(np.uint16))
    np.testing.assert_array_equal(outputs["w"].view(np.uint32), wide.view(np.uint32))


def test_results_and_weights_keep_16_bits(tmp_path):
    path = saved(
        tmp_path,
        "(float16[1,8,64,64] x) => (float16[1,64,8,8] y) <float16[8,8,3,3] v, float16[64,8,1,1] w>"
        "{c = Conv<pads=[1,1,1,1]>(x, v) p = MaxPool<kernel_shape=[8,8], strides=[8,8]>(c) "
        "t = Transpose<perm=[0,1,3,2]>(p) y = Conv(t, w)}",
    )

    def kept(activations):
        reading = Reading(activations=activations and Activations(activations))
        program = lower_model(path, reading).program
        results = {
            name
            for name, each in program.tensors.items()
            if each.dtype is DType.FLOAT16 and name not in program.output_tensors
        }
        return results, arenite.plan(path, activations=activations).plan.height, program.constants

    halves, height, constants = kept(None)
    assert {"c", "p", "x/wide"} <= halves
    assert any(each.dtype == np.float16 for each in constants.values())
    wide, wide_height, constants = kept("fp32")
    assert wide == {"x"}
    assert not any(each.dtype == np.float16 for each in constants.values())
    assert height < 0.7 * wide_height


def test_results_that_a_model_states_with_32_bits_keep_them(tmp_path):
    path = saved(
        tmp_path,
        "(float[1,8,16,16] x) => (float[1,8,16,16] y) {a = Tanh(x) h = Cast<to=10>(a) "
        "t = Sigmoid(h) w = Cast<to=1>(t) y = Exp(w)}",
    )
    types = {name: each.dtype for name, each in lower_model(path).program.tensors.items()}
    assert types["t"] is DType.FLOAT16
    assert types["a"] is DType.FLOAT32
