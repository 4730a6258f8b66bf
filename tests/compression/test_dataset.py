"""Samples that fit a model: whose sizes are told, and what does not fit is said."""

import numpy as np
import pytest

from arenite.compression.dataset import (
    Dataset,
    DatasetError,
    fitted_inputs,
    random_dataset,
    read_dataset,
)
from arenite.compression.evaluate import Judge
from arenite.planner.errors import BindingError, UnboundDimensionError
from support.tiny_onnx import parse, with_random_weights

DETECTOR = """(float[batch,3,height,width] x) => (y) <float[8,3,3,3] w> { y = Conv(x, w) }"""
RECURRENT = """(float[batch,4] x, float[2,batch,4] h, float scale) => (y)
{ s = ReduceSum<keepdims=0>(h, axes) z = Add(x, s) y = Mul(z, scale) }"""
RECURRENT = RECURRENT.replace("{", "<int64[1] axes = {0}> {", 1)


@pytest.fixture
def detector():
    return with_random_weights(parse(DETECTOR))


def images(*shape, dtype=np.float32):
    return Dataset(None, {"x": np.zeros(shape, dtype)}, None)


def shapes(model, dataset, *arguments, **options):
    found = fitted_inputs(model, dataset, *arguments, **options)
    return {name: taken.shape for name, taken in found.items()}


def test_a_size_that_is_not_given_is_never_made_up(detector):
    with pytest.raises(UnboundDimensionError, match="--dim height=") as caught:
        random_dataset(detector, 8, 0)
    assert caught.value.dimensions == ("height", "width")
    with pytest.raises(UnboundDimensionError) as caught:
        random_dataset(detector, 8, 0, {"height": 20})
    assert caught.value.dimensions == ("width",)


@pytest.mark.parametrize(
    ("dims", "given", "expected"),
    [
        ({"height": 20, "width": 30}, {}, (8, 3, 20, 30)),
        ({"height": 20, "width": 30, "batch": 2}, {}, (16, 3, 20, 30)),
        ({}, {"x": (2, 3, 20, 30)}, (16, 3, 20, 30)),
    ],
)
def test_random_samples_have_the_sizes_given(detector, dims, given, expected):
    made = random_dataset(detector, 8, 0, dims, given)
    assert made.inputs["x"].shape == expected
    judge = Judge(detector, made, dims, given)
    assert judge.shapes["x"][2:] == (20, 30)
    assert judge.shapes["x"][0] == (8 if expected[0] == 8 else 2)


def test_dimensions_without_a_name_go_by_input_and_axis():
    model = parse("(float[1,3,a,b] x) => (y) { y = Relu(x) }")
    for axis in (2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[axis].Clear()
    with pytest.raises(UnboundDimensionError, match="--dim x:2="):
        random_dataset(model, 2, 0)
    assert random_dataset(model, 2, 0, {"x:2": 4, "x:3": 5}).inputs["x"].shape == (2, 3, 4, 5)


def test_an_input_without_a_rank_needs_its_shape():
    model = parse("(float[1] x) => (y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnboundDimensionError, match="--shape x="):
        random_dataset(model, 2, 0)
    made = random_dataset(model, 2, 0, {}, {"x": (1, 7)})
    assert made.inputs["x"].shape == (2, 7)


def test_every_input_has_its_own_rows_in_a_run():
    model = parse(RECURRENT)
    made = random_dataset(model, 8, 0, {"batch": 3})
    assert {name: each.shape for name, each in made.inputs.items()} == {
        "x": (24, 4), "h": (16, 3, 4), "scale": (8,),
    }  # fmt: skip
    runs = list(made.batches(shapes(model, made, {"batch": 3})))
    assert len(runs) == 8
    assert {name: each.shape for name, each in runs[0].items()} == {
        "x": (3, 4), "h": (2, 3, 4), "scale": (),
    }  # fmt: skip
    assert Judge(model, made, {"batch": 3}).judge(model).error == 0


def test_a_free_batch_takes_all_samples_at_once_and_their_size(detector):
    assert shapes(detector, images(5, 3, 20, 30)) == {"x": (5, 3, 20, 30)}
    assert shapes(detector, images(5, 3, 20, 30), {"batch": 2}) == {"x": (2, 3, 20, 30)}


@pytest.mark.parametrize(
    ("dataset", "dims", "given", "reason"),
    [
        (images(5, 3, 20, 30), {"height": 40}, {}, "20x30; the model takes 3x40x30"),
        (images(5, 3, 20, 30), {}, {"x": (1, 3, 40, 40)}, "20x30; the model takes 3x40x40"),
        (images(5, 4, 20, 30), {}, {}, "4x20x30; the model takes 3x20x30"),
        (images(5, 3, 20), {}, {}, "has 3 axes; the model takes 4"),
        (images(5, 3, 20, 30, dtype=np.float64), {}, {}, "float64; the model takes float32"),
        (images(5, 3, 20, 30), {"batch": 6}, {}, "fewer samples"),
        (Dataset(None, {"z": np.zeros(3)}, None), {}, {}, "no array for input 'x'"),
    ],
)
def test_what_does_not_fit_is_told(detector, dataset, dims, given, reason):
    with pytest.raises(DatasetError, match=reason):
        fitted_inputs(detector, dataset, dims, given)


def test_dimensions_that_the_model_does_not_have_are_refused(detector):
    with pytest.raises(BindingError, match="'depth' is not a free dimension"):
        fitted_inputs(detector, images(5, 3, 20, 30), {"depth": 3})
    with pytest.raises(BindingError, match="'depth' is not a free dimension"):
        random_dataset(detector, 8, 0, {"depth": 3, "height": 4, "width": 4})


def test_random_samples_that_no_machine_holds_are_refused(detector):
    with pytest.raises(DatasetError, match="takes 3,000,000,000,000 numbers"):
        random_dataset(detector, 8, 0, {"height": 10**6, "width": 10**6, "batch": 1})


def test_labels_are_integers(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, x=np.ones((3, 30), np.float32), labels=np.array(["cat", "dog", "cat"]))
    with pytest.raises(DatasetError, match="not integers"):
        read_dataset(path)
