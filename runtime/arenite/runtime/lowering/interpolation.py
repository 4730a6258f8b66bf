"""Which rows and columns of an image each one of a resized image is made from."""

import numpy as np

from arenite.planner.program import Array
from arenite.runtime.operators.movement import Resize2D


def nearest(rows: Array, columns: Array, height: int, width: int) -> Resize2D:
    """Return the operator that takes the nearest element.

    Args:
        rows: Row of the input for each row of the output, already rounded.
        columns: Column of the input for each column of the output.
        height: Rows of the input.
        width: Columns of the input.
    """
    return Resize2D(row_low=_inside(rows, height), column_low=_inside(columns, width))


def linear(rows: Array, columns: Array, height: int, width: int) -> Resize2D:
    """Return the operator that blends the elements around a position.

    Args:
        rows: Position in the input for each row of the output.
        columns: Position in the input for each column of the output.
        height: Rows of the input.
        width: Columns of the input.
    """
    row_low, row_high, row_weight = _blend(rows, height)
    column_low, column_high, column_weight = _blend(columns, width)
    return Resize2D(
        row_low=row_low,
        row_high=row_high,
        row_weight=row_weight,
        column_low=column_low,
        column_high=column_high,
        column_weight=column_weight,
    )


def _inside(indices: Array, length: int) -> tuple[int, ...]:
    return tuple(int(index) for index in np.clip(indices, 0, length - 1))


def _blend(
    places: Array, length: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    inside = np.clip(places, 0, length - 1)
    low = np.floor(inside).astype(int)
    high = np.minimum(low + 1, length - 1)
    return tuple(map(int, low)), tuple(map(int, high)), tuple(map(float, inside - low))
