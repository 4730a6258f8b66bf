"""Recurrent layers and normalisations: as before, and differentiated."""

import numpy as np
import onnx
import pytest

from arenite.training.errors import NotDifferentiableError
from arenite.training.step import TrainingRecipe
from support.gradients import check_gradients, feeds_of, randomised, step_of
from support.tiny_onnx import parse
from support.wide_reference import evaluator

SEQUENCE = (
    "(double[4,2,3] x) => (y) <double[{d},{g},3] w, double[{d},{g},5] r, double[{d},{b}] b{more}>"
    "{{ y, h{cells} = {op}(x, w, r, b{operands}) }}"
)


def sequence(op, gates, directions=1, more="", operands="", attributes="hidden_size=5"):
    name = f"{op}<{attributes}>"
    cells = ", c" if op == "LSTM" else ""
    return randomised(parse(SEQUENCE.format(
        d=directions, g=5 * gates, b=10 * gates, op=name, more=more, operands=operands,
        cells=cells,
    )))  # fmt: skip


LAYERS = {
    "LSTM": sequence("LSTM", 4),
    "LSTM backwards": sequence("LSTM", 4, attributes='hidden_size=5,direction="reverse"'),
    "LSTM both ways": sequence(
        "LSTM", 4, 2, ", double[2,2,5] h0, double[2,2,5] c0", ", , h0, c0",
        'hidden_size=5,direction="bidirectional"',
    ),
    "GRU": sequence("GRU", 3),
    "GRU that resets last": sequence(
        "GRU", 3, 1, ", double[1,2,5] h0", ", , h0", "hidden_size=5,linear_before_reset=1"
    ),
    "GRU with a start": sequence("GRU", 3, 1, ", double[1,2,5] h0", ", , h0"),
    "RNN": sequence("RNN", 1),
}  # fmt: skip


@pytest.mark.parametrize("layer", [name for name in LAYERS if "both" not in name])
def test_a_recurrent_layer_makes_what_it_did(layer, tmp_path):
    model = LAYERS[layer]
    step = step_of(tmp_path, model, TrainingRecipe("mse", "sgd", 1.0))
    feeds = feeds_of(step)
    if "reverse" in str(model.graph.node[0].attribute):
        feeds["x"] = feeds["x"][::-1]
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    if "reverse" in str(model.graph.node[0].attribute):  # the reference runs forward alone
        del plain.graph.node[0].attribute[1:]
        plain.graph.node[0].attribute[0].CopyFrom(onnx.helper.make_attribute("hidden_size", 5))
    weights = {t.name for t in model.graph.initializer}
    (y,) = evaluator(plain).run(["y"], {"x": feeds["x"]})
    if "reverse" in str(model.graph.node[0].attribute):
        y, feeds["x"] = y[::-1], feeds["x"][::-1]
    (loss,) = evaluator(step.model).run(["loss"], feeds)
    assert weights == set(step.trained) | (weights & {"h0", "c0"})
    assert float(loss) == pytest.approx(((y - feeds["targets"]) ** 2).mean(), rel=1e-9)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_recurrent_layer_has_gradients(layer, tmp_path):
    step = step_of(tmp_path, LAYERS[layer], TrainingRecipe("mse", "sgd", 1.0))
    check_gradients(step, feeds_of(step))


def test_the_last_hidden_state_alone_has_gradients(tmp_path):
    model = sequence("LSTM", 4)
    model.graph.output[0].name = "h"
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.node[0].output[0] = ""
    step = step_of(tmp_path, model, TrainingRecipe("mse", "sgd", 1.0))
    check_gradients(step, feeds_of(step))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ("hidden_size=5,clip=1.0", "clip"),
        ('hidden_size=5,activations=["Relu","Tanh","Tanh"]', "Relu"),
    ],
)
def test_what_is_not_written_out_is_refused_by_name(attributes, reason, tmp_path):
    model = sequence("LSTM", 4, attributes=attributes)
    with pytest.raises(NotDifferentiableError, match=reason) as caught:
        step_of(tmp_path, model, TrainingRecipe("mse"))
    assert caught.value.operator == "LSTM"


def test_a_frozen_layer_stays_as_it_is(tmp_path):
    text = (
        "(double[4,2,3] x) => (y) <double[1,20,3] w, double[1,20,5] r, double[5,2] head>"
        "{ h, l, c = LSTM<hidden_size=5>(x, w, r) y = MatMul(h, head) }"
    )
    step = step_of(tmp_path, randomised(parse(text)), TrainingRecipe("mse", train_only=("head",)))
    assert [node.op_type for node in step.model.graph.node].count("LSTM") == 1
    assert step.trained == ("head",)


