"""TFLite models of 8-bit integers that the bench writes say what their networks say."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

import onnx
import onnxruntime
from ai_edge_litert.interpreter import Interpreter

from arenite.pipeline.session import Session
from arenite.strategies import find
from bench.quantised import quantised_tflite
from bench.zoo.builder import NetworkBuilder


def network() -> onnx.ModelProto:
    """Return one of every layer: padding of both kinds, of neither, and branches of one scale."""
    net = NetworkBuilder("branches", seed=3)
    x = net.conv(net.input("image", 1, 3, 20, 20), 8, 3, 2, padding=1, activation="relu")
    pooled = net.conv(net.average_pool(x, 3, 1), 8, activation="relu")
    wide = net.conv(x, 8, (1, 3), activation="relu")
    x = net.concat([pooled, wide, net.max_pool(x, 3, 1, padding=1)])
    x = net.add(x, net.conv(x, 24, 3), activation="relu")
    x = net.global_average_pool(net.conv(x, 16, 3, 2, padding="valid"))
    x = net.softmax(net.dense(net.reshape(x, 1, 16), 5))
    net.output(x, "probabilities")
    return net.build()


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "branches.tflite"
    path.write_bytes(quantised_tflite(network()))
    return path


def test_the_integers_stand_for_the_numbers_of_the_network(model):
    image = np.random.default_rng(0).uniform(-1, 1, (1, 3, 20, 20)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(network().SerializeToString()).run(
        None, {"image": image}
    )
    interpreter = Interpreter(str(model))
    interpreter.allocate_tensors()
    (fed,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, zero = fed["quantization"]
    integers = np.clip(np.rint(image.transpose(0, 2, 3, 1) / scale) + zero, -128, 127)
    interpreter.set_tensor(fed["index"], integers.astype(np.int8))
    interpreter.invoke()
    scale, zero = made["quantization"]
    found = (interpreter.get_tensor(made["index"]).astype(np.float32) - zero) * scale
    assert np.ptp(wanted) > 0.05
    np.testing.assert_allclose(found, wanted, atol=0.02)


def test_they_run_on_our_kernels(model):
    with Session(model, strategy=find("best")) as session:
        assert set(session.backends()) == {"arenite"}


def test_other_layers_are_refused():
    net = NetworkBuilder("sigmoid")
    net.output(net.sigmoid(net.input("x", 1, 4)), "y")
    with pytest.raises(ValueError, match="known for Sigmoid"):
        quantised_tflite(net.build())
