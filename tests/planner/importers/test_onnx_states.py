"""States that the metadata of an ONNX file name."""

import json

import numpy as np
import pytest

from arenite.planner.errors import BindingError, ModelFormatError, OrderError
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.programs.rules import SAFE_KINDS, Rules
from arenite.planner.rewrites.derivation import derive
from arenite.planner.tensors import TensorKind
from support.tiny_onnx import parse, save

COUNTER = "(float[64] x, float[64] s) => (y, t) { t = Add(s, x) y = Neg(t) }"


def stated(folder, text, pairs, **initial):
    """Return the file of a graph whose metadata name states, given as JSON or as text."""
    model = parse(text)
    entry = model.metadata_props.add()
    entry.key = "arenite.states"
    entry.value = pairs if isinstance(pairs, str) else json.dumps(pairs)
    for name, array in initial.items():
        tensor = model.graph.initializer.add(name=name, data_type=1, dims=array.shape)
        tensor.raw_data = array.tobytes()
    return save(folder, model)


def test_a_state_is_no_input_and_what_replaces_it_no_output(tmp_path):
    program = read_onnx(stated(tmp_path, COUNTER, {"s": "t"}))
    assert program.input_tensors == ("x",)
    assert program.output_tensors == ("y",)
    assert program.tensors["s"].kind is TensorKind.STATE
    assert program.initial == {}


def test_an_initialiser_is_what_a_state_starts_with(tmp_path):
    first = np.arange(64, dtype=np.float32)
    program = read_onnx(stated(tmp_path, COUNTER, {"s": "t"}, s=first), weights=True)
    assert program.tensors["s"].kind is TensorKind.STATE
    np.testing.assert_array_equal(program.constants[program.initial["s"]], first)
    assert len(program.steps) == 2  # nothing that a state makes is constant


def test_a_new_value_lies_in_the_place_of_the_old(tmp_path):
    program = read_onnx(stated(tmp_path, COUNTER, {"s": "t"}))
    assert program.root("t") == ("s", 0)


def test_a_state_is_live_throughout(tmp_path):
    text = (
        "(float[64] x, float[64] s) => (y, t) { a = Neg(x) b = Abs(a) t = Add(s, b) y = Neg(b) }"
    )
    program = read_onnx(stated(tmp_path, text, {"s": "t"}))
    problem = derive(program, Rules(aliases=SAFE_KINDS)).problem
    record = {each.name: each for each in problem.records}["s"]
    assert (record.start, record.end) == (0, 4)
    assert "t" in record.tensors


COPIED = {
    "a later step reads the old value": (
        "(float[64] x, float[64] s) => (y, t) { t = Add(s, x) y = Mul(t, s) }"
    ),
    "its operator may not write over what it reads": (
        "(float[8,8] x, float[8,8] s) => (y, t) { t = MatMul(s, x) y = Neg(t) }"
    ),
    "it is an input": "(float[64] x, float[64] s) => (y, x) { y = Neg(s) }",
}


@pytest.mark.parametrize("reason", COPIED)
def test_a_new_value_is_copied_at_the_end_where(reason, tmp_path):
    new = "x" if reason == "it is an input" else "t"
    program = read_onnx(stated(tmp_path, COPIED[reason], {"s": new}))
    last = program.steps[-1]
    assert last.inputs == (new,)
    assert program.root(last.outputs[0]) == ("s", 0)
    assert program.root(new) == (new, 0)


def test_an_operator_that_does_not_read_the_state_may_write_over_it(tmp_path):
    text = "(float[8,8] x, float[8,8] s) => (y, t) { y = Neg(s) t = MatMul(x, y) }"
    program = read_onnx(stated(tmp_path, text, {"s": "t"}))
    assert program.root("t") == ("s", 0)


def test_steps_that_read_a_state_stay_before_the_one_that_changes_it(tmp_path):
    text = "(float[64] x, float[64] s) => (y, t) { y = Neg(s) t = Add(s, x) }"
    program = read_onnx(stated(tmp_path, text, {"s": "t"}))
    with pytest.raises(OrderError, match="'s'"):
        program.reordered([step.name for step in reversed(program.steps)])


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["s"]', "not one object"),
        ({"s": 1}, "not an input and an output"),
        ({"q": "t"}, "not an input and an output"),
        ({"s": "x"}, "not an input and an output"),
        ({"s": "t", "x": "t"}, "replaces several"),
    ],
)
def test_metadata_that_name_no_states_are_refused(pairs, reason, tmp_path):
    with pytest.raises(ModelFormatError, match=reason):
        read_onnx(stated(tmp_path, COUNTER, pairs))


def test_a_state_is_not_replaced_by_another(tmp_path):
    text = "(float[4] s, float[4] u) => (y, u, t) { y = Neg(s) t = Add(u, y) }"
    with pytest.raises(ModelFormatError, match="replaced by another state, 'u'"):
        read_onnx(stated(tmp_path, text, {"s": "u", "u": "t"}))


def test_a_state_may_stay_as_it_is(tmp_path):
    text = "(float[4] x, float[4] s) => (y, s) { y = Mul(s, x) }"
    program = read_onnx(stated(tmp_path, text, {"s": "s"}))
    assert program.output_tensors == ("y",)
    assert [step.operator.label for step in program.steps] == ["Mul"]


def test_a_new_value_of_another_shape_is_refused(tmp_path):
    text = "(float[64] x, float[1] s) => (y, t) { t = Add(s, x) y = Neg(t) }"
    with pytest.raises(ModelFormatError, match="types or shapes"):
        read_onnx(stated(tmp_path, text, {"s": "t"}))


def test_a_new_value_of_another_type_is_refused(tmp_path):
    text = "(float[4] x, float[4] s) => (y, t) { y = Add(s, x) t = Cast<to=6>(y) }"
    with pytest.raises(ModelFormatError, match="different types"):
        read_onnx(stated(tmp_path, text, {"s": "t"}))


def test_a_state_cannot_be_fixed(tmp_path):
    path = stated(tmp_path, COUNTER, {"s": "t"})
    with pytest.raises(BindingError, match="is a state"):
        read_onnx(path, values={"s": 1.0})
