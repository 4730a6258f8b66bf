"""Whole steps: what is trained, what is refused, what is live."""

import json

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.importers.onnx import read_onnx
from arenite.training import step as steps
from arenite.training.errors import (
    BatchError,
    NotDifferentiableError,
    NothingToTrainError,
    TrainingError,
)
from arenite.training.files import read_for_training
from arenite.training.step import TrainingRecipe
from bench.zoo.classic import unet
from support.gradients import check_gradients, feeds_of, gradients_of, randomised, step_of
from support.small_networks import NETWORKS, network
from support.tiny_onnx import parse
from support.wide_reference import evaluator

TWO_LAYERS = """(float[2,4] x) => (y) <float[4,5] body.w, float[5] body.b, float[5,3] head.w,
float[3] head.b, float k>
{ a = Gemm(x, body.w, body.b) r = Relu(a) s = Mul(r, k) y = Gemm(s, head.w, head.b) }"""


def two_layers():
    text = TWO_LAYERS.replace("body.", "body_").replace("head.", "head_")
    return randomised(parse(text))


def operators(step):
    return [node.op_type for node in step.model.graph.node]


def test_a_step_is_made_of_standard_operators_alone(tmp_path):
    step = step_of(tmp_path, network("mobilenet-v2"), NETWORKS["mobilenet-v2"][1])
    assert {node.domain for node in step.model.graph.node} == {""}
    assert [each.domain for each in step.model.opset_import] == [""]


def test_the_metadata_name_states_and_recipe(tmp_path):
    step = step_of(tmp_path, two_layers(), TrainingRecipe("mse", "momentum"))
    said = {each.key: json.loads(each.value) for each in step.model.metadata_props}
    assert said["arenite.states"] == dict(step.states)
    assert said["arenite.states"]["head_w/momentum"] == "head_w/momentum/next"
    assert said["arenite.training"]["loss"] == "mse"
    assert said["arenite.training"]["optimiser"] == "momentum"


def test_single_numbers_are_trained_only_if_they_are_named(tmp_path):
    step = step_of(tmp_path, two_layers(), TrainingRecipe("mse"))
    assert set(step.trained) == {"body_w", "body_b", "head_w", "head_b"}
    assert step_of(tmp_path, two_layers(), TrainingRecipe("mse", train_only=("k",))).trained == (
        "k",
    )


