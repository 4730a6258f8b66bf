import time
from dataclasses import replace

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


def test_many_views_of_one_tensor_take_linear_time():
    """As of a tall tensor in bands: each turn reads a view of some rows of it."""
    rows = 30_000
    views = [replace(tensor(f"row {row}", (1,)), alias=Alias("x", 4 * row)) for row in range(rows)]
    x, y = tensor("x", (rows,), TensorKind.INPUT), tensor("y", (1,), TensorKind.OUTPUT)
    program = graph_of([x, *views, y], [("Add", ("row 0", "row 1"), ("y",))])
    begun = time.process_time()
    assert share(program, SAFE_KINDS).root("row 7") == ("x", 28)
    assert time.process_time() - begun < 10  # a minute if each were compared with all others
