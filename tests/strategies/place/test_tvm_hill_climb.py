import random

import pytest
from hypothesis import given, settings

from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.verify import verify
from arenite.strategies.place.tvm_hill_climb import TvmHillClimb, _Climb
from support.problems import problems
from support.small_problems import problem_of
from support.tilings import tiling

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
