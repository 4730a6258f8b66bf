import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arenite.planner.errors import UnknownStrategyError
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import AliasKind, Boundary, Rules
from arenite.planner.rewrites.aliasing.rewrite import share
from arenite.planner.tensors import DType, Tensor, TensorKind
from arenite.strategies import ORDERS, find_order
from arenite.strategies.order.searches import Beam, OptimalOrder
from arenite.strategies.place.one_pass import GreedyBySize
from support.tiny_graphs import step, wide_graph

BYTES = Rules(alignment=1)


def graph_of(edges, sizes, op_types=None, outputs=None):
    """A graph of one tensor a node; node 0 reads the input `x`."""
    tensors = [Tensor("x", DType.UINT8, (4,), TensorKind.INPUT)]
    operators = []
    for node, size in enumerate(sizes):
        tensors.append(Tensor(f"t{node}", DType.UINT8, (size,)))
        reads = tuple(f"t{a}" for a, b in edges if b == node) or ("x",)
        op_type = op_types[node] if op_types else "Conv"
        operators.append(step(f"n{node}", op_type, reads, (f"t{node}",)))
    read = {name for operator in operators for name in operator.reads}
    ends = outputs or [t.name for t in tensors if t.name not in read]
    return Program.of("test", tensors, operators, ["x"], ends)


def topological_orders(graph):
    """Yield every order, by the slowest way there is."""
    written = {operator.outputs[0]: operator for operator in graph.steps}

    def extend(done):
        if len(done) == len(graph.steps):
            yield done
            return
        for operator in graph.steps:
            if operator.name not in done and all(
                name not in written or written[name].name in done for name in operator.reads
            ):
                yield from extend([*done, operator.name])

    yield from extend([])


def peak(graph, order, model):
    problem = liveness(
        share(graph.reordered(order), model.aliases, model.boundary),
        boundary=model.boundary,
        alignment=model.alignment,
    )
    return problem.lower_bound


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    op_types = draw(
        st.lists(st.sampled_from(["Conv", "Add", "Reshape"]), min_size=count, max_size=count)
    )
    return graph_of(edges, sizes, op_types)


@st.composite
def models(draw):
    aliases = draw(st.sampled_from([(), (AliasKind.VIEWS,), tuple(AliasKind)]))
    boundary = draw(st.sampled_from(tuple(Boundary)))
    return Rules(aliases, boundary, draw(st.sampled_from([1, 4])))


@given(graphs(), models())
def test_the_optimal_order_is_the_lowest_of_all_and_says_so(graph, model):
    found = OptimalOrder(width=1)(graph, model)
    lowest = min(peak(graph, order, model) for order in topological_orders(graph))
    assert found.optimal
    assert found.peak == lowest


@example(  # the sum may not overwrite what its other operand is a view of
    graph_of([(0, 1), (0, 2), (1, 2), (2, 3)], [2, 2, 2, 4], ["Conv", "Reshape", "Add", "Conv"]),
    Rules(tuple(AliasKind), alignment=1),
)
@example(  # nor may the sum, of which a view is the caller's, overwrite an operand
    graph_of([(0, 2), (1, 2), (2, 3)], [2, 1, 2, 2], ["Conv", "Conv", "Add", "Reshape"]),
    Rules(tuple(AliasKind), Boundary.EXCLUDE, alignment=1),
)
@given(graphs(), models())
def test_every_order_is_topological_and_its_peak_is_that_of_liveness(graph, model):
    for strategy in ORDERS:
        found = strategy(graph, model)
        assert found.peak == peak(graph, found.steps, model)
        assert found.lower_bound <= found.peak
        assert strategy(graph, model) == found


def test_two_branches_are_finished_one_after_the_other():
    # Each branch widens, then narrows: to hold both wide tensors at once is a waste.
    edges = [(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5)]
    graph = graph_of(edges, [1, 8, 1, 8, 1, 1])
    interleaved = graph.reordered(["n0", "n1", "n3", "n2", "n4", "n5"])
    assert find_order("given")(interleaved, BYTES).peak == 17
    assert find_order("breadth-first")(interleaved, BYTES).peak == 17
    assert find_order("depth-first")(interleaved, BYTES).peak == 10
    assert find_order("optimal")(interleaved, BYTES).peak == 10


def random_cell(num_nodes, seed):
    """A layered cell in which greedy choices mislead."""
    generator = random.Random(seed)
    edges = [(generator.randrange(max(0, b - 8), b), b) for b in range(1, num_nodes)]
    edges += [(generator.randrange(max(0, b - 8), b), b) for b in range(1, num_nodes)]
    sizes = [generator.randrange(1, 100) for _ in range(num_nodes)]
    return graph_of(sorted(set(edges)), sizes)


