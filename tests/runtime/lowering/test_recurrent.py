"""ONNX's LSTM and GRU beside ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.shared_material import shared
from support.tiny_onnx import save

TIMES, BATCH, INPUTS, UNITS = 5, 3, 7, 6
GATES = {"LSTM": 4, "GRU": 3}
STATES = {"LSTM": ["h", "c"], "GRU": ["h"]}


def layer(kind, direction, *, has_states, has_bias=True, outputs=None, **attributes):
    directions = 2 if direction == "bidirectional" else 1
    generator = np.random.default_rng(1)
    shapes = {
        "W": (directions, GATES[kind] * UNITS, INPUTS),
        "R": (directions, GATES[kind] * UNITS, UNITS),
        "B": (directions, 2 * GATES[kind] * UNITS),
    }
    constants = [
        numpy_helper.from_array(0.4 * generator.standard_normal(s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    state = (directions, BATCH, UNITS)
    states = STATES[kind] if has_states else []
    made = outputs or ["Y", *(f"Y_{name}" for name in STATES[kind])]
    whole = (TIMES, directions, BATCH, UNITS)
    node = helper.make_node(
        kind, ["x", "W", "R", "B" if has_bias else "", "", *states], made,
        hidden_size=UNITS, direction=direction, **attributes,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "layer",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, (TIMES, BATCH, INPUTS)),
            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in states),
        ],
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, whole if n == "Y" else state)
            for n in made
            if n
        ],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(model: onnx.ModelProto, folder):
    path = save(folder, model)
    session = PoisonedSession(build(path, folder))
    assert set(session.backends()) <= {"arenite", "xnnpack"}
    feeds = random_feeds(session)
    for _ in range(2):  # nothing is left of the run before
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


@pytest.mark.parametrize("has_states", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_an_lstm_gives_what_onnxruntime_gives(direction, has_states, tmp_path):
    check(layer("LSTM", direction, has_states=has_states), tmp_path)


@pytest.mark.parametrize("resets_after", [0, 1])
@pytest.mark.parametrize("has_states", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_gru_gives_what_onnxruntime_gives(direction, has_states, resets_after, tmp_path):
    model = layer("GRU", direction, has_states=has_states, linear_before_reset=resets_after)
    check(model, tmp_path)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_layer_without_bias_of_which_the_last_state_alone_is_read(kind, tmp_path):
    check(layer(kind, "forward", has_states=False, has_bias=False, outputs=["", "Y_h"]), tmp_path)


def test_the_voice_activity_detector_runs_without_fallback(tmp_path):
    path = shared("models/onnx/silero_vad_16k_op15.onnx")
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    program = build(
        path, tmp_path, dims={"batch": 1, "sequence": 576}, shapes={"state": (2, 1, 128)}
    )
    session = PoisonedSession(program)
    assert "onnxruntime" not in session.backends()
    feeds = random_feeds(session)
    assert_same(session.run(feeds), reference_outputs(path, feeds | {"sr": np.array(16_000)}))
