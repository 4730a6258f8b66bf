from dataclasses import replace

import pytest
from hypothesis import given, settings

from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.strategies import STRATEGIES
from arenite.strategies.place.compaction import compacted
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from support.oracle import paint
from support.problems import problems_with_fixed_offsets, problems_with_overlaps


@settings(max_examples=200, deadline=None)
@given(problems_with_overlaps() | problems_with_fixed_offsets())
def test_the_plan_becomes_no_higher(problem):
    before = GreedyBySize()(problem).offsets
    after = compacted(problem, before)
    plan = Plan.of(problem, after, "compacted")
    verify(problem, plan)
    paint(problem, plan)
    assert plan.height <= Plan.of(problem, before, "greedy").height


@settings(max_examples=200, deadline=None)
@given(problems_with_overlaps())
def test_a_search_that_makes_use_of_overlaps_is_right(problem):
    plan = Optimal()(problem)
    verify(problem, plan)
    paint(problem, plan)
    bare = Problem(tuple(replace(record, overlaps=()) for record in problem.records))
    assert plan.height <= Optimal()(bare).height


def test_a_result_moves_down_into_its_operand():
    overlap = PermittedOverlap("operand", 8)
    problem = Problem(
        (UsageRecord("operand", 32, 0, 2), UsageRecord("result", 16, 1, 3, overlaps=(overlap,)))
    )
    assert compacted(problem, (16, 0)) == (8, 0)
    plan = Optimal()(replace(problem, records=tuple(reversed(problem.records))))
    assert (plan.height, plan.optimal) == (40, True)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_every_strategy_is_right_where_records_may_overlap(strategy):
    @settings(max_examples=20, deadline=None)
    @given(problems_with_overlaps(max_records=8))
    def check(problem):
        if strategy.why_unsupported(problem) is None:
            plan = run(strategy, problem)
            verify(problem, plan)
            paint(problem, plan)

    check()
