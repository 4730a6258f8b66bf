"""Products of matrices."""

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
    width = value.shape[-1]
    count = 1
    for length in value.shape[:-1]:
        count *= length
    return s.graph.reshape(value, (count, width))


def _turned(s: Backward, value: Value) -> Value:
    axes = list(range(value.rank))
    return s.graph.transpose(value, [*axes[:-2], axes[-1], axes[-2]])
