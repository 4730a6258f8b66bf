"""Models with numbers that cannot be are refused where they are read or lowered."""

import numpy as np
import onnx
import pytest

from arenite.pipeline.session import Session
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.errors import AreniteError, ModelFormatError
from arenite.runtime.lowering import UnsupportedOperatorsError
from arenite.strategies import find
from support.running import build
from support.tflite_operator import Given, operator_model, weights
from support.tiny_onnx import parse, save

TO_ROWS = weights(np.array([1, 144], np.int32))


def reshape(folder, source, result):
    path = folder / "m.tflite"
    path.write_bytes(operator_model("RESHAPE", [source, TO_ROWS], [result]))
    return path


@pytest.mark.parametrize("shape", [(1,), (1, 145), (2, 144)])
def test_a_shape_of_another_number_of_elements_is_refused(shape, tmp_path):
    path = reshape(tmp_path, Given(shape), Given((1, 144)))
    with pytest.raises(UnsupportedOperatorsError, match="fixed in the file"):
        compile_model(path)


X, FILTER = Given((1, 6, 6, 4)), weights(np.zeros((4, 3, 3, 4), np.float32))
STRIDES = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


@pytest.mark.parametrize(
    ("inputs", "results", "options"),
    [
        ([X], [X], STRIDES),
        ([], [X], STRIDES),
        ([X, FILTER], [], STRIDES),
        ([Given((36, 4)), FILTER], [X], STRIDES),
        ([X, weights(np.zeros((3, 3), np.float32))], [X], STRIDES),
        ([X, FILTER], [X], STRIDES | {"strideH": 0}),
    ],
    ids=["no filter", "nothing", "no result", "no images", "a flat filter", "no stride"],
)
def test_operands_and_options_of_another_form_are_refused(inputs, results, options, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(operator_model("CONV_2D", inputs, results, ("Conv2DOptions", options)))
    with pytest.raises((ModelFormatError, UnsupportedOperatorsError)):
        compile_model(path)


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1, 1 << 62])
def test_a_zero_point_beyond_32_bits_is_refused(number, tmp_path):
    quantised = Given((1, 6, 6, 4), "int8", scales=(0.1,), zero_point=number)
    path = reshape(tmp_path, quantised, Given((1, 144), "int8", scales=(0.1,)))
    with pytest.raises(ModelFormatError, match=f"zero point {number} is out of range"):
        compile_model(path)


@pytest.mark.parametrize("axes", ["2,1", "0,1,2,3", "0,1,1"])
def test_an_order_that_is_not_of_all_axes_is_refused(axes, tmp_path):
    text = f"(float[2,3,4] x) => (y) {{ t = Transpose<perm=[{axes}]>(x) y = Neg(t) }}"
    with pytest.raises(AreniteError):  # ours leaves it to ONNX Runtime, which refuses it
        Session(save(tmp_path, parse(text)), strategy=find("best"))


@pytest.mark.parametrize("groups", [0, 3, 16])
def test_groups_that_do_not_divide_the_outputs_are_refused(groups, tmp_path):
    model = parse("(float[1,6,4,4] x) => (float[1,8,4,4] y) <float[8,2,1,1] w> { y = Conv(x, w) }")
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("group", groups))
    with pytest.raises(AreniteError):
        Session(build(save(tmp_path, model), tmp_path)).close()


def test_scales_for_another_axis_than_there_is_are_an_error_that_names_the_operator(tmp_path):
    text = """(float[1,2,4,4] x) => (float[1,3,2,2] y)
        <int8[3,2,3,3] q, float[3] s = {1,1,1}, int8[3] z = {0,0,0}>
        { w = DequantizeLinear<axis=1>(q, s, z) y = Conv(x, w) }"""
    with pytest.raises(AreniteError, match="constant 'w'"):
        compile_model(save(tmp_path, parse(text)))


def test_biases_of_a_recurrence_that_are_not_finite_are_lowered_without_a_warning(tmp_path):
    model = parse("""(float[2,1,3] x) => (y) <float[1,8,3] w, float[1,8,2] r, float[1,16] b>
        { y = LSTM<hidden_size=2>(x, w, r, b) }""")
    shapes = {"w": (1, 8, 3), "r": (1, 8, 2), "b": (1, 16)}
    arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    arrays["b"][0, :8], arrays["b"][0, 8:] = np.inf, -np.inf
    del model.graph.initializer[:]
    for name, array in arrays.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    assert compile_model(save(tmp_path, model)).program.steps
