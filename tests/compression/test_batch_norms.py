"""Batch norms are folded where that changes nothing and saves bytes."""

import numpy as np
import onnx
import onnxruntime
import pytest

from arenite.compression.graph_rewrites import fold_batch_norms
from arenite.compression.onnx_model import OnnxModel
from support.running import assert_same
from support.tiny_onnx import parse, save, with_random_weights

TEXT = """(float[1,8,9,9] x) => (float[1,24,7,7] y)
<float[24,8,3,3] w, float[24] s, float[24] t, float[24] m, float[24] v>
{ p = Conv(x, w) q = BatchNormalization(p, s, t, m, v) y = Relu(q) }"""


def many_norms(count):
    """Return convolutions whose norms all read the same four vectors."""
    weights = "".join(f"float[24,24,1,1] w{index}, " for index in range(count))
    nodes = "".join(
        f"p{index} = Conv(t{index}, w{index}) "
        f"t{index + 1} = BatchNormalization(p{index}, s, t, m, v) "
        for index in range(count)
    )
    return f"""(float[1,24,9,9] t0) => (float[1,24,9,9] y)
<{weights}float[24] s, float[24] t, float[24] m, float[24] v> {{ {nodes} y = Relu(t{count}) }}"""


def model_of(text, variance=1.0):
    model = with_random_weights(parse(text))
    for tensor in model.graph.initializer:
        if tensor.name == "v":
            array = np.full(tensor.dims, variance, np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, "v"))
    return model


def outputs(model):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (value,) = session.get_inputs()
    x = np.random.default_rng(0).standard_normal(value.shape).astype(np.float32)
    return {"y": session.run(None, {value.name: x})[0]}


def kinds(model):
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("ir_version", [3, 8])
def test_what_is_folded_is_the_same_and_what_it_was_made_of_is_gone(tmp_path, ir_version):
    model = model_of(TEXT)
    model.ir_version = ir_version
    if ir_version == 3:
        for tensor in model.graph.initializer:
            model.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, 1, tensor.dims)
            )
    expected = {}
    if ir_version > 3:
        expected = outputs(model)
    path = save(tmp_path, model)
    folded = OnnxModel(path).original()
    onnx.checker.check_model(folded, full_check=True)
    assert kinds(folded) == ["Conv", "Relu"]
    assert len(folded.graph.initializer) == 2
    assert folded.ByteSize() < path.stat().st_size
    if expected:
        assert_same(outputs(folded), expected, tolerance=1e-4)


def test_norms_that_share_their_vectors_do_not_make_the_model_larger(tmp_path):
    model = model_of(many_norms(12))
    path = save(tmp_path, model)
    kept = OnnxModel(path).original()
    assert kinds(kept) == kinds(model)
    assert kept.ByteSize() <= path.stat().st_size


def test_constants_of_both_operators_may_be_nodes(tmp_path):
    model = model_of(TEXT)
    nodes = [
        onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
        for tensor in model.graph.initializer
    ]
    expected = outputs(model)
    del model.graph.initializer[:]
    convolution, *others = model.graph.node
    nodes = [nodes[0], convolution, *nodes[1:], *others]  # the norm's follow the convolution
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    folded = OnnxModel(save(tmp_path, model)).original()
    onnx.checker.check_model(folded, full_check=True)
    assert kinds(folded) == ["Constant", "Conv", "Relu"]
    assert_same(outputs(folded), expected, tolerance=1e-4)


def test_a_norm_that_would_make_weights_not_finite_stays():
    model = model_of(TEXT, variance=-2.0)
    before = model.SerializeToString()
    fold_batch_norms(model)
    assert model.SerializeToString() == before


def test_a_norm_of_other_channels_stays():
    model = model_of(TEXT.replace("float[24] t", "float[23] t"))
    before = model.SerializeToString()
    fold_batch_norms(model)
    assert model.SerializeToString() == before


def test_a_nan_that_signals_is_converted_in_silence():
    """It sets a flag of the processor that numpy warns of; warnings are errors here."""
    model = model_of(TEXT)
    weights = np.full(24 * 8 * 9, 0x7F800001, "<u4").tobytes()
    model.graph.initializer[0].raw_data = weights
    fold_batch_norms(model)
    assert kinds(model) == ["Conv", "BatchNormalization", "Relu"]
