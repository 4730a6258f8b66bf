from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings

from arenite.planner.errors import MissingDependencyError, UnsupportedProblemError
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.strategies.share.min_cost_flow import ObjectsMinCostFlow
from support.problems import problem_of, problems


@given(problem=problems(max_records=6))
@settings(deadline=None)
def test_no_choice_of_predecessors_costs_less(problem: Problem) -> None:
    pytest.importorskip("ortools")
    records = problem.records
    assert cost(records, ObjectsMinCostFlow().assign(records)) == least_cost(records)


def test_every_pair_that_may_share_is_considered() -> None:
    pytest.importorskip("ortools")
    chain = problem_of(*((1, step, step + 1) for step in range(20)))
    assert ObjectsMinCostFlow().assign(chain.records) == [0] * 20


def test_objects_are_numbered_by_their_first_tenants() -> None:
    pytest.importorskip("ortools")
    problem = problem_of((4, 2, 3), (8, 1, 2), (8, 0, 1), (4, 0, 2))
    assert ObjectsMinCostFlow().assign(problem.records) == [1, 0, 0, 1]


def test_sizes_beyond_the_solver_are_refused() -> None:
    pytest.importorskip("ortools")
    records = (UsageRecord("a", 2**61 - 1, 0, 1), UsageRecord("b", 2**61, 1, 2))
    with pytest.raises(UnsupportedProblemError, match="sizes this large"):
        ObjectsMinCostFlow()(Problem(records))


def test_without_ortools_the_extra_is_named(without) -> None:
    without("ortools.graph.python.min_cost_flow")
    with pytest.raises(MissingDependencyError, match=r"arenite\[solvers\]"):
        ObjectsMinCostFlow()(problem_of((8, 0, 1)))


def cost(records: Sequence[UsageRecord], assignment: Sequence[int]) -> int:
    """Return the bytes objects are made of plus those they grow by, tenant to tenant."""
    total = 0
    for number in set(assignment):
        tenants = [record for record, o in zip(records, assignment, strict=True) if o == number]
        tenants.sort(key=lambda record: record.start)
        total += tenants[0].size
        total += sum(max(0, later.size - earlier.size) for earlier, later in pairwise(tenants))
    return total


def least_cost(records: Sequence[UsageRecord], index: int = 0, taken: int = 0) -> int:
    """Return the least cost of predecessors from `index` on, trying every choice."""
    if index == len(records):
        return 0
    record = records[index]
    best = record.size + least_cost(records, index + 1, taken)
    for i, earlier in enumerate(records):
        if earlier.end <= record.start and not taken >> i & 1:
            growth = max(0, record.size - earlier.size)
            best = min(best, growth + least_cost(records, index + 1, taken | 1 << i))
    return best
