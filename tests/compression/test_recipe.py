"""Whole models: what is compressed, and what it comes to."""

import numpy as np
import onnx
import onnxruntime
import pytest

from arenite.compression.coding import decode
from arenite.compression.errors import NoLayerError
from arenite.compression.onnx_model import LayerKind, OnnxModel, write_onnx
from arenite.compression.recipe import CompressionRecipe, LayerRecipe, compress
from arenite.planner.errors import ModelFormatError
from support.running import assert_same
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[1,8,9,9] x) => (y)
<float[24,8,3,3] a, float[24] scale, float[24] shift, float[24] mean, float[24] variance,
float[64,1,3,3] d, float[64,24,1,1] e, float[64] f, float[5184,30] g, float[30,40] h,
float[8,8,1,1] tiny>
{ t = Conv(x, tiny) b = Conv<pads=[1,1,1,1]>(t, a)
  n = BatchNormalization(b, scale, shift, mean, variance) r = Relu(n) p = Conv(r, e, f)
  q = Conv<group=64, pads=[1,1,1,1]>(p, d) w = Flatten(q) v = Gemm(w, g) y = MatMul(v, h) }"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    model = with_random_weights(parse(NETWORK))
    for tensor in model.graph.initializer:
        if tensor.name == "variance":
            array = np.abs(onnx.numpy_helper.to_array(tensor)) + 0.1
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return save(tmp_path_factory.mktemp("network"), model)


def outputs(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, {"x": x}), strict=True))


def test_batch_norms_are_folded_and_the_model_computes_the_same(path):
    source = OnnxModel(path)
    assert "BatchNormalization" not in [node.op_type for node in source.original().graph.node]
    x = np.random.default_rng(0).standard_normal((1, 8, 9, 9)).astype(np.float32)
    assert_same(outputs(source.original(), x), outputs(onnx.load(path), x), tolerance=1e-5)


def test_layers_are_what_computes_and_is_large_enough(path):
    kinds = {layer.name: layer.kind for layer in OnnxModel(path).layers}
    assert kinds == {
        "a": LayerKind.CONVOLUTION, "e": LayerKind.CONVOLUTION, "d": LayerKind.DEPTHWISE,
        "g": LayerKind.PRODUCT, "h": LayerKind.PRODUCT,
    }  # fmt: skip


def test_by_default_weights_are_shared_and_none_is_pruned(path):
    source = OnnxModel(path)
    compressed = compress(source.layers, CompressionRecipe(convolution_bits=4, product_bits=3))
    assert not compressed.pruned
    for layer, result in zip(source.layers, compressed.results, strict=True):
        weights = compressed.shared[layer.name]
        bits = 3 if layer.kind is LayerKind.PRODUCT else 4
        assert (result.bits, result.num_kept) == (bits, layer.weights.size)
        assert np.unique(weights).size <= 2**bits
        assert decode(bytes(result.code), weights.shape).tobytes() == weights.tobytes()
        assert result.coded_size == result.code.size < layer.weights.nbytes / 4
        difference = (weights - layer.weights).astype(np.float64)
        energy = np.square(layer.weights.astype(np.float64)).sum()
        assert result.error == pytest.approx(np.square(difference).sum() / energy)


@pytest.mark.parametrize(
    "recipe",
    [
        CompressionRecipe(density=0.2),
        CompressionRecipe(budget=0.2),
        CompressionRecipe(deviation=1.2),
    ],
)
def test_pruning_leaves_depthwise_convolutions_alone(path, recipe):
    source = OnnxModel(path)
    compressed = compress(source.layers, recipe)
    results = {result.name: result for result in compressed.results}
    assert "d" not in compressed.pruned
    assert results["d"].num_kept == results["d"].num_weights
    total = sum(each.num_weights for name, each in results.items() if name != "d")
    kept = sum(each.num_kept for name, each in results.items() if name != "d")
    assert kept / total == pytest.approx(0.2, abs=0.05)
    for name, pruned in compressed.pruned.items():
        assert np.array_equal(pruned != 0, compressed.shared[name] != 0)


def test_layers_have_exceptions(path):
    source = OnnxModel(path)
    exceptions = {"g": LayerRecipe(density=0.1, bits=5), "a": LayerRecipe(bits=0)}
    compressed = compress(source.layers, CompressionRecipe(layers=exceptions))
    results = {result.name: result for result in compressed.results}
    assert results["g"].num_kept == round(0.1 * results["g"].num_weights)
    assert results["a"].code is None
    assert results["a"].coded_size == 4 * results["a"].num_weights
    assert results["a"].error == 0
    with pytest.raises(ValueError, match="no layer 'z'"):
        compress(source.layers, CompressionRecipe(layers={"z": LayerRecipe(bits=4)}))


def test_the_written_model_has_the_new_weights_and_is_whole(path, tmp_path):
    source = OnnxModel(path)
    compressed = compress(source.layers, CompressionRecipe())
    model = source.with_weights(compressed.shared)
    write_onnx(tmp_path / "out.onnx", model)
    again = OnnxModel(tmp_path / "out.onnx")
    for layer in again.layers:
        assert layer.weights.tobytes() == compressed.shared[layer.name].tobytes()
    x = np.random.default_rng(0).standard_normal((1, 8, 9, 9)).astype(np.float32)
    assert_same(outputs(again.original(), x), outputs(source.original(), x), tolerance=0.05)


def test_a_model_without_weights_is_refused(tmp_path):
    path = save(tmp_path, parse("(float[4] x) => (y) { y = Relu(x) }"))
    with pytest.raises(NoLayerError, match="no layer to compress"):
        OnnxModel(path)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"nothing")
    with pytest.raises(ModelFormatError):
        OnnxModel(path)


def test_weights_in_a_file_beside_the_model_are_read_and_their_absence_is_named(path, tmp_path):
    twin = tmp_path / "external.onnx"
    onnx.save(onnx.load(path), twin, save_as_external_data=True, location="weights.bin")
    assert [layer.name for layer in OnnxModel(twin).layers] == [
        layer.name for layer in OnnxModel(path).layers
    ]
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ModelFormatError, match=r"external file 'weights\.bin' is missing"):
        OnnxModel(twin)