def test_a_wider_beam_pays_on_a_random_cell():
    graph = random_cell(40, seed=3)
    assert Beam(width=200)(graph, BYTES).peak < Beam(width=1)(graph, BYTES).peak


def test_wider_beams_follow_where_the_proof_is_out_of_reach():
    graph = random_cell(40, seed=3)
    narrow = OptimalOrder(width=1, widened=(), max_states=1)(graph, BYTES)
    widened = OptimalOrder(width=1, widened=(200,), max_states=1)(graph, BYTES)
    limited = OptimalOrder(width=1, widened=(200,), max_kept=100, max_states=1)(graph, BYTES)
    assert widened.peak < narrow.peak
    assert limited.peak == narrow.peak


def test_of_orders_with_one_peak_the_one_with_the_lower_arena_is_kept():
    for seed in range(40):
        graph = random_cell(12, seed)
        found = find_order("best")(graph, BYTES)
        for name in ("given", "depth-first", "breadth-first", "beam"):
            other = find_order(name)(graph, BYTES)
            if other.peak == found.peak:
                assert arena(graph, found) <= arena(graph, other)


def arena(graph, order):
    """The height of a greedy placement in this order."""
    return GreedyBySize()(liveness(graph.reordered(order.steps), alignment=1)).height


def test_states_that_run_out_leave_the_order_unproved():
    graph = random_cell(40, seed=3)
    proved = OptimalOrder(width=1)(graph, BYTES)
    unproved = OptimalOrder(width=1, widened=(), max_states=1)(graph, BYTES)
    assert proved.optimal
    assert not unproved.optimal
    assert unproved.peak >= proved.peak


def test_a_search_that_is_stopped_still_gives_an_order():
    graph = random_cell(40, seed=3)
    found = OptimalOrder().search(graph, BYTES, lambda: True)
    assert sorted(found.steps) == sorted(operator.name for operator in graph.steps)


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_that_may_do_no_work_is_no_higher_than_the_order_of_the_program(seed):
    graph = random_cell(40, seed=seed)
    stopped = Beam(max_work=0)(graph, BYTES)
    assert stopped.peak <= find_order("given")(graph, BYTES).peak
    assert Beam()(graph, BYTES).peak < stopped.peak


def test_a_beam_that_may_do_no_work_goes_on_where_it_is():
    tensors = [Tensor("x", DType.UINT8, (4,), TensorKind.INPUT)]
    steps = []
    for branch in range(4):  # all that swell first, as they are given
        tensors.append(Tensor(f"large{branch}", DType.UINT8, (100,)))
        steps.append(step(f"swell{branch}", "Conv", ("x",), (f"large{branch}",)))
    for branch in range(4):
        tensors.append(Tensor(f"small{branch}", DType.UINT8, (1,), TensorKind.OUTPUT))
        steps.append(step(f"shrink{branch}", "Conv", (f"large{branch}",), (f"small{branch}",)))
    outputs = [f"small{branch}" for branch in range(4)]
    graph = Program.of("pairs", tensors, steps, ["x"], outputs)
    order = Beam(max_work=0)(graph, BYTES)
    assert order.steps[:4] == ("swell0", "shrink0", "swell1", "shrink1")


def test_a_beam_goes_on_from_where_its_work_ends():
    graph = wide_graph(30)
    orders = [Beam(max_work=work)(graph, BYTES) for work in (0, 2_000_000, 1 << 62)]
    assert len({order.steps for order in orders}) == 3
    assert len({tuple(sorted(order.steps)) for order in orders}) == 1
    assert orders[2].peak == min(order.peak for order in orders)


def test_reads_and_writes_of_a_state_keep_their_order():
    tensors = [
        Tensor("s", DType.UINT8, (4,), TensorKind.STATE),
        Tensor("x", DType.UINT8, (4,), TensorKind.INPUT),
        Tensor("before", DType.UINT8, (64,)),
        Tensor("y", DType.UINT8, (4,), TensorKind.OUTPUT),
    ]
    operators = [
        step("read", "Conv", ("s",), ("before",)),
        step("write", "Assign", ("x",), ("s",)),
        step("use", "Conv", ("before",), ("y",)),
    ]
    graph = Program.of("state", tensors, operators, ["x"], ["y"])
    for strategy in ORDERS:
        order = strategy(graph, BYTES).steps
        assert order.index("read") < order.index("write")


def test_an_unknown_order_lists_the_known():
    with pytest.raises(UnknownStrategyError, match="depth-first"):
        find_order("random")
