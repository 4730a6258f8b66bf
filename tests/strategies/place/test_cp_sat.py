import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings

from arenite.planner.errors import InfeasibleError, MissingDependencyError, SearchLimitError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import verify
from arenite.strategies.place.cp_sat import CpSat
from support.brute_force import lowest_height
from support.problems import problem_of, problems, tiling

pytest.importorskip("ortools")

# 9 B are live at once, yet no plan is lower than 10 B.
ABOVE_THE_LOAD = problem_of(
    (3, 5, 6), (1, 2, 5), (3, 0, 7), (3, 0, 2), (1, 1, 5), (3, 4, 7), (2, 1, 4), (3, 0, 1)
)
HARD = tiling(num_records=300, num_steps=100, height=100_000, seed=3)


def never(_best: Plan | None, _lower_bound: int) -> bool:
    raise AssertionError("no search was needed")


def test_a_height_above_the_load_is_proved_lowest() -> None:
    plan = CpSat()(ABOVE_THE_LOAD)
    verify(ABOVE_THE_LOAD, plan)
    assert (ABOVE_THE_LOAD.lower_bound, plan.height, plan.lower_bound) == (9, 10, 10)
    assert plan.optimal


@settings(max_examples=40, deadline=None)
@given(problem=problems(max_records=6))
def test_a_handful_of_records_is_placed_as_low_as_can_be(problem: Problem) -> None:
    plan = CpSat()(problem)
    assert plan.height == plan.lower_bound == lowest_height(problem)


def test_an_instance_that_defeats_every_greedy_order_is_solved() -> None:
    problem = tiling(num_records=150, num_steps=100, height=100_000, seed=3)
    plan = CpSat()(problem)
    verify(problem, plan)
    assert plan.height == 100_000


def test_only_the_section_that_decides_the_height_is_raised() -> None:
    later = tuple(
        replace(record, name=f"later {record.name}", start=record.start + 7, end=record.end + 7)
        for record in ABOVE_THE_LOAD.records
    )
    problem = Problem((*ABOVE_THE_LOAD.records, *later, UsageRecord("tall", 11, 20, 21)))
    plan = CpSat()(problem)
    verify(problem, plan)
    assert (plan.height, plan.lower_bound) == (11, 11)


def test_nothing_is_searched_when_a_greedy_plan_reaches_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("arenite.strategies.place.cp_sat_model._Model.__init__")
    assert CpSat()(problem_of((5, 0, 2), (4, 1, 3))).optimal
    with pytest.raises(TypeError):
        CpSat()(ABOVE_THE_LOAD)


def test_a_capacity_below_the_load_is_refused_without_a_search() -> None:
    with pytest.raises(InfeasibleError) as caught:
        CpSat().search(ABOVE_THE_LOAD.with_capacity(8), never)
    assert (caught.value.capacity, caught.value.lower_bound) == (8, 9)


def test_a_capacity_that_nothing_fits_is_proved_impossible() -> None:
    with pytest.raises(InfeasibleError) as caught:
        CpSat()(ABOVE_THE_LOAD.with_capacity(9))
    assert (caught.value.capacity, caught.value.lower_bound) == (9, 10)


def test_a_plan_that_just_fits_the_capacity_is_found() -> None:
    problem = ABOVE_THE_LOAD.with_capacity(10)
    plan = CpSat()(problem)
    verify(problem, plan)
    assert plan.height == 10


def test_work_running_out_is_not_impossibility() -> None:
    with pytest.raises(SearchLimitError) as caught:
        CpSat(max_work=0.03)(HARD.with_capacity(100_000))
    assert caught.value.capacity == 100_000


def test_the_bound_and_the_greedy_plan_remain_when_the_work_is_done() -> None:
    plan = CpSat(max_work=0.03)(HARD)
    verify(HARD, plan)
    assert plan.lower_bound == 100_000 < plan.height


def test_the_watcher_is_asked_in_the_callers_thread_and_can_stop_the_search() -> None:
    threads = set()
    bounds = set()
    calls = 0

    def stop(best: Plan | None, lower_bound: int) -> bool:
        nonlocal calls
        assert best is not None
        verify(HARD, best)
        threads.add(threading.get_ident())
        bounds.add(lower_bound)
        calls += 1
        return calls > 3

    begin = time.monotonic()
    plan = CpSat().search(HARD, stop)
    assert time.monotonic() - begin < 20
    verify(HARD, plan)
    assert threads == {threading.get_ident()}
    assert bounds == {100_000}


def test_an_interrupt_while_watching_ends_the_search() -> None:
    calls, threads = 0, set(threading.enumerate())

    def interrupt(_best: Plan | None, _lower_bound: int) -> bool:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        CpSat().search(HARD, interrupt)
    assert set(threading.enumerate()) <= threads


def test_a_fixed_record_is_built_around() -> None:
    # With 8 B fixed at 4, the 4 B below are all that is left under 12 B.
    problem = Problem(
        (
            UsageRecord("fixed", 8, 0, 4, offset=4),
            UsageRecord("b", 4, 0, 1),
            UsageRecord("c", 2, 1, 3),
            UsageRecord("d", 2, 1, 2),
            UsageRecord("e", 2, 2, 4),
            UsageRecord("f", 2, 3, 4),
        )
    )
    plan = CpSat()(problem)
    verify(problem, plan)
    assert plan.height == 12


def test_without_ortools_the_extra_is_named(without) -> None:
    without("ortools.sat.python", forget=["arenite.strategies.place.cp_sat_model"])
    with pytest.raises(MissingDependencyError, match=r"arenite\[solvers\]"):
        CpSat()(ABOVE_THE_LOAD)


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_work"):
        CpSat(max_work=0)
