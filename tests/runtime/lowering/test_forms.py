"""Forms of operators that our kernels do not have, or that once gave another form's result."""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import Session
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import assert_agrees, assert_same, build, reference_outputs
from support.tflite_operator import Given, Reference, operator_model
from support.tiny_onnx import parse, save


def test_the_mask_of_a_dropout_that_drops_nothing_is_true(tmp_path):
    path = save(
        tmp_path, parse("(float[2,6] x) => (y, bool[2,6] m) {a = Exp(x) y, m = Dropout(a)}")
    )
    assert_agrees(path, tmp_path, tolerance=1e-4)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_is_laid_out_as_the_mode_says(mode, tmp_path):
    model = parse(f'(float[1,2,4,6] x) => (y) {{y = SpaceToDepth<blocksize=2, mode="{mode}">(x)}}')
    model.opset_import[0].version = 28  # the first that has a mode
    with Session(build(save(tmp_path, model), tmp_path)) as session:
        x = np.arange(48, dtype=np.float32).reshape(1, 2, 4, 6)
        (y,) = session.run({"x": x}).values()
    blocks = x.reshape(1, 2, 2, 2, 3, 2)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    np.testing.assert_array_equal(y, blocks.transpose(order).reshape(1, 8, 2, 3))


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceL1"])
def test_the_reduction_of_a_scalar_is_left_to_onnxruntime(kind, tmp_path):
    path = save(tmp_path, parse(f"(float x) => (float y) {{y = {kind}(x)}}"))
    with Session(build(path, tmp_path)) as session:
        assert session.backends() == ("onnxruntime",)
        feeds = {"x": np.array(-2.5, np.float32)}
        assert_same(session.run(feeds), reference_outputs(path, feeds))


def cast(folder, source, target):
    path = folder / "cast.tflite"
    path.write_bytes(operator_model("CAST", [source], [target], ("CastOptions", {})))
    return path


def test_a_cast_of_integers_that_stand_for_other_numbers_is_refused(tmp_path):
    path = cast(tmp_path, Given((2, 3), "uint8", None, (0.5,), 128), Given((2, 3)))
    with pytest.raises(UnsupportedOperatorsError, match="CAST of a quantised tensor"):
        compile_model(path)


def test_a_cast_of_integers_that_stand_for_themselves_gives_what_litert_gives(tmp_path):
    path = cast(tmp_path, Given((2, 3), "uint8", None, (1.0,), 0), Given((2, 3)))
    x = np.arange(250, 256, dtype=np.uint8).reshape(2, 3)
    with Session(build(path, tmp_path)) as session:
        (y,) = session.run({session.inputs[0].name: x}).values()
    np.testing.assert_array_equal(y, Reference(path).run([x])[0])


DECODER = """(float[1,past,4] cache, float[1,1,4] x) => (y, keys)
{ keys = Concat<axis=1>(cache, x) t = Transpose<perm=[0,2,1]>(keys) s = MatMul(x, t)
  p = Softmax<axis=-1>(s) y = MatMul(p, keys) }"""


def test_the_first_step_of_a_decoder_has_no_past(tmp_path):
    path = save(tmp_path, parse(DECODER))
    built = build(path, tmp_path, reading=Reading(dims={"past": 0}))
    feeds = {
        "cache": np.empty((1, 0, 4), np.float32), "x": np.ones((1, 1, 4), np.float32)
    }  # fmt: skip
    with Session(built) as session:
        found = session.run(feeds)
    np.testing.assert_array_equal(found["keys"], feeds["x"])
    np.testing.assert_allclose(found["y"], feeds["x"], rtol=1e-6)


def test_nothing_is_joined_to_nothing(tmp_path):
    text = "(float[1,0,4] x) => (y) { a = Relu(x) y = Concat<axis=2>(a, x) }"
    with Session(build(save(tmp_path, parse(text)), tmp_path)) as session:
        found = session.run({"x": np.empty((1, 0, 4), np.float32)})
    assert found["y"].shape == (1, 0, 8)
