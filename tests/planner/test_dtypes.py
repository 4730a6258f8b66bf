import numpy as np
import pytest

from arenite.planner.tensors import DType


@pytest.mark.parametrize(
    ("dtype", "elements", "size"),
    [(DType.INT4, 3, 2), (DType.UINT2, 5, 2), (DType.FLOAT4E2M1, 1, 1), (DType.BOOL, 3, 3),
     (DType.BFLOAT16, 3, 6), (DType.FLOAT16, 0, 0), (DType.COMPLEX128, 2, 32)],
)  # fmt: skip
def test_elements_are_packed(dtype, elements, size):
    assert dtype.num_bytes(elements) == size


@pytest.mark.parametrize("dtype", [d for d in DType if hasattr(np, d.label) or d is DType.BOOL])
def test_types_that_numpy_has_are_as_wide_there(dtype):
    assert np.dtype(dtype.label).itemsize * 8 == dtype.bits
