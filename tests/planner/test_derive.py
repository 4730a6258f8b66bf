from arenite.planner.programs.ordering import Order
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind, Rules
from arenite.planner.rewrites.derivation import derive
from arenite.planner.tensors import TensorKind
from arenite.strategies import find_order
from support.tiny_graphs import graph_of, tensor

GRAPH = graph_of(
    [tensor("x", (1,), TensorKind.INPUT), tensor("a"), tensor("b"), tensor("c", (16,)),
     tensor("y", (1,), TensorKind.OUTPUT)],
    [("Conv", ("x",), ("a",)), ("Conv", ("x",), ("b",)), ("Concat", ("a", "b"), ("c",)),
     ("Conv", ("c",), ("y",))],
)  # fmt: skip
SWAPPED = ("Conv_1", "Conv_0", "Concat_2", "Conv_3")


def swap(_graph, _model):
    return Order(SWAPPED, peak=128, lower_bound=128)


def test_what_a_search_proved_holds_where_no_parts_share_storage():
    kinds = (AliasKind.VIEWS, AliasKind.IN_PLACE)
    assert derive(GRAPH, Rules(kinds, alignment=1), swap).order.optimal


def test_parts_that_share_storage_lower_the_peak_and_end_the_proof():
    found = derive(GRAPH, Rules(SAFE_KINDS, alignment=1), swap).order
    assert found == Order(SWAPPED, peak=68, lower_bound=0)
    assert not found.optimal


def test_the_given_order_stays_where_parts_make_it_the_better_one():
    sizes = {"x": 1, "a": 2, "big": 100, "b": 50, "c": 52, "y": 1}
    kinds = {"x": TensorKind.INPUT, "y": TensorKind.OUTPUT}
    graph = graph_of(
        [tensor(n, (s,), kinds.get(n, TensorKind.ACTIVATION)) for n, s in sizes.items()],
        [("Conv", ("x",), ("big",)), ("Conv", ("big",), ("b",)), ("Conv", ("x",), ("a",)),
         ("Concat", ("a", "b"), ("c",)), ("Conv", ("c",), ("y",))],
    )  # fmt: skip

    def early(_graph, _model):
        return Order(("Conv_2", "Conv_0", "Conv_1", "Concat_3", "Conv_4"), 0, 0)

    found = derive(graph, Rules(SAFE_KINDS, alignment=1), early).order
    assert found.steps == tuple(operator.name for operator in graph.steps)


def test_the_order_is_searched_at_the_alignment_that_storage_is_shared_at():
    """Two halves of 16 B share the storage of what is split: at 64 B each they would not."""
    graph = graph_of(
        [tensor("x", (8,), TensorKind.INPUT), tensor("a"), tensor("p", (4,)), tensor("q", (4,)),
         tensor("r", (4,)), tensor("y", (4,), TensorKind.OUTPUT)],
        [("Conv", ("x",), ("a",)), ("Split", ("a",), ("p", "q"), {"axis": 0}),
         ("Relu", ("p",), ("r",)), ("Add", ("r", "q"), ("y",))],
    )  # fmt: skip
    for alignment in (16, 64):
        found = derive(graph, Rules(SAFE_KINDS, alignment=alignment), find_order("best"))
        assert found.order.peak == found.problem.lower_bound
