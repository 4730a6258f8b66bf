"""The strided copies and the resizes that operators without arithmetic consist of."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from arenite.planner import Array
from arenite.planner.sizes import Dimension, Size, bounds, same
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Order, Shape, StoredValue, strides
from arenite.runtime.operators.movement import Copy, Resize2D
from arenite.runtime.operators.moves import Move


def copy_of(value: StoredValue) -> Copy:
    """Return the operator that copies the stored elements of a value."""
    return Copy(moves=(Move(shape=(math.prod(value.shape),), input_strides=(1,),
                            output_strides=(1,)),))  # fmt: skip


def joined(parts: Sequence[StoredValue], shape: Shape, order: Order, axis: int) -> Copy:
    """Return the operator that joins values along an axis.

    Args:
        parts: The values, each stored in its own order.
        shape: Shape of the result, in the model.
        order: Order of the result.
        axis: The axis, of the model.
    """
    moves: list[Move] = []
    target, begin = strides(shape, order), 0
    for position, part in enumerate(parts):
        source = strides(part.shape, part.order)
        moves.append(
            Move(
                input=position,
                shape=tuple(part.shape[each] for each in order),
                input_strides=tuple(source[each] for each in order),
                output_start=begin * target[axis],
                output_strides=tuple(target[each] for each in order),
            )
        )
        begin += part.shape[axis]
    return Copy(moves=tuple(moves))


def picked(
    value: StoredValue, shape: Shape, first: Sequence[int], step: Sequence[int], *, output: int = 0
) -> Move:
    """Return the move of elements at a constant step along each axis.

    Args:
        value: The value to read.
        shape: Shape of the result, in the model; it is stored in the value's order.
        first: Index of the first element.
        step: Step from one index read to the next; 0 repeats, negative goes backwards.
        output: Position of the result among the step's outputs.
    """
    source, target = strides(value.shape, value.order), strides(shape, value.order)
    return Move(
        output=output,
        shape=tuple(shape[axis] for axis in value.order),
        input_start=sum(f * s for f, s in zip(first, source, strict=True)),
        input_strides=tuple(source[axis] * step[axis] for axis in value.order),
        output_strides=tuple(target[axis] for axis in value.order),
    )


def tiled(value: StoredValue, shape: Shape, repeats: Sequence[int]) -> Move:
    """Return the move that repeats a value along each axis."""
    source, target = strides(value.shape, value.order), strides(shape, value.order)
    lengths: list[int] = []
    input_strides: list[int] = []
    output_strides: list[int] = []
    for axis in value.order:
        lengths += [repeats[axis], value.shape[axis]]
        input_strides += [0, source[axis]]
        output_strides += [value.shape[axis] * target[axis], target[axis]]
    kept = [i for i, length in enumerate(lengths) if not same(length, 1)]
    return Move(
        shape=tuple(lengths[i] for i in kept),
        input_strides=tuple(input_strides[i] for i in kept),
        output_strides=tuple(output_strides[i] for i in kept),
    )


def padded(
    value: StoredValue,
    shape: Shape,
    before: Sequence[int],
    mode: str,
    dimensions: Sequence[Dimension] = (),
) -> tuple[Move, ...]:
    """Return the moves of a value into the middle of a larger one, and those of its padding.

    Args:
        value: The value to pad.
        shape: Shape of the result, in the model; it is stored in the value's order.
        before: Width of the padding in front, for each axis.
        mode: "constant": the fill is not moved; "edge"; "reflect", without the edge;
            "symmetric", with it.
        dimensions: Dimensions that the shapes depend on.

    Raises:
        NotLoweredError: An axis is shorter than what is reflected of it, for some size.
    """
    # For each axis, its runs: first index written, count, first index read, step.
    stretches: list[list[tuple[int, int, int, int]]] = []
    for axis, length in enumerate(value.shape):
        front, behind = before[axis], shape[axis] - length - before[axis]
        parts = [(front, length, 0, 1)]
        if mode == "edge":
            parts += [(0, front, 0, 0), (front + length, behind, length - 1, 0)]
        elif mode in ("reflect", "symmetric"):
            edge = 1 if mode == "reflect" else 0
            for width in (front, behind):
                if bounds(length - edge - width, dimensions)[0] < 0:
                    raise NotLoweredError(
                        f"padding {width} of axis {axis} exceeds its {_words(length)} elements"
                    )
            parts += [
                (0, front, front - 1 + edge, -1),
                (front + length, behind, length - 1 - edge, -1),
            ]
        stretches.append([part for part in parts if not same(part[1], 0)])
    source, target = strides(value.shape, value.order), strides(shape, value.order)
    return tuple(
        Move(
            shape=tuple(block[axis][1] for axis in value.order),
            input_start=sum(part[2] * source[axis] for axis, part in enumerate(block)),
            input_strides=tuple(source[axis] * block[axis][3] for axis in value.order),
            output_start=sum(part[0] * target[axis] for axis, part in enumerate(block)),
            output_strides=tuple(target[axis] for axis in value.order),
        )
        for block in itertools.product(*stretches)
    )


def _words(length: int) -> str:
    return str(length.expression) if isinstance(length, Size) else str(length)


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
