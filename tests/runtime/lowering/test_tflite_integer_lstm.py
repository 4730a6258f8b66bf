"""LSTMs of integers and of numbers with weights of 8 bits, beside LiteRT's reference kernels."""

import numpy as np
import pytest

from arenite.planner.errors import ModelFormatError
from arenite.runtime import Session
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_layers import LSTM, integer_lstm
from support.tflite_operator import Given, Reference, operator_model, weights

CASES = {
    "plain": {},
    "with a larger layer": {"batch": 1, "times": 20, "inputs": 40, "units": 48, "seed": 8},
    "with a clip": {"clip": 0.4},
    "time major": {"time_major": True},
    "with cells of 6 bits": {"cell_scale": 2**-9},
    "with cells of no bits": {"cell_scale": 2**-15},
    "with a hidden state rounded otherwise": {"hidden_zero_point": 11},
}


@pytest.mark.parametrize("name", CASES)
def test_an_lstm_of_integers_gives_the_bits_that_litert_gives(name, tmp_path):
    path = tmp_path / "lstm.tflite"
    path.write_bytes(integer_lstm(**CASES[name]))
    reference = Reference(path)
    session = PoisonedSession(build(path, tmp_path))
    (port,) = session.inputs
    generator = np.random.default_rng(5)
    runs = [generator.integers(-128, 128, port.shape).astype(np.int8) for _ in range(3)]
    made = []
    for run in runs:
        made += session.run({port.name: run}).values()
        np.testing.assert_array_equal(made[-1], reference.run([run])[0])
    assert len(np.unique(made[0])) > 20
    session.reset()
    np.testing.assert_array_equal(next(iter(session.run({port.name: runs[0]}).values())), made[0])


REFUSED = {
    "a coupled input gate": {"left_out": (1, 5, 12)},
    "not a power of 2": {"cell_scale": 0.001},
    "zero point of the hidden state=400": {"hidden_zero_point": 400},
    "does not state the scale of the hidden state": {"intermediates": 4},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_an_lstm_of_integers_that_we_do_not_compute_is_refused(reason, tmp_path):
    path = tmp_path / "lstm.tflite"
    path.write_bytes(integer_lstm(**REFUSED[reason]))
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)


def float_lstm(matrices, biases, batch=2, times=5):
    units, inputs = matrices[0].shape
    state = Given((batch, units), is_variable=True)
    tensors = [
        Given((batch, times, inputs)), *matrices, None, None, None, *biases, None, None,
        state, state, None, None, None, None,
    ]  # fmt: skip
    options = {"fusedActivationFunction": 4}
    return operator_model(LSTM[0], tensors, [Given((batch, times, units))], (LSTM[1], options))


def test_an_lstm_of_numbers_takes_weights_of_8_bits_as_numbers(tmp_path):
    generator = np.random.default_rng(6)
    units, inputs, scale = 6, 4, 0.01
    stored = [
        generator.integers(-127, 128, (units, depth)).astype(np.int8)
        for depth in (inputs,) * 4 + (units,) * 4
    ]
    biases = [weights(generator.normal(0, 1, units).astype(np.float32)) for _ in range(4)]
    x = generator.normal(0, 1, (2, 5, inputs)).astype(np.float32)
    made = []
    for name, matrices in (
        ("hybrid", [weights(each, scales=(scale,)) for each in stored]),
        ("numbers", [weights(each.astype(np.float32) * np.float32(scale)) for each in stored]),
    ):
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(float_lstm(matrices, biases))
        with Session(build(path, tmp_path)) as session:
            (port,) = session.inputs
            made += session.run({port.name: x}).values()
        # LiteRT rounds the inputs of a hybrid layer to 8 bits, ours does not.
        tolerance = 0.05 if name == "hybrid" else 1e-5
        np.testing.assert_allclose(made[-1], Reference(path).run([x])[0], atol=tolerance)
    np.testing.assert_array_equal(made[0], made[1])


@pytest.mark.parametrize("index", [-3, 40, 2**31 - 1])
def test_a_tensor_between_that_is_none_of_the_file_is_damage(index, tmp_path):
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    flatbuffers = pytest.importorskip("flatbuffers")
    model = schema.ModelT.InitFromPackedBuf(integer_lstm(), 0)
    model.subgraphs[0].operators[0].intermediates = [index]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    path = tmp_path / "lstm.tflite"
    path.write_bytes(builder.Output())
    with pytest.raises(ModelFormatError, match="the options are outside the file"):
        build(path, tmp_path)


def test_a_state_whose_zero_point_its_type_does_not_hold_is_damage(tmp_path):
    path = tmp_path / "lstm.tflite"
    path.write_bytes(integer_lstm(zero_point=300))
    with pytest.raises(ModelFormatError, match="zero point, 300, is no int8"):
        build(path, tmp_path)
