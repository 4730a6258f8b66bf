"""Constants that a TFLite file stores sparse, made dense.

The elements are listed as a tree has its leaves, one level for each axis, in the order that
`traversal order` states: first the axes of the tensor, then those of the blocks that some of
them are cut into. A dense level has every index; a sparse one has those in `indices`, of each
node of the level above those from one entry of `segments` to the next::

    shape 4, 4     axis 0, dense: 0 1 2 3     axis 1, sparse: segments 0 1 1 2 3
                                                              indices  2, 0, 3

Source: the TFLite schema's SparsityParameters; Kjolstad et al., The Tensor Algebra Compiler
(2017).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.programs.program import Array

MOST_BYTES = 16 << 20
"""Bytes that a sparse constant may take when dense, however few are stored."""
MOST_GROWTH = 256
"""Further bytes for each byte that is stored."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the tree.

    Attributes:
        size: Number of indices of a dense level.
        segments: Where the indices of each node above begin; None if the level is dense.
        indices: The indices of all nodes above, one node after the other.
    """

    size: int
    segments: Array | None = None
    indices: Array | None = None


def made_dense(name: str, sparsity: Any, elements: Array, shape: tuple[int, ...]) -> Array:
    """Return the elements of a constant in its shape, zeros where none is stored.

    Args:
        sparsity: The schema's reader of how it is stored.
        elements: The elements that are stored.

    Raises:
        ModelFormatError: The stated form does not fit the elements or the shape.
        UnsupportedModelError: It is larger than a constant may be made.

    Cost: time and memory O(elements of the shape).
    """
    num_bytes = math.prod(shape) * elements.itemsize
    if num_bytes > max(MOST_BYTES, MOST_GROWTH * elements.nbytes):
        raise UnsupportedModelError(
            name, f"{elements.nbytes} B of sparse elements would expand to {num_bytes} B"
        )
    rank = len(shape)
    order = [sparsity.TraversalOrder(i) for i in range(sparsity.TraversalOrderLength())]
    blocks = [sparsity.BlockMap(i) for i in range(sparsity.BlockMapLength())]
    num_levels = rank + len(blocks)
    is_whole = (
        sorted(order[:rank]) == list(range(rank))
        and sorted(order[rank:]) == list(range(rank, num_levels))
        and sparsity.DimMetadataLength() == num_levels
        and all(0 <= axis < rank for axis in blocks)
    )
    if not is_whole:
        raise _unfit(name, "invalid traversal order or block map")
    levels = [_level(name, sparsity.DimMetadata(i)) for i in range(num_levels)]
    paths = _paths(name, levels, math.prod(shape))
    if paths.shape[1] != len(elements):
        raise _unfit(name, f"{paths.shape[1]} indices for {len(elements)} elements")
    places = np.zeros((rank, len(elements)), np.int64)
    for level, axis in enumerate(order):
        if level < rank:
            places[axis] = paths[level]
        elif levels[level].segments is not None:
            raise _unfit(name, "sparse blocks are unsupported")
        else:
            cut = blocks[axis - rank]
            places[cut] = places[cut] * levels[level].size + paths[level]
    lengths = np.array(shape, np.int64)[:, np.newaxis]
    if ((places < 0) | (places >= lengths)).any():
        raise _unfit(name, f"an index is outside its shape {shape}")
    dense = np.zeros(shape, elements.dtype)
    dense[tuple(places)] = elements
    return dense


def _level(name: str, stated: Any) -> Level:
    import tflite

    if stated.Format() == tflite.DimensionType.DENSE:
        if stated.DenseSize() < 0:
            raise _unfit(name, f"dense size {stated.DenseSize()} is negative")
        return Level(stated.DenseSize())
    segments = _numbers(tflite, stated.ArraySegmentsType(), stated.ArraySegments())
    indices = _numbers(tflite, stated.ArrayIndicesType(), stated.ArrayIndices())
    if stated.Format() != tflite.DimensionType.SPARSE_CSR or segments is None or indices is None:
        raise _unfit(name, "segments or indices of a sparse axis are missing")
    return Level(0, segments, indices)


def _numbers(schema: ModuleType, kind: int, table: Any) -> Array | None:
    kinds = {
        schema.SparseIndexVector.Int32Vector: schema.Int32Vector,
        schema.SparseIndexVector.Uint16Vector: schema.Uint16Vector,
        schema.SparseIndexVector.Uint8Vector: schema.Uint8Vector,
    }
    if kind not in kinds or table is None:
        return None
    vector = kinds[kind]()
    vector.Init(table.Bytes, table.Pos)
    return np.array(vector.ValuesAsNumpy() if vector.ValuesLength() else [], np.int64)


def _unfit(name: str, what: str) -> ModelFormatError:
    return ModelFormatError(f"sparse constant {name!r}: {what}")


def _paths(name: str, levels: Sequence[Level], most: int) -> Array:
    """Return the index at each level of every leaf, leaves in order."""
    paths: Array = np.zeros((0, 1), np.int64)
    nodes: Array = np.zeros(1, np.int64)
    for level in levels:
        num_nodes = paths.shape[1]
        if level.segments is None or level.indices is None:
            if num_nodes * level.size > most:
                raise _unfit(name, f"more than {most} indices, the elements of its shape")
            above = np.repeat(np.arange(num_nodes), level.size)
            own = np.tile(np.arange(level.size), num_nodes)
            nodes = nodes[above] * level.size + own
        else:
            bounds, indices = level.segments, level.indices
            if nodes.size and int(nodes.max()) + 1 >= len(bounds):
                raise _unfit(name, f"{len(bounds)} segments are too few")
            first, end = bounds[nodes], bounds[nodes + 1]
            counts = end - first
            if (counts < 0).any() or (first < 0).any() or (end > len(indices)).any():
                raise _unfit(name, "a segment is outside the indices")
            if int(counts.sum()) > most:
                raise _unfit(name, f"more than {most} indices, the elements of its shape")
            above = np.repeat(np.arange(num_nodes), counts)
            starts = np.cumsum(counts) - counts
            nodes = np.arange(len(above)) - starts[above] + first[above]
            own = indices[nodes]
        paths = np.vstack([paths[:, above], own[np.newaxis]])
    return paths
