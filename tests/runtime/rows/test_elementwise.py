"""Functions of elements by rows that lie anywhere, beside the same steps run whole."""

import numpy as np
import pytest

from arenite.runtime.operators import BinaryFunction, UnaryFunction
from support.one_step import Given, constant
from support.row_programs import QUANTISED, assert_bands_make_the_whole


@pytest.mark.parametrize("shape", [(1, 7, 5, 13), (1, 1, 9), (1, 11, 1, 3), (1, 4, 2, 3, 5)])
@pytest.mark.parametrize("function", [
    each.value for each in UnaryFunction if each.value not in ("logical_not", "is_nan")
])  # fmt: skip
def test_functions_of_one_number(function, shape):
    kernel = {"function": function, "alpha": 0.5, "beta": 1.5}
    image = Given(shape)
    assert_bands_make_the_whole("Unary", kernel, [image], image)


@pytest.mark.parametrize("dtype", QUANTISED)
@pytest.mark.parametrize("function", ["clamp", "sigmoid", "hard_swish", "leaky_relu"])
def test_functions_of_quantised_numbers(function, dtype):
    image = Given((1, 6, 5, 7), dtype, **QUANTISED[dtype])
    kernel = {"function": function, "alpha": 0.1, "beta": 2.0}
    assert_bands_make_the_whole("Unary", kernel, [image], image)


FORMS = {
    "alike": ((1, 6, 5, 19), (1, 6, 5, 19), (0, 1)),
    "a channel": ((1, 6, 5, 19), (19,), (0,)),
    "one for each channel": ((1, 6, 5, 19), (1, 1, 1, 19), (0,)),
    "a number": ((1, 6, 5, 19), (1,), (0,)),
    "a column": ((1, 6, 5, 19), (1, 6, 1, 19), (0, 1)),
    "a row": ((1, 6, 5, 19), (5, 19), (0,)),
    "the other way": ((1, 1, 5, 1), (1, 6, 5, 19), (1,)),
    "a list": ((1, 6, 19), (1, 6, 1), (0, 1)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int32"])
@pytest.mark.parametrize("function", ["add", "subtract", "multiply", "maximum"])
def test_functions_of_two_numbers(function, dtype, form):
    one, other, apart = FORMS[form]
    result = np.broadcast_shapes(one, other)
    more = QUANTISED.get(dtype, {})
    kernel = {"function": function, "min": -4.0, "max": 5.0}
    inputs = [Given(one, dtype, **more), Given(other, dtype, **more)]
    feeds, made = assert_bands_make_the_whole(
        "Binary", kernel, inputs, Given(result, dtype, **more), apart=apart
    )
    a, b = feeds["i0"].astype(np.float64), feeds["i1"].astype(np.float64)
    zero, scale = (more["zero_point"], more["scales"][0]) if more else (0, 1.0)
    a, b = (a - zero) * scale, (b - zero) * scale
    expected = {"add": a + b, "subtract": a - b, "multiply": a * b, "maximum": np.maximum(a, b)}
    clamped = np.clip(expected[function], -4, 5)
    np.testing.assert_allclose(
        (made.astype(np.float64) - zero) * scale, clamped, atol=0.5001 * scale if more else 1e-5
    )


@pytest.mark.parametrize("function", [each.value for each in BinaryFunction][:11])
def test_every_function_of_two_floats(function):
    image = Given((1, 5, 3, 21))
    assert_bands_make_the_whole("Binary", {"function": function}, [image, image], image,
                                apart=(0, 1))  # fmt: skip


def test_comparisons():
    image, truth = Given((1, 5, 3, 7)), Given((1, 5, 3, 7), "bool")
    assert_bands_make_the_whole("Binary", {"function": "less"}, [image, image], truth,
                                apart=(0, 1))  # fmt: skip


def test_a_factor_and_a_term_for_each_channel():
    draw = np.random.default_rng(1)
    more = [constant(draw.normal(size=18).astype(np.float32)) for _ in range(2)]
    image = Given((1, 7, 4, 18))
    assert_bands_make_the_whole("MultiplyAdd", {"min": 0.0}, [image, *more], image)


@pytest.mark.parametrize("condition", [(1, 6, 5, 3), (3,), (1, 6, 1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
def test_a_choice_between_two(condition, dtype):
    image = Given((1, 6, 5, 3), dtype)
    assert_bands_make_the_whole(
        "Select", {}, [Given(condition, "bool"), image, Given((3,), dtype)], image,
        apart=(0, 1) if len(condition) == 4 else (1,),
    )  # fmt: skip


@pytest.mark.parametrize("indices", [(1, 6), (1, 6, 4)])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("stored", "made"), [
    ("float32", "float32"), ("int8", "int8"), ("float16", "float32"),
])  # fmt: skip
def test_slices_of_a_table(indices, index, stored, made):
    draw = np.random.default_rng(2)
    table = draw.integers(-100, 100, (2000, 5)).astype(stored)
    feeds, found = assert_bands_make_the_whole(
        "Gather", {"axis": 0}, [constant(table), Given(indices, index)],
        Given((*indices, 5), made), apart=(1,) if len(indices) > 2 else (),
    )  # fmt: skip
    np.testing.assert_array_equal(found, table[feeds["i1"]].astype(made))


@pytest.mark.parametrize(("one", "other"), [
    ("float32", "int8"), ("uint8", "float32"), ("int8", "uint8"), ("int32", "float32"),
    ("float32", "bool"),
])  # fmt: skip
def test_conversions(one, other):
    shape = (1, 6, 5, 7)
    assert_bands_make_the_whole(
        "Convert", {}, [Given(shape, one, **QUANTISED.get(one, {}))],
        Given(shape, other, **QUANTISED.get(other, {})),
    )  # fmt: skip
