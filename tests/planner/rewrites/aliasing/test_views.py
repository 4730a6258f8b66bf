import pytest

from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind
from arenite.planner.rewrites.aliasing.rewrite import explain, share
from arenite.planner.tensors import Alias, TensorKind
from support.tiny_graphs import chain, graph_of, tensor


def test_a_view_lies_in_the_storage_of_its_source():
    aliased = share(chain("Reshape", (8,), (2, 4)), [AliasKind.VIEWS])
    assert aliased.tensors["b"].alias == Alias("a")
    assert {record.name for record in liveness(aliased).records} == {"x", "a", "y"}


def test_views_have_an_off_switch():
    graph = chain("Reshape")
    others = [kind for kind in AliasKind if kind is not AliasKind.VIEWS]
    assert share(graph, others) == graph
    assert share(graph, []) == graph


@pytest.mark.parametrize(
    ("kind", "reason"), [(TensorKind.CONSTANT, "no storage"), (TensorKind.STATE, "may change")]
)
def test_constants_and_states_are_not_viewed_and_the_reason_is_told(kind, reason):
    graph = graph_of(
        [tensor("c", kind=kind), tensor("y", kind=TensorKind.OUTPUT)],
        [("Reshape", ("c",), ("y",))],
        inputs=(),
    )
    result = explain(graph, SAFE_KINDS)
    assert result.program.tensors["y"].alias is None
    (refusal,) = result.refusals
    assert reason in refusal.reason


def test_a_result_of_another_size_is_no_view():
    (refusal,) = explain(chain("Reshape", (8,), (2, 2)), [AliasKind.VIEWS]).refusals
    assert (refusal.tensor, refusal.reason) == ("b", "the sizes differ")