NORMS = {
    "LayerNormalization":
        "(double[4,6] x) => (y) <double[4,6] a, double[6] s, double[6] b>"
        "{ z = Add(x, a) y = LayerNormalization(z, s, b) }",
    "InstanceNormalization":
        "(double[2,3,4,5] x) => (y) <double[2,3,4,5] a, double[3] s, double[3] b>"
        "{ z = Add(x, a) y = InstanceNormalization(z, s, b) }",
}  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
def test_a_normalisation_has_gradients(norm, tmp_path):
    step = step_of(tmp_path, randomised(parse(NORMS[norm])), TrainingRecipe("mse", "sgd", 1.0))
    check_gradients(step, feeds_of(step))


MOVES = "(double[2,3,5,6] x) => (y) <double[2,3,5,6] a{more}> {{ z = Add(x, a) {body} }}"
OTHERS = {
    "Gelu": MOVES.format(more="", body="y = Gelu(z)"),
    "Gelu by a Tanh": MOVES.format(more="", body='y = Gelu<approximate="tanh">(z)'),
    "Mish": MOVES.format(more="", body="y = Mish(z)"),
    "Pad by a constant along axes": MOVES.format(
        more=", int64[2] p = {2,1}, int64[1] n = {2}", body="y = Pad(z, p, , n)"
    ),
    "Pad by reflection": MOVES.format(
        more=", int64[8] p = {0,0,2,1,0,0,1,3}", body='y = Pad<mode="reflect">(z, p)'
    ),
    "Pad by the edge": MOVES.format(
        more=", int64[4] p = {2,-1,0,3}, int64[2] n = {2,-1}",
        body='y = Pad<mode="edge">(z, p, , n)',
    ),
    "Slice backwards": MOVES.format(
        more=", int64[2] s = {1,8}, int64[2] e = {5,-10}, int64[2] n = {1,2}, int64[2] t = {2,-3}",
        body="y = Slice(z, s, e, n, t)",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_an_expanded_operator_computes_the_same_and_has_gradients(case, tmp_path):
    model = randomised(parse(OTHERS[case], opset=20))
    step = step_of(tmp_path, model, TrainingRecipe("mse", "sgd", 1.0))
    feeds = feeds_of(step)
    (y,) = evaluator(model).run(["y"], {"x": feeds["x"]})
    (loss,) = evaluator(step.model).run(["loss"], feeds)
    assert float(loss) == pytest.approx(((y - feeds["targets"]) ** 2).mean(), rel=1e-8)
    check_gradients(step, feeds)


BATCH_NORM = """(double[3,2,4,4] x) => (y)
<double[4,2,3,3] w, double[4] s, double[4] b, double[4] m, double[4] v>
{ z = Conv(x, w) n = BatchNormalization<momentum=0.75>(z, s, b, m, v) y = Relu(n) }"""


def test_statistics_of_the_batch_have_gradients_and_are_kept(tmp_path):
    model = randomised(parse(BATCH_NORM))
    recipe = TrainingRecipe("mse", "sgd", 1.0, batch_statistics=True)
    step = step_of(tmp_path, model, recipe)
    feeds = feeds_of(step)
    check_gradients(step, feeds)
    assert set(step.states) == {"w", "s", "b", "m", "v"}
    names = ["m/next", "v/next"]
    mean, variance = evaluator(step.model).run(names, feeds)
    (z,) = evaluator(parse("(double[3,2,4,4] x, double[4,2,3,3] w) => (z) {z = Conv(x, w)}")).run(
        None, {"x": feeds["x"], "w": feeds["w"]}
    )
    for found, old, new in (
        (mean, feeds["m"], z.mean((0, 2, 3))), (variance, feeds["v"], z.var((0, 2, 3))),
    ):  # fmt: skip
        np.testing.assert_allclose(found, 0.75 * old + 0.25 * new, rtol=1e-9)


def test_a_frozen_norm_takes_the_statistics_that_the_model_states(tmp_path):
    model = randomised(parse(BATCH_NORM + "").__class__.FromString(
        parse(BATCH_NORM).SerializeToString()
    ))  # fmt: skip
    for tensor in model.graph.initializer:
        if tensor.name == "v":
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.full(4, 0.5), "v"))
    step = step_of(tmp_path, model, TrainingRecipe("mse", "sgd", 1.0))
    assert set(step.states) == {"w", "s", "b"}
    check_gradients(step, feeds_of(step))
