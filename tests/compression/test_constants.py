"""What a graph holds: initialisers, Constant nodes and files beside the model."""

import numpy as np
import onnx
import pytest

from arenite.compression.constants import drop_unused
from arenite.compression.errors import NonFiniteWeightsError
from arenite.compression.onnx_model import FEWEST_WEIGHTS, OnnxModel, write_onnx
from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from support.tiny_onnx import parse, save, with_random_weights

TEXT = """(float[1,30] x) => (float[1,20] y) <float[30,40] a, float[40,20] b, float[5] unused>
{ h = MatMul(x, a) r = Relu(h) y = MatMul(r, b) }"""


def with_constant_nodes(model):
    """Return the model with each initialiser as a Constant node, its tensor without a name."""
    nodes = []
    for tensor in model.graph.initializer:
        held = onnx.TensorProto()
        held.CopyFrom(tensor)
        held.ClearField("name")
        nodes.append(onnx.helper.make_node("Constant", [], [tensor.name], value=held))
    del model.graph.initializer[:]
    nodes += model.graph.node
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@pytest.fixture
def model():
    return with_random_weights(parse(TEXT))


def with_weight(model, name, change):
    for tensor in model.graph.initializer:
        if tensor.name == name:
            change(tensor)
    return model


def test_constant_nodes_hold_weights_as_initialisers_do(model, tmp_path):
    expected = OnnxModel(save(tmp_path, model)).layers
    path = save(tmp_path, with_constant_nodes(model))
    found = OnnxModel(path)
    assert [layer.name for layer in found.layers] == ["a", "b"]
    for layer, other in zip(found.layers, expected, strict=True):
        assert np.array_equal(layer.weights, other.weights)
    before = path.stat().st_size
    write_onnx(path, found.with_weights({"b": np.full((40, 20), 2.0)}))
    assert path.stat().st_size < before  # what is unused went
    assert np.all(OnnxModel(path).layers[1].weights == 2)
    onnx.checker.check_model(onnx.load(path), full_check=True)


def test_only_constants_that_nothing_reads_are_dropped():
    graph = parse(
        """(bool c, float[2] x) => (y, kept)
        <float[2] used = {1,2}, float[2] unused = {3,4}, float[2] captured = {5,6},
        float[2] kept = {7,8}>
        { spare = Constant<value = float[1] {1}>()
          s = If(c) <then_branch = then () => (p) { p = Add(x, captured) },
                     else_branch = other () => (q) { q = Identity(x) }>
          y = Add(s, used) }"""
    ).graph
    drop_unused(graph)
    assert {tensor.name for tensor in graph.initializer} == {"used", "captured", "kept"}
    assert [node.op_type for node in graph.node] == ["If", "Add"]


def test_an_unused_initialiser_that_is_an_input_too_goes_altogether(model):
    model.ir_version = 3
    for tensor in model.graph.initializer:
        model.graph.input.append(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    drop_unused(model.graph)
    assert [value.name for value in model.graph.input] == ["x", "a", "b"]
    onnx.checker.check_model(model)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_named_and_counted(model, tmp_path, value):
    array = np.ones((40, 20), np.float32)
    array[3, 4] = array[5, 6] = value
    with_weight(
        model, "b", lambda tensor: tensor.CopyFrom(onnx.numpy_helper.from_array(array, "b"))
    )
    path = save(tmp_path, model)
    with pytest.raises(NonFiniteWeightsError, match="2 of its 800 weights are NaN") as caught:
        OnnxModel(path)
    assert (caught.value.layer, caught.value.count, caught.value.path) == ("b", 2, path)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: tensor.dims.append(3),
        lambda tensor: tensor.dims.__setitem__(0, -1),
        lambda tensor: tensor.__setattr__("raw_data", tensor.raw_data[:-3]),
        lambda tensor: tensor.__setattr__("raw_data", b""),
    ],
)
def test_a_tensor_that_is_not_of_its_shape_is_named(model, tmp_path, change):
    with pytest.raises(ModelFormatError, match="tensor 'b'"):
        OnnxModel(save(tmp_path, with_weight(model, "b", change)))


def test_a_node_that_its_operator_does_not_define_is_named(model, tmp_path):
    del model.graph.node[2].input[1:]
    with pytest.raises(ModelFormatError, match=r"operator 'y' \(MatMul\)"):
        OnnxModel(save(tmp_path, model))


@pytest.fixture
def external(model, tmp_path):
    """The model with its weights in a file beside it."""
    folder = tmp_path / "external"
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def refused(path):
    with pytest.raises(
        ModelFormatError, match=r"tensor '\w+': (external|bytes|location)"
    ) as caught:
        OnnxModel(path)
    assert caught.value.path == path
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_weights_beside_the_model_count_as_its_bytes(external):
    found = OnnxModel(external)
    assert found.num_bytes == external.stat().st_size + 4 * (1200 + 800 + 5)
    assert not any(each.external_data for each in found.original().graph.initializer)


def test_weights_that_are_missing_are_an_error(external):
    external.with_name("weights.bin").unlink()
    refused(external)


def test_weights_that_are_cut_off_are_an_error(external):
    weights = external.with_name("weights.bin")
    weights.write_bytes(weights.read_bytes()[:5000])
    refused(external)


@pytest.mark.parametrize("location", ["../secret.bin", "{folder}/secret.bin", "link.bin"])
def test_weights_outside_the_folder_are_never_read(external, location):
    secret = external.parent.parent / "secret.bin"
    secret.write_bytes(bytes(100_000))
    external.with_name("link.bin").symlink_to(secret)
    model = onnx.load(external, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location.format(folder=secret.parent)
    external.write_bytes(model.SerializeToString())
    refused(external)


def test_a_length_that_is_not_the_tensors_is_an_error(external):
    model = onnx.load(external, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "length":
            entry.value = "100"
    external.write_bytes(model.SerializeToString())
    refused(external)


def test_a_key_that_onnx_does_not_know_is_an_error(external):
    """Of an offset that is misspelt the value would be ignored, and other weights be read."""
    model = onnx.load(external, load_external_data=False)
    for entry in model.graph.initializer[1].external_data:
        if entry.key == "offset":
            entry.key = "offsdt"
    external.write_bytes(model.SerializeToString())
    assert "external data key 'offsdt' is unknown" in refused(external)


def test_weights_of_gigabytes_are_refused_before_they_are_read(external):
    model = onnx.load(external, load_external_data=False)
    model.graph.initializer[0].dims[:] = [1 << 20, 1 << 20]
    external.write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedModelError, match="2 GiB or more"):
        OnnxModel(external)


def test_what_onnxruntime_fused_is_a_layer(tmp_path):
    model = parse(
        """(float[1,8,9,9] x) => (y) <float[16,8,3,3] w, float[8] b>
        { y = com.microsoft.FusedConv<activation="Relu">(x, w) }""",
        microsoft=True,
    )
    (layer,) = OnnxModel(save(tmp_path, with_random_weights(model))).layers
    assert (layer.name, layer.kind) == ("w", "convolution")
    assert layer.weights.size >= FEWEST_WEIGHTS
