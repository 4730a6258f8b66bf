"""Stores arrays sparse, as TFLite files do."""

from collections.abc import Mapping, Sequence

import numpy as np

from support.tiny_tflite import TinySparsity


def stored_sparse(
    dense: np.ndarray,
    order: Sequence[int] | None = None,
    blocks: Mapping[int, int] | None = None,
    sparse: Sequence[int] = (),
    kind: str = "Int32Vector",
) -> tuple[TinySparsity, bytes]:
    """Return how the array is stored, and its elements.

    Args:
        dense: The array.
        order: Its axes and behind them its blocks, in the order of the levels.
        blocks: Length of the blocks that an axis is cut into.
        sparse: Levels that are sparse.
        kind: How indices are stored.
    """
    cut = dict(blocks or {})
    order = list(range(dense.ndim + len(cut))) if order is None else order
    shape: list[int] = []
    source: list[int] = [0] * (dense.ndim + len(cut))
    for axis, length in enumerate(dense.shape):
        source[axis] = len(shape)
        if axis in cut:
            source[dense.ndim + list(cut).index(axis)] = len(shape) + 1
            shape += [length // cut[axis], cut[axis]]
        else:
            shape.append(length)
    tree = dense.reshape(shape).transpose([source[each] for each in order])
    levels: list[int | tuple[list[int], list[int]]] = []
    nodes = [tree]
    for level, size in enumerate(tree.shape):
        if level not in sparse:
            levels.append(size)
            nodes = [child for node in nodes for child in node]
            continue
        kept = [[i for i, child in enumerate(node) if np.any(child)] for node in nodes]
        segments = np.cumsum([0, *map(len, kept)]).tolist()
        levels.append((segments, [i for each in kept for i in each]))
        nodes = [node[i] for node, each in zip(nodes, kept, strict=True) for i in each]
    return TinySparsity(order, list(cut), levels, kind), np.array(nodes, dense.dtype).tobytes()
