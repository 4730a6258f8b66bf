"""Which tensors have rows, and how large these are."""

from arenite.planner.tensors import DType, Tensor, has_rows, num_rows, row_bytes


def test_only_single_images_have_rows():
    image = Tensor("x", DType.UINT8, (1, 4, 3, 2))
    assert has_rows(image)
    assert (num_rows(image), row_bytes(image)) == (4, 6)
    assert not has_rows(Tensor("x", DType.UINT8, (2, 4, 3, 2)))
    assert not has_rows(Tensor("x", DType.UINT8, (1, 0, 3, 2)))
    assert not has_rows(Tensor("x", DType.UINT8, (1,)))
