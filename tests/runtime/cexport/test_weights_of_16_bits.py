"""Weights that a model stores as halves or bfloat16 take 16 bits in C, and change no output."""

import numpy as np
import onnx
import pytest

from arenite.runtime.cexport.steps import writer
from support.exported_c import Machine, compiled, drawn, exported
from support.shared_material import shared
from support.tflite_layers import LSTM
from support.tflite_operator import Given, operator_model, weights
from support.tiny_onnx import parse, save

LAYERS = {
    "conv": ("(float[1, 3, 9, 8] x) => (y) <{} w> {{ v = Cast<to = 1>(w) y = Conv(x, v) }}",
             (5, 3, 3, 3)),
    "depthwise": (
        "(float[1, 6, 9, 8] x) => (y) "
        "<{} w> {{ v = Cast<to = 1>(w) y = Conv<group = 6>(x, v) }}", (6, 1, 3, 3),
    ),
    "pointwise": ("(float[7, 40] x) => (y) <{} w> {{ v = Cast<to = 1>(w) y = MatMul(x, v) }}",
                  (40, 6)),
}  # fmt: skip


def stored(kind, shape):
    """Return an initialiser of a type, small and large numbers among its elements."""
    numbers = np.random.default_rng(3).normal(0, 1, shape).astype(np.float32)
    flat = numbers.reshape(-1)
    if kind == "bfloat16":
        flat[:4] = (1e-30, -3e30, 0.0, -0.0)
        data = (numbers.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        return onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, shape, data, raw=True)
    flat[:4] = (6e-8, -3e-6, 65504, -0.0)
    return onnx.numpy_helper.from_array(numbers.astype(np.float16), "w")


def both(path, tmp_path, monkeypatch):
    """Return an export and its output; and those of the same with weights of 32 bits."""
    made = []
    for folder in ("narrow", "wide"):
        export = exported(path)
        machine = Machine.of(export, compiled(export, tmp_path / folder))
        (output,) = machine.run(drawn(export, 5)).values()
        made.append((export, output))
        monkeypatch.setattr(writer, "_NARROWINGS", ())
    return made


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("layer", LAYERS)
def test_initialisers_of_onnx_keep_16_bits(layer, kind, tmp_path, monkeypatch):
    text, shape = LAYERS[layer]
    written = f"{kind}[{', '.join(map(str, shape))}]"
    model = parse(text.format(written))
    del model.graph.initializer[:]
    model.graph.initializer.append(stored(kind, shape))
    (narrow, output), (wide, same) = both(save(tmp_path, model), tmp_path, monkeypatch)
    suffix = "bf16" if kind == "bfloat16" else "f16"
    assert f"{layer}_{suffix}" in narrow.kernels
    assert f"{layer}_f32" in wide.kernels
    assert wide.weight_bytes - narrow.weight_bytes >= 2 * np.prod(shape)
    np.testing.assert_array_equal(output.view(np.uint32), same.view(np.uint32))


def halves(*shape):
    numbers = np.random.default_rng(len(shape)).normal(0, 1, shape)
    return weights(numbers.astype(np.float16).astype(np.float32))


def recurrent(kind):
    if kind == "svdf":
        inputs = [Given((2, 7)), halves(6, 7), halves(6, 5), None,
                  Given((2, 30), is_variable=True)]  # fmt: skip
        options = ("SVDFOptions", {"rank": 2})
        return operator_model("SVDF", inputs, [Given((2, 3))], options)
    state = Given((2, 3), is_variable=True)
    inputs = [
        Given((2, 4, 6)), *(halves(3, 6) for _ in range(4)), *(halves(3, 3) for _ in range(4)),
        None, None, None, *(halves(3) for _ in range(4)), None, None, state, state,
        None, None, None, None,
    ]  # fmt: skip
    options = {"fusedActivationFunction": 4}
    return operator_model(LSTM[0], inputs, [Given((2, 4, 3))], (LSTM[1], options))


@pytest.mark.parametrize("kind", ["svdf", "lstm"])
def test_recurrent_layers_keep_16_bits(kind, tmp_path, monkeypatch):
    path = tmp_path / "model.tflite"
    path.write_bytes(recurrent(kind))
    (narrow, output), (_, same) = both(path, tmp_path, monkeypatch)
    assert f"{kind}_f16" in narrow.kernels
    np.testing.assert_array_equal(output, same)


def test_a_few_weights_that_16_bits_hold_by_chance_stay_floats(tmp_path):
    text = (
        "(float[1, 4, 9, 8] x) => (y) <float[4, 1, 3, 3] blur, float[5, 4, 3, 3] w> "
        "{ b = Conv<group = 4>(x, blur) y = Conv(b, w) }"
    )
    model = parse(text)
    numbers = np.random.default_rng(2).normal(0, 1, (5, 4, 3, 3)).astype(np.float32)
    model.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(numbers, "w"))
    export = exported(save(tmp_path, model))
    assert {"conv_f32", "depthwise_f32"} <= set(export.kernels)


def test_a_published_model_takes_no_more_flash_than_its_file():
    path = shared("models/tflite/face_detection_front.tflite")
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    assert exported(path).weight_bytes < path.stat().st_size
