"""Gradients of matrix products and batch normalisation."""

import math

from arenite.training.backward import Backward
from arenite.training.graph import Value


def gemm(s: Backward) -> None:
    """Gemm: alpha A B + beta C, A and B transposed or not."""
    graph, g, attributes = s.graph, s.gradient, s.node.attributes
    a, b = s.input(0), s.input(1)
    turned_a, turned_b = (bool(attributes.get(name, 0)) for name in ("transA", "transB"))
    alpha = float(attributes.get("alpha", 1.0))
    if s.needs(1):  # first, since A may not be needed after that
        if turned_b:
            found = graph.gemm(g, a, trans_a=True, trans_b=turned_a, alpha=alpha)
        else:
            found = graph.gemm(a, g, trans_a=not turned_a, alpha=alpha)
        s.give(1, found)
    if s.needs(0):
        if turned_a:
            found = graph.gemm(b, g, trans_a=turned_b, trans_b=True, alpha=alpha)
        else:
            found = graph.gemm(g, b, trans_b=not turned_b, alpha=alpha)
        s.give(0, found)
    if s.needs(2):
        summed = graph.sum_to(g, s.input(2).shape)
        s.give(2, graph.scaled(summed, float(attributes.get("beta", 1.0))))


def matmul(s: Backward) -> None:
    """MatMul, in batches that broadcast; rows and columns of one axis are matrices too."""
    graph, g = s.graph, s.gradient
    a, b = s.input(0), s.input(1)
    rows = graph.reshape(a, (1, *a.shape)) if a.rank == 1 else a
    columns = graph.reshape(b, (*b.shape, 1)) if b.rank == 1 else b
    shape = [*g.shape]
    if b.rank == 1:
        shape.append(1)
    if a.rank == 1:
        shape.insert(len(shape) - 1, 1)
    g = graph.reshape(g, shape)
    if columns.rank == 2:  # one matrix for all rows: a single product
        flat_rows, flat_g = (_flat(s, each) for each in (rows, g))
        if s.needs(1):
            product = graph.gemm(flat_rows, flat_g, trans_a=True)
            s.give(1, graph.reshape(product, b.shape))
        if s.needs(0):
            product = graph.gemm(flat_g, columns, trans_b=True)
            s.give(0, graph.reshape(product, a.shape))
        return
    if s.needs(0):
        product = graph.matmul(g, _turned(s, columns))
        s.give(0, graph.reshape(graph.sum_to(product, rows.shape), a.shape))
    if s.needs(1):
        product = graph.matmul(_turned(s, rows), g)
        s.give(1, graph.reshape(graph.sum_to(product, columns.shape), b.shape))


def _flat(s: Backward, value: Value) -> Value:
    return s.graph.reshape(value, (math.prod(value.shape[:-1]), value.shape[-1]))


def _turned(s: Backward, value: Value) -> Value:
    axes = list(range(value.rank))
    return s.graph.transpose(value, [*axes[:-2], axes[-1], axes[-2]])


WITH_BATCH_STATISTICS = "BatchNormalization of the batch"
"""The rule of a BatchNormalization whose mean and variance are computed from its input."""


def frozen(s: Backward) -> None:
    """BatchNormalization by statistics that are constants."""
    inverse = _inverse(s)
    if s.needs(0):
        factor = s.graph.times(inverse, _wide(s, s.input(1)))
        s.give(0, s.graph.times(s.gradient, factor))
    if s.needs(1) or s.needs(2):
        _scale_and_shift(s, inverse)


def of_the_batch(s: Backward) -> None:
    """BatchNormalization by the statistics of its input.

    With c = x - mean: dx = gamma inverse (g - mean g - c inverse^2 mean g c).
    """
    graph, inverse = s.graph, _inverse(s)
    shift, scale = _scale_and_shift(s, inverse)
    if not s.needs(0):
        return
    count = s.input(0).num_elements // s.input(0).shape[1]
    factor = graph.times(inverse, _wide(s, s.input(1)))
    slope = graph.times(graph.times(factor, inverse), _wide(s, scale))
    of_source = graph.scaled(slope, -1 / count)
    offset = graph.scaled(graph.times(factor, _wide(s, shift)), -1 / count)
    # The mean goes into the offset, so that no second tensor of the input's size is made.
    offset = graph.minus(offset, graph.times(of_source, _wide(s, s.input(3))))
    found = graph.plus(
        graph.times(s.gradient, factor), graph.plus(graph.times(s.input(0), of_source), offset)
    )
    s.give(0, found)


def _scale_and_shift(s: Backward, inverse: Value) -> tuple[Value, Value]:
    """Give and return the gradients of beta and gamma."""
    graph, g = s.graph, s.gradient
    axes = [axis for axis in range(g.rank) if axis != 1]
    shift = graph.reduce_sum(g, axes)
    centred = graph.minus(s.input(0), _wide(s, s.input(3)))
    summed = graph.reduce_sum(graph.times(centred, g), axes)
    scale = graph.times(summed, graph.reshape(inverse, summed.shape))
    if s.needs(1):
        s.give(1, scale)
    if s.needs(2):
        s.give(2, shift)
    return shift, scale


def _inverse(s: Backward) -> Value:
    """Return 1 / sqrt(variance + epsilon), a channel wide."""
    graph, variance = s.graph, s.input(4)
    epsilon = float(s.node.attributes.get("epsilon", 1e-5))
    root = graph.unary("Sqrt", graph.plus(variance, graph.scalar(epsilon, variance)))
    return _wide(s, graph.unary("Reciprocal", root))


def _wide(s: Backward, value: Value) -> Value:
    """Return a value a channel, with axes of length 1 behind."""
    rank = s.input(0).rank
    return s.graph.reshape(value, (value.num_elements, *[1] * (rank - 2)))
