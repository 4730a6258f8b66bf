"""TFLite files with numbers that cannot be are refused where they are read or lowered."""

import numpy as np
import pytest

from arenite.planner.errors import ModelFormatError
from arenite.runtime.compiler import compile_model
from arenite.runtime.lowering.errors import UnsupportedOperatorsError
from support.tflite_operator import Given, operator_model, weights

TO_ROWS = weights(np.array([1, 144], np.int32))


def reshape(folder, source, result):
    path = folder / "m.tflite"
    path.write_bytes(operator_model("RESHAPE", [source, TO_ROWS], [result]))
    return path


@pytest.mark.parametrize("shape", [(1,), (1, 145), (2, 144)])
def test_a_shape_of_another_number_of_elements_is_refused(shape, tmp_path):
    path = reshape(tmp_path, Given(shape), Given((1, 144)))
    with pytest.raises(UnsupportedOperatorsError, match="different numbers of elements"):
        compile_model(path)


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1, 1 << 62])
def test_a_zero_point_beyond_32_bits_is_refused(number, tmp_path):
    quantised = Given((1, 6, 6, 4), "int8", scales=(0.1,), zero_point=number)
    path = reshape(tmp_path, quantised, Given((1, 144), "int8", scales=(0.1,)))
    with pytest.raises(ModelFormatError, match=f"no zero point is {number}"):
        compile_model(path)
