import random

import pytest
from hypothesis import given, settings

from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import Strategy
from arenite.planner.placement.verification import verify
from arenite.strategies.place.tvm import TvmByConflicts, TvmBySize, TvmHillClimb, _Climb
from support.problems import problem_of, problems, tiling


def test_size_then_conflicts_decide() -> None:
    problem = problem_of((4, 0, 1), (4, 2, 5), (9, 4, 5), (1, 2, 3))
    assert TvmBySize().order(problem) == [2, 1, 0, 3]


# TVM 0.14, test_tir_usmp_algo.py.
@pytest.mark.parametrize("strategy", [TvmBySize(), TvmByConflicts()])
def test_a_linear_graph_needs_its_two_largest_neighbours(strategy: Strategy) -> None:
    sizes = (10, 20, 100, 40, 50, 50)
    problem = problem_of(*((size, step, step + 2) for step, size in enumerate(sizes)))
    assert strategy(problem).height == 140


@pytest.mark.parametrize("strategy", [TvmBySize(), TvmByConflicts()])
def test_among_equals_the_later_name_comes_first(strategy: Strategy) -> None:
    assert strategy(problem_of((10, 0, 1), (10, 0, 1), (10, 0, 1))).offsets == (20, 10, 0)


def test_names_compare_as_strings() -> None:
    problem = Problem((UsageRecord("10", 4, 0, 1), UsageRecord("9", 4, 0, 1)))
    assert TvmBySize().order(problem) == [1, 0]


def test_gaps_are_never_used() -> None:
    # The 2 B would fit under the 4 B that float above the dead 6 B.
    plan = TvmBySize()(problem_of((6, 0, 2), (4, 1, 3), (2, 2, 3)))
    assert plan.offsets == (0, 6, 10)


def test_conflicts_then_size_decide() -> None:
    problem = problem_of((9, 0, 1), (1, 0, 3), (2, 1, 2), (3, 2, 3))
    assert TvmByConflicts().order(problem) == [1, 0, 3, 2]


CLIMBABLE = problem_of((5, 0, 1), (3, 1, 4), (5, 2, 3), (3, 3, 5), (3, 3, 5))


@settings(deadline=None)
@given(problem=problems())
def test_it_is_never_above_its_first_attempt(problem: Problem) -> None:
    assert TvmHillClimb(attempts=40)(problem).height <= TvmHillClimb(attempts=1)(problem).height


@settings(deadline=None)
@given(problem=problems())
def test_more_attempts_are_never_worse(problem: Problem) -> None:
    heights = [TvmHillClimb(attempts=n)(problem).height for n in (1, 5, 25)]
    assert heights == sorted(heights, reverse=True)


def test_swaps_reach_a_bound_that_the_first_attempt_misses() -> None:
    assert TvmHillClimb(attempts=1)(CLIMBABLE).height == 11
    plan = TvmHillClimb()(CLIMBABLE)
    verify(CLIMBABLE, plan)
    assert plan.height == CLIMBABLE.lower_bound == 9


def test_what_is_told_never_rises_and_its_last_is_returned() -> None:
    problem = tiling(num_records=40, num_steps=30, height=1000)
    told: list[Plan | None] = []

    def watch(best: Plan | None, _lower_bound: int) -> bool:
        told.append(best)
        return len(told) == 200

    plan = TvmHillClimb().search(problem, watch)
    heights = [best.height for best in told if best is not None]
    assert len(heights) == 200
    assert heights == sorted(heights, reverse=True)
    assert heights[0] > heights[-1]
    assert plan == told[-1]


def test_a_higher_plan_may_be_accepted_but_is_not_returned() -> None:
    problem = tiling(num_records=12, num_steps=30, height=1000, seed=1)
    climb = _Climb(problem, random.Random(5))
    heights = [climb.height]
    for attempt in range(1, 6):
        climb.step(attempt)
        heights.append(climb.height)
    assert heights[-1] > min(heights)
    assert TvmHillClimb(seed=5, attempts=6)(problem).height == min(heights)


def test_the_seed_decides_and_is_stated() -> None:
    problem = tiling(num_records=40, num_steps=30, height=1000)
    plans = {TvmHillClimb(seed, attempts=60)(problem).offsets for seed in range(4)}
    assert len(plans) > 1
    assert TvmHillClimb(seed=3)(CLIMBABLE).parameters == {"seed": 3, "attempts": 500}


def test_no_attempt_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        TvmHillClimb(attempts=0)
