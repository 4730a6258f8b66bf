"""The order in which a tensor's axes are stored.

A tensor has the axes of the model, and an **order**: stored axis i is the model's axis
order[i]. Axes of length 1 may stand anywhere. Transposing a tensor is choosing another
order for the same bytes, so it costs nothing until an operator needs a certain one.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from arenite.planner import Array, DType
from arenite.planner.sizes import same

Shape: TypeAlias = tuple[int, ...]
Order: TypeAlias = tuple[int, ...]


def as_written(rank: int) -> Order:
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Return the order that puts axis 1 last."""
    return (0, *range(2, rank), 1)


def stored_shape(shape: Shape, order: Order) -> Shape:
    """Return the lengths of the stored axes."""
    return tuple(shape[axis] for axis in order)


def transposed(order: Order, axes: Sequence[int]) -> Order:
    """Return the order of a tensor whose axis i is axis axes[i] of one with `order`."""
    new_axis = {old: new for new, old in enumerate(axes)}
    return tuple(new_axis[axis] for axis in order)


def same_bytes(shape: Shape, one: Order, other: Order) -> bool:
    """Tell whether both orders put every element at the same place."""
    return _long(shape, one) == _long(shape, other)


def _long(shape: Shape, order: Iterable[int]) -> list[int]:
    return [axis for axis in order if not same(shape[axis], 1)]


def usual(shape: Shape, order: Order) -> Order:
    """Return the order of an image or of the model itself, if it puts every element there too."""
    for each in (channels_last(len(order)), as_written(len(order))):
        if len(order) > 1 and same_bytes(shape, order, each):
            return each
    return order


def strides(shape: Shape, order: Order) -> tuple[int, ...]:
    """Return, for each of the model's axes, the elements from one index to the next."""
    found = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        found[axis] = step
        step *= shape[axis]
    return tuple(found)


def broadcast(one: Shape, other: Shape) -> Shape:
    """Return the shape that two of one rank broadcast to."""
    return tuple(b if same(a, 1) else a for a, b in zip(one, other, strict=True))


def without_axes(order: Order, removed: Iterable[int]) -> Order:
    """Return the order without some of the model's axes."""
    gone = set(removed)
    kept = sorted(axis for axis in order if axis not in gone)
    new_axis = {old: new for new, old in enumerate(kept)}
    return tuple(new_axis[axis] for axis in order if axis not in gone)


def reshaped(shape: Shape, order: Order, new_shape: Shape) -> tuple[Order, Order] | None:
    """Return how to see a tensor under another shape.

    The first order returned is the one that the tensor must be stored in, the second the one
    that the result then has; the first is `order` itself if no bytes have to move. None if
    there are no elements.
    """
    if math.prod(shape) == 0:
        return None
    position = {axis: place for place, axis in enumerate(order)}
    ranked = sorted(
        _clusters(shape, new_shape),
        key=lambda group: max(
            (position[axis] for axis in group[0] if not same(shape[axis], 1)), default=-1
        ),
    )
    needed = tuple(axis for old, _ in ranked for axis in old)
    result = tuple(axis for _, new in ranked for axis in new)
    return (order if same_bytes(shape, order, needed) else needed), result


def _clusters(shape: Shape, new_shape: Shape) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the groups, each group of one element joined to the one before it."""
    clusters: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for old, new in _groups(shape, new_shape):
        is_unit = not _long(shape, old)
        begins_so = bool(clusters) and not _long(shape, clusters[-1][0])
        if clusters and (is_unit or begins_so):
            clusters[-1] = (clusters[-1][0] + old, clusters[-1][1] + new)
        else:
            clusters.append((old, new))
    return clusters


def _groups(shape: Shape, new_shape: Shape) -> Iterable[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the smallest runs of old and new axes that hold the same elements."""
    old = new = 0
    while old < len(shape) or new < len(new_shape):
        first_old, first_new = old, new
        old_count = new_count = 1
        if old < len(shape):
            old_count = shape[old]
            old += 1
        if new < len(new_shape):
            new_count = new_shape[new]
            new += 1
        while not same(old_count, new_count):
            # Counts that are equal at the highest sizes alone grow, too, as long as axes are left.
            if old_count < new_count or (old_count == new_count and old < len(shape)):
                old_count *= shape[old]
                old += 1
            else:
                new_count *= new_shape[new]
                new += 1
        yield tuple(range(first_old, old)), tuple(range(first_new, new))


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A tensor of the model, and where its bytes are.

    Attributes:
        tensor: Name of the storage or constant.
        dtype: Element type.
        shape: Shape in the model.
        order: Order of the stored axes.
        offset: First byte in the storage.
        array: Elements of a constant, axes in the model's order; None for other tensors, and for
            a constant of which a run takes the front.
    """

    tensor: str
    dtype: DType
    shape: Shape
    order: Order
    offset: int = 0
    array: Array | None = None

    @property
    def stored(self) -> Shape:
        """Lengths of the stored axes."""
        return stored_shape(self.shape, self.order)

    def aligned(self, rank: int) -> "StoredValue":
        """Return the value with axes of length 1 in front, to a total of `rank`."""
        missing = rank - len(self.shape)
        shape = (*(1,) * missing, *self.shape)
        order = (*range(missing), *(axis + missing for axis in self.order))
        array = None if self.array is None else self.array.reshape(shape)
        return replace(self, shape=shape, order=order, array=array)


def common_order(values: Sequence[StoredValue]) -> Order:
    """Return the order of values of one rank that moves the fewest of their elements."""
    weights: dict[Order, int] = {}
    for value in values:
        if value.array is None:
            weights[value.order] = weights.get(value.order, 0) + math.prod(value.shape)
    return max(weights, key=weights.__getitem__) if weights else values[0].order
