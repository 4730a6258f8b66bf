"""Whole channels go, and nothing else changes."""

import numpy as np
import onnx
import onnxruntime
import pytest

from arenite.compression.graph_rewrites import remove_channels
from arenite.compression.onnx_model import OnnxModel
from arenite.pipeline.targets.compiling import compile_model
from support.running import assert_same
from support.tiny_onnx import parse, save, with_random_weights

CHAIN = """(float[1,3,16,16] x) => (y)
<float[16,3,3,3] a, float[16] b, float[16,1,3,3] d, float[16] e, float[24,16,1,1] f,
float[1536,10] g>
{ p = Conv<pads=[1,1,1,1]>(x, a, b) q = Relu(p) r = Conv<group=16, pads=[1,1,1,1]>(q, d, e)
  s = Relu(r) t = Conv(s, f) u = MaxPool<kernel_shape=[2,2], strides=[2,2]>(t)
  w = Flatten(u) y = MatMul(w, g) }"""
BRANCHES = """(float[1,3,16,16] x) => (y)
<float[16,3,3,3] a, float[16,16,3,3] b>
{ p = Conv<pads=[1,1,1,1]>(x, a) q = Conv<pads=[1,1,1,1]>(p, b) y = Add(p, q) }"""
SIGMOID = """(float[1,3,16,16] x) => (y) <float[16,3,3,3] a, float[8,16,3,3] b>
{ p = Conv(x, a) q = Sigmoid(p) y = Conv(q, b) }"""


def model_of(text, folder):
    return OnnxModel(save(folder, with_random_weights(parse(text)))).original()


def arrays(model):
    return {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}


def outputs(model):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, {"x": x}), strict=True))


@pytest.mark.parametrize("density", [0.25, 0.5, 0.99])
def test_the_smaller_model_is_the_model_with_those_channels_zeroed(tmp_path, density):
    model = model_of(CHAIN, tmp_path)
    narrowed = remove_channels(model, density)
    zeroed = onnx.ModelProto()
    zeroed.CopyFrom(model)
    partners = {"a": ("a", "b", "d", "e"), "f": ("f",)}
    for tensor in zeroed.graph.initializer:
        for name, kept in narrowed.kept.items():
            if tensor.name in partners[name]:
                array = onnx.numpy_helper.to_array(tensor).copy()
                array[np.setdiff1d(np.arange(len(array)), kept)] = 0
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    assert_same(outputs(narrowed.model), outputs(zeroed), tolerance=1e-5)
    assert {name: len(kept) for name, kept in narrowed.kept.items()} == {
        name: round(density * count)
        for name, count in narrowed.num_channels.items()
        if round(density * count) < count
    }


def test_the_channels_with_the_smallest_filters_go(tmp_path):
    model = model_of(CHAIN, tmp_path)
    kept = remove_channels(model, 0.5).kept["a"]
    norms = np.abs(arrays(model)["a"]).sum(axis=(1, 2, 3))
    assert set(kept) == set(np.argsort(-norms)[:8])


def test_the_arena_shrinks(tmp_path):
    model = model_of(CHAIN, tmp_path)
    path = tmp_path / "narrow.onnx"
    onnx.save(model, path)
    before = compile_model(path).source.problem.lower_bound
    onnx.save(remove_channels(model, 0.5).model, path)
    assert compile_model(path).source.problem.lower_bound < 0.6 * before


@pytest.mark.parametrize("text", [BRANCHES, SIGMOID])
def test_channels_stay_where_others_read_them_or_zero_is_not_kept(tmp_path, text):
    model = model_of(text, tmp_path)
    narrowed = remove_channels(model, 0.5)
    assert not narrowed.kept
    assert arrays(narrowed.model).keys() == arrays(model).keys()


@pytest.mark.parametrize("density", [0, 1.5, float("nan")])
def test_a_density_out_of_range_is_refused(tmp_path, density):
    with pytest.raises(ValueError, match="density"):
        remove_channels(model_of(CHAIN, tmp_path), density)
