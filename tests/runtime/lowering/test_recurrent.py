"""ONNX's LSTM, GRU and RNN beside ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner import AreniteError
from arenite.planner.importers import read
from arenite.planner.programs.rules import SAFE_KINDS
from arenite.runtime.operators import Lstm
from arenite.strategies import find, find_order
from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.shared_material import shared
from support.tiny_onnx import parse, save, with_random_weights

TIMES, BATCH, INPUTS, UNITS = 5, 3, 7, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": ["h", "c"], "GRU": ["h"], "RNN": ["h"]}


def layer(
    kind, direction, *, has_states, has_bias=True, has_lengths=False, outputs=None, **attributes
):
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
        kind, ["x", "W", "R", "B" if has_bias else "", "n" if has_lengths else "", *states],
        made,
        hidden_size=UNITS, direction=direction, **attributes,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "layer",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, (TIMES, BATCH, INPUTS)),
            *[helper.make_tensor_value_info("n", TensorProto.INT32, [BATCH])][:has_lengths],
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
    assert set(session.backends()) == {"arenite"}
    feeds = random_feeds(session)
    for _ in range(2):  # nothing is left of the run before
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_closed_gates_leave_no_subnormal_states(kind, tmp_path):
    model = layer(kind, "forward", has_states=False)
    for tensor in model.graph.initializer:
        if tensor.name == "B":
            closed = np.full(tensor.dims, -88 if kind == "LSTM" else 88, np.float32)
            tensor.CopyFrom(numpy_helper.from_array(closed, "B"))
    path = save(tmp_path, model)
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        made = session.run(feeds)
    assert_same(made, reference_outputs(path, feeds), 1e-5)
    for array in made.values():
        sizes = np.abs(array)
        assert not ((sizes > 0) & (sizes < np.finfo(np.float32).tiny)).any()


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


@pytest.mark.parametrize("activation", ["Tanh", "Relu"])
@pytest.mark.parametrize("has_states", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_an_rnn_gives_what_onnxruntime_gives(direction, has_states, activation, tmp_path):
    activations = [activation] * (2 if direction == "bidirectional" else 1)
    check(layer("RNN", direction, has_states=has_states, activations=activations), tmp_path)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "resets_after"), [("LSTM", 0), ("GRU", 0), ("GRU", 1), ("RNN", 0)]
)
def test_sequences_end_at_their_lengths(kind, resets_after, direction, tmp_path):
    option = {"linear_before_reset": resets_after} if kind == "GRU" else {}
    model = layer(kind, direction, has_states=True, has_lengths=True, **option)
    path = save(tmp_path, model)
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert set(session.backends()) == {"arenite"}
        for lengths in ([5, 2, 4], [1, 3, 3], [5, 5, 5]):
            feeds = random_feeds(session) | {"n": np.array(lengths, np.int32)}
            assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)
        feeds["n"] = np.array([0, 2, 0], np.int32)  # an empty sequence keeps its state
        outputs = session.run(feeds)
        assert not outputs["Y"][:, :, [0, 2]].any()
        assert not outputs["Y"][2:].any()
        for name, made in zip(STATES[kind], list(outputs)[1:], strict=True):
            np.testing.assert_array_equal(outputs[made][:, [0, 2]], feeds[name][:, [0, 2]])
        for wrong in (-1, TIMES + 1):
            feeds["n"][1] = wrong
            with pytest.raises(AreniteError, match=f"index {wrong} is not in 0 to {TIMES}"):
                session.run(feeds)


def test_constant_lengths_beyond_all_times_are_refused(tmp_path):
    model = layer("GRU", "forward", has_states=False, has_lengths=True)
    del model.graph.input[1]
    lengths = np.array([1, TIMES + 1, 2], np.int32)
    model.graph.initializer.append(numpy_helper.from_array(lengths, "n"))
    (note,) = compile_model(save(tmp_path, model)).program.notes
    assert f"sequence_lens has numbers that are not in 0 to {TIMES}" in note


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_layer_without_bias_of_which_the_last_state_alone_is_read(kind, tmp_path):
    check(layer(kind, "forward", has_states=False, has_bias=False, outputs=["", "Y_h"]), tmp_path)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize(
    ("position", "shape"), [(1, (1, 10, INPUTS)), (2, (1, 7, 5)), (3, (1, 4)), (1, ()), (2, ())]
)
def test_weights_of_another_shape_are_left_to_onnxruntime(kind, position, shape, tmp_path):
    model = layer(kind, "forward", has_states=False)
    name = model.graph.node[0].input[position]
    wrong = numpy_helper.from_array(np.zeros(shape, np.float32), name)
    model.graph.initializer[position - 1].CopyFrom(wrong)
    (note,) = compile_model(save(tmp_path, model)).program.notes
    assert f"{name} has shape {shape}, not (1, " in note


def test_the_voice_activity_detector_runs_without_fallback(tmp_path):
    path = shared("models/onnx/silero_vad_16k_op15.onnx")
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    reading = Reading(dims={"batch": 1, "sequence": 576}, shapes={"state": (2, 1, 128)})
    session = PoisonedSession(build(path, tmp_path, reading=reading))
    assert "onnxruntime" not in session.backends()
    feeds = random_feeds(session)
    assert_same(session.run(feeds), reference_outputs(path, feeds | {"sr": np.array(16_000)}))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "resets_after"), [("LSTM", 0), ("GRU", 0), ("GRU", 1), ("RNN", 0)]
)
def test_layers_of_more_units_than_are_made_at_once(kind, resets_after, direction, tmp_path):
    """Each unit reads the whole state from before, whichever were made already."""
    n, rows = 2 if direction == "bidirectional" else 1, 70 * GATES[kind]
    option = f", linear_before_reset={resets_after}" if kind == "GRU" else ""
    text = f"""(float[5,3,7] x, float[{n},3,70] h) => (y, last)
        <float[{n},{rows},7] w, float[{n},{rows},70] r, float[{n},{2 * rows}] b> {{
            y, last = {kind}<hidden_size=70, direction="{direction}"{option}>(x, w, r, b, , h)
        }}"""
    model = with_random_weights(parse(text))
    for tensor in model.graph.initializer:  # small enough that errors do not grow
        small = 0.1 * numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(small.astype(np.float32), tensor.name))
    check(model, tmp_path)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_layer_whose_weights_are_read_once_for_several_times(direction, tmp_path):
    n = 2 if direction == "bidirectional" else 1
    text = f"""(float[11,3,512] x, float[{n},3,70] h, float[{n},3,70] c) => (y, last, cell)
        <float[{n},280,512] w, float[{n},280,70] r, float[{n},560] b> {{
            y, last, cell = LSTM<hidden_size=70, direction="{direction}">(x, w, r, b, , h, c)
        }}"""
    model = with_random_weights(parse(text))
    for tensor in model.graph.initializer:
        small = 0.05 * numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(small.astype(np.float32), tensor.name))
    check(model, tmp_path)
    program = compile_model(save(tmp_path, model)).program
    (step,) = (each for each in program.steps if isinstance(each.operator, Lstm))
    assert step.operator.scratch(program.operands(step)) == 4 * (4 * 3 * 4 * 80)


DENOISER = """
    (float[1,1,257] x, float[1,2,128,2] s) => (float[1,1,257] y, float[1,2,128,2] t) <
        float[1,512,257] w, float[1,512,128] r, float[1,1024] b, float[1,512,128] v,
        float[1,512,128] u, float[1,1024] c, float[128,257] d, float[257] e,
        int64[3] one = {1,1,128}, int64[4] pair = {1,1,128,1}, int64[2] axes = {1,3},
        int64[2] f = {0,0}, int64[2] g = {1,1}, int64[2] h = {0,1}, int64[2] i = {1,2},
        int64[2] j = {1,0}, int64[2] k = {2,1}, int64[2] l = {2,2}
    > {
        s0 = Slice(s, f, g, axes) s1 = Slice(s, h, i, axes)
        s2 = Slice(s, j, k, axes) s3 = Slice(s, g, l, axes)
        h0 = Reshape(s0, one) c0 = Reshape(s1, one) h1 = Reshape(s2, one) c1 = Reshape(s3, one)
        y0, a0, b0 = LSTM<hidden_size=128>(x, w, r, b, , h0, c0)
        y1, a1, b1 = LSTM<hidden_size=128>(a0, v, u, c, , h1, c1)
        m = MatMul(a1, d) n = Add(m, e) y = Sigmoid(n)
        r0 = Reshape(a0, pair) r1 = Reshape(b0, pair)
        r2 = Reshape(a1, pair) r3 = Reshape(b1, pair)
        o0 = Concat<axis=3>(r0, r1) o1 = Concat<axis=3>(r2, r3) t = Concat<axis=1>(o0, o1)
    }
"""
"""Two layers of 128 units, their states beside each other in one tensor: one step of DTLN."""


def test_a_recurrent_network_takes_no_more_than_the_graph_as_written(tmp_path):
    path = save(tmp_path, with_random_weights(parse(DENOISER)))
    ours = compile_model(path, order=find_order("best")).source.problem
    written = read(path, alignment=64, order=find_order("best"), aliases=SAFE_KINDS).problem
    assert find("best")(ours).height <= find("best")(written).height
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            small = (0.05 * array).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(small, tensor.name))
    check(model, tmp_path)
