"""Rows of a tensor that is an image: its indices along axis 1, where it is stored N, H, W, C."""

from arenite.planner.tensors import Tensor

ROW_AXIS = 1


def num_rows(tensor: Tensor) -> int:
    """Return how many rows a tensor has."""
    return tensor.shape[ROW_AXIS]


def row_bytes(tensor: Tensor) -> int:
    """Return the bytes of one row."""
    return tensor.size // num_rows(tensor)


def has_rows(tensor: Tensor) -> bool:
    """Tell whether a tensor is an image of whole rows, not empty."""
    if len(tensor.shape) <= ROW_AXIS or tensor.shape[0] != 1 or tensor.size == 0:
        return False
    return tensor.size % num_rows(tensor) == 0
