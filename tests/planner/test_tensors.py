"""Which tensors have rows, how large these are, and how wide elements are."""

import numpy as np
import pytest

from arenite.planner.tensors import DType, Tensor, has_rows, num_rows, row_bytes


def test_only_single_images_have_rows():
    image = Tensor("x", DType.UINT8, (1, 4, 3, 2))
    assert has_rows(image)
    assert (num_rows(image), row_bytes(image)) == (4, 6)
    assert not has_rows(Tensor("x", DType.UINT8, (2, 4, 3, 2)))
    assert not has_rows(Tensor("x", DType.UINT8, (1, 0, 3, 2)))
    assert not has_rows(Tensor("x", DType.UINT8, (1,)))


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
