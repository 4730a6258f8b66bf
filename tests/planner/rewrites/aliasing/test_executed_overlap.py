"""Results that reach into their operands, over one arena: the same bits as apart."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.placement.problem import PermittedOverlap
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind, Boundary
from arenite.planner.rewrites.aliasing.overlap import permit_overlaps
from arenite.planner.rewrites.aliasing.rewrite import explain, share
from arenite.planner.tensors import DType, TensorKind
from arenite.strategies import find
from support.arena_interpreter import Arena
from support.sliding_kernels import CHANNELS_FIRST, CHANNELS_LAST, images, kernels
from support.tiny_graphs import graph_of, tensor


@st.composite
def networks(draw):
    """Kernels, most of them reading what the one before wrote, and their graph."""
    op_types = draw(st.sampled_from([CHANNELS_LAST, CHANNELS_FIRST]))
    layout = op_types is CHANNELS_LAST
    made = [draw(images())]
    tensors = [tensor("t0", made[0].shape(layout), TensorKind.INPUT, DType.INT64)]
    operators, chosen = [], []
    for number in range(1, draw(st.integers(2, 6))):
        back = draw(st.sampled_from([1, 1, 1, 2]))
        source = max(0, number - back)
        kernel = draw(kernels(made[source], op_types))
        made.append(kernel.result)
        tensors.append(tensor(f"t{number}", kernel.result.shape(layout), dtype=DType.INT64))
        reads = (f"t{source}",)
        if kernel.weights is not None:
            tensors.append(tensor(f"w{number}", kernel.weights, TensorKind.CONSTANT, DType.INT64))
            reads += (f"w{number}",)
        operators.append((kernel.op_type, reads, (f"t{number}",), kernel.attributes))
        chosen.append(kernel)
    names = [f"t{number}" for number in range(len(made))]
    last = draw(st.lists(st.sampled_from(names), max_size=1))
    outputs = tuple(dict.fromkeys([names[-1], *last]))
    return graph_of(tensors, operators, inputs=("t0",), outputs=outputs), chosen


def run(
    graph: Program, chosen, boundary: Boundary, alignment: int, *, overlapping: bool = False
) -> list[np.ndarray]:
    arena = Arena(graph, boundary, alignment, overlapping=overlapping)
    first = arena["t0"].reshape(-1)
    first[...] = np.random.default_rng(1).integers(1, 10**6, first.size)
    for operator, kernel in zip(graph.steps, chosen, strict=True):
        source, result = (
            arena[name].reshape(-1) for name in (operator.inputs[0], operator.outputs[0])
        )
        kernel.run(source, result)
    return [arena[name].copy() for name in graph.output_tensors]


@settings(max_examples=200, deadline=None)
@given(networks(), st.sampled_from(tuple(Boundary)), st.sampled_from([1, 8, 64]))
def test_a_run_with_overlapping_results_gives_the_same_bits(network, boundary, alignment):
    graph, chosen = network
    aliased = share(graph, tuple(AliasKind), boundary, alignment)
    for expected, actual in zip(
        run(graph, chosen, boundary, 1), run(aliased, chosen, boundary, alignment), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


@settings(max_examples=200, deadline=None)
@given(
    networks(),
    st.sampled_from([(), SAFE_KINDS, tuple(AliasKind)]),
    st.sampled_from(tuple(Boundary)),
    st.sampled_from([1, 8, 64]),
)
def test_a_plan_that_takes_the_leave_to_overlap_gives_the_same_bits(
    network, kinds, boundary, alignment
):
    graph, chosen = network
    aliased = share(graph, kinds, boundary, alignment)
    actual = run(aliased, chosen, boundary, alignment, overlapping=True)
    for expected, each in zip(run(graph, chosen, boundary, 1), actual, strict=True):
        np.testing.assert_array_equal(each, expected)


@settings(deadline=None)
@given(networks(), st.sampled_from(tuple(Boundary)))
def test_overlapping_results_never_need_more(network, boundary):
    graph, _ = network
    apart, overlapping = (
        liveness(share(graph, kinds, boundary, 1), boundary=boundary, alignment=1)
        for kinds in (SAFE_KINDS, tuple(AliasKind))
    )
    assert overlapping.lower_bound <= apart.lower_bound


def pointwise(outputs=("b",)) -> Program:
    return graph_of(
        [tensor("x", (1,), TensorKind.INPUT, DType.INT8),
         tensor("a", (1, 8, 8, 4), dtype=DType.INT8),
         tensor("w", (4, 1, 1, 4), TensorKind.CONSTANT, DType.INT8),
         tensor("b", (1, 8, 8, 4), dtype=DType.INT8)],
        [("Make", ("x",), ("a",)), ("CONV_2D", ("a", "w"), ("b",))],
        outputs=outputs,
    )  # fmt: skip


def test_a_pointwise_convolution_nearly_runs_in_place():
    result = explain(pointwise(), [AliasKind.OVERLAP], alignment=1)
    assert result.num_shared == {AliasKind.OVERLAP: 1}
    assert liveness(result.program, alignment=1).lower_bound == 256 + 3 + 1


def test_overlap_is_off_unless_asked_for():
    assert share(pointwise(), SAFE_KINDS, alignment=1) == pointwise()


def test_an_operand_that_is_needed_later_is_not_reached_into():
    (refusal,) = explain(pointwise(("b", "a")), [AliasKind.OVERLAP], alignment=1).refusals
    assert refusal.reason == "'b' and 'a' would need the same bytes at one step"


def test_a_result_may_reach_into_an_operand_that_ends_where_it_begins():
    graph = pointwise()
    problem = permit_overlaps(graph, liveness(graph, alignment=1))
    permissions = {record.name: record.overlaps for record in problem.records if record.overlaps}
    assert permissions == {"b": (PermittedOverlap("a", 256 - 3),)}
    assert find("best")(problem).height == 256 + 3


def test_a_result_may_not_reach_into_an_operand_that_is_needed_later():
    graph = pointwise(("b", "a"))
    problem = liveness(graph, alignment=1)
    assert permit_overlaps(graph, problem) == problem