def test_gradients_that_nothing_needs_are_not_computed(tmp_path):
    whole = step_of(tmp_path, two_layers(), TrainingRecipe("mse"))
    head = step_of(tmp_path, two_layers(), TrainingRecipe("mse", train_only=("head*",)))
    assert set(head.states) == {"head_w", "head_b"}
    assert "Sign" in operators(whole)  # back through Relu
    assert "Sign" not in operators(head)
    assert head.num_gradients < whole.num_gradients
    feeds = feeds_of(whole)
    names = ["head_w/next", "head_b/next"]
    for one, other in zip(
        evaluator(whole.model).run(names, feeds),
        evaluator(head.model).run(names, {n: feeds[n] for n in (*head.inputs, *head.states)}),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_a_pattern_that_names_nothing_is_refused(tmp_path):
    with pytest.raises(NothingToTrainError, match=r"'tail\*'.*'body_w'") as caught:
        step_of(tmp_path, two_layers(), TrainingRecipe("mse", train_only=("tail*",)))
    assert "head_b" in caught.value.known


def test_a_model_without_weights_is_refused(tmp_path):
    with pytest.raises(NothingToTrainError, match="no weights"):
        step_of(tmp_path, parse("(float[2,3] x) => (y) { y = Relu(x) }"), TrainingRecipe("mse"))


def test_a_loss_that_depends_on_no_parameter_is_refused(tmp_path):
    text = "(float[2,3] x) => (y) <float[3] w> { a = Add(x, w) y = Floor(a) }"
    with pytest.raises(NothingToTrainError, match="depends on none"):
        step_of(tmp_path, randomised(parse(text)), TrainingRecipe("mse"))


@pytest.mark.parametrize(
    ("text", "operator", "reason"),
    [
        ("{ a = Mul(x, w) y = Atan(a) }", "Atan", "this operator is unsupported"),
        ("{ a = Mul(x, w) y = Round(a) z = Pow(a, a) }", "Pow", "exponent"),
    ],
)
def test_an_operator_without_a_rule_is_refused_by_name(text, operator, reason, tmp_path):
    output = "z" if " z = " in text else "y"
    model = randomised(parse(f"(float[2,3] x) => ({output}) <float[3] w> {text}"))
    with pytest.raises(NotDifferentiableError, match=reason) as caught:
        step_of(tmp_path, model, TrainingRecipe("mse"))
    assert caught.value.operator == operator
    assert "--train-only" in str(caught.value)


def test_an_operator_without_a_rule_may_stand_before_what_is_trained(tmp_path):
    text = "(float[2,3] x) => (y) <float[3,2] w> { a = Atan(x) y = MatMul(a, w) }"
    step = step_of(tmp_path, randomised(parse(text)), TrainingRecipe("mse"))
    assert operators(step).count("Atan") == 1


def test_a_batch_sets_the_first_axis_and_the_shapes_that_state_it(tmp_path):
    text = """(float[1,2,3] x) => (y) <float[6,4] w>
    { s = Constant<value=int64[2]{1,6}>() a = Reshape(x, s) y = MatMul(a, w) }"""
    step = step_of(tmp_path, randomised(parse(text)), TrainingRecipe("mse"), batch=8)
    assert step.inputs["x"].shape == (8, 2, 3)
    assert step.inputs["targets"].shape == (8, 4)


def test_a_model_that_takes_no_such_batch_is_refused(tmp_path):
    text = "(float[2,3] x) => (y) <float[2,3] w> { y = Mul(x, w) }"
    path = tmp_path / "fixed.onnx"
    path.write_bytes(randomised(parse(text)).SerializeToString())
    with pytest.raises(BatchError, match="batch of 5"):
        read_for_training(path, 5)


def test_an_older_operator_set_is_brought_to_a_newer_one(tmp_path):
    text = "(float[2,6] x) => (y) <float[6,4] w> { a = MatMul(x, w) y = Softmax<axis=1>(a) }"
    step = step_of(tmp_path, randomised(parse(text, opset=9)), TrainingRecipe("cross-entropy"))
    assert step.model.opset_import[0].version == 17


def test_an_operator_set_that_cannot_be_converted_is_refused(tmp_path):
    model = randomised(parse("(float[2,6] x) => (y) <float[6,4] w> { y = MatMul(x, w) }", opset=9))
    model.graph.node[0].input[0] = "absent"
    path = tmp_path / "damaged.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(TrainingError, match="cannot be converted to operator set 17"):
        read_for_training(path)


def test_a_weight_that_is_read_twice_is_changed_once(tmp_path):
    text = """(double[2,4] x) => (y) <double[4,4] w>
    { a = MatMul(x, w) b = Tanh(a) y = MatMul(b, w) }"""
    step = step_of(tmp_path, randomised(parse(text)), TrainingRecipe("mse", "sgd", 1.0))
    check_gradients(step, feeds_of(step))


@pytest.mark.parametrize("name", ["lenet-5", "mobilenet-v2", "u-net", "resnet"])
def test_a_sum_image_by_image_is_that_of_the_batch(name, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(network(name).SerializeToString())
    program, recipe = read_for_training(path), NETWORKS[name][1]
    whole, single = (
        steps._Draft(program, recipe, lambda _, each=each: each) for each in (False, True)
    )
    assert len(single.graph.nodes) > len(whole.graph.nodes)
    made = [draft.finished(name) for draft in (whole, single)]
    feeds = feeds_of(made[0])
    one, other = (gradients_of(step, feeds) for step in made)
    for key, gradient in one.items():
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(other[key], gradient, rtol=0, atol=1e-5 * scale, err_msg=key)


def test_a_sum_is_made_image_by_image_only_where_that_lowers_the_peak(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(network("vgg").SerializeToString())
    program, recipe = read_for_training(path, 8), NETWORKS["vgg"][1]
    whole, single = (
        steps._Draft(program, recipe, lambda _, each=each: each).finished("vgg")
        for each in (False, True)
    )
    step = steps.make_step(program, recipe)
    assert step.peak <= single.peak < whole.peak
    assert len(operators(whole)) < len(operators(step)) < len(operators(single))


def test_a_unet_of_eight_images_fits_900_megabytes(tmp_path):
    path = tmp_path / "unet.onnx"
    onnx.save(unet(), path)
    step = steps.make_step(read_for_training(path, 8), TrainingRecipe("bce"))
    states = sum(each.size for each in step.state_types.values())
    assert step.peak + states <= 900_000_000


def test_states_are_live_throughout_and_take_their_new_value_in_place(tmp_path):
    step = step_of(tmp_path, network("lenet-5"), TrainingRecipe("cross-entropy", "momentum"))
    path = tmp_path / "step.onnx"
    onnx.save(step.model, path)
    program = read_onnx(path)
    names = {port.name for port in (*program.inputs, *program.outputs)}
    assert names == {"x", "labels", "loss"}
    for state, new in step.states.items():
        assert program.tensors[state].kind == "state"
        assert program.root(new) == (state, 0)
    assert not [each for each in program.steps if each.name.endswith("/store")]


lengths = st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3)


@st.composite
def operands(draw):
    """Two shapes that broadcast, and the shape that they broadcast to."""
    full = draw(lengths)
    made = []
    for _ in range(2):
        kept = draw(st.integers(1, len(full)))
        made.append([n if draw(st.booleans()) else 1 for n in full[len(full) - kept :]])
    return *made, [int(n) for n in np.broadcast_shapes(*made)]


@settings(max_examples=40)
@given(shapes=operands(), op=st.sampled_from(["Add", "Sub", "Mul", "Div"]))
def test_broadcasting_is_undone_whatever_the_shapes(shapes, op, tmp_path_factory):
    one, other, full = shapes
    types = [f"double{each}".replace(" ", "") for each in (one, full, one, other)]
    model = randomised(parse(
        "({} u, {} x) => (y) <{} v, {} w> {{ b = Mul(u, v) a = ".format(*types)
        + f"{op}(b, w) y = Mul(a, x) }}"
    ))  # fmt: skip
    recipe = TrainingRecipe("mse", "sgd", 1.0, train_only=("v", "w"))
    step = step_of(tmp_path_factory.mktemp("broadcast"), model, recipe)
    feeds = feeds_of(step)
    feeds["u"] = feeds["u"] + 0.5
    check_gradients(step, feeds, most=3, tolerance=1e-5)
