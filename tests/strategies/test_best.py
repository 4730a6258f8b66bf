import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.importers.csv import read_csv
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.strategies import Best, deadline, known
from arenite.strategies import best as best_module
from arenite.strategies.base import native
from arenite.strategies.base.lowest import lowest_plan
from arenite.strategies.place.no_reuse import NoReuse
from arenite.strategies.place.one_pass import GreedyBySize, TflmGreedy
from arenite.strategies.place.strip_packing import StripPacking
from support.banded import mobilenet_v1
from support.problems import problem_of, problems, tiling

INSTANCES = Path(__file__).parents[2] / "assets" / "instances"

# No reuse needs 16 B, greedy by size 12 B, strip packing the 10 B that are live at once.
UNEQUAL = problem_of((2, 4, 6), (5, 2, 4), (3, 1, 5), (4, 5, 6), (1, 1, 7), (1, 2, 7))


@given(problem=problems())
def test_no_quick_strategy_is_lower(problem: Problem) -> None:
    best = Best()(problem)
    assert best.height <= min(
        strategy(problem).height
        for strategy in known().values()
        if strategy.quick and strategy.why_unsupported(problem) is None
    )


def test_a_short_search_goes_below_the_quick_strategies() -> None:
    problem = tiling(60, 40, 1000, seed=1)
    quick = [strategy for strategy in known().values() if strategy.quick]
    lowest = lowest_plan(quick, problem)
    assert lowest is not None
    best = Best()(problem)
    verify(problem, best)
    assert best.height == 1000 < lowest.height
    assert (best.strategy, best.parameters["max_nodes"]) == ("optimal", 500_000)
    assert Best()(problem) == best


SHORT = Best(max_nodes=1)
"""Its short search ends before it finds anything."""


def test_it_searches_until_the_capacity_is_met_and_no_longer() -> None:
    problem = tiling(200, 40, 1_000_000_007, seed=1)
    start = SHORT(problem).height
    capacity = (start + problem.lower_bound) // 2
    limited = problem.with_capacity(capacity)
    plan = SHORT(limited)
    verify(limited, plan)
    assert problem.lower_bound < plan.height <= capacity < start
    assert SHORT(limited) == plan


def test_it_searches_until_it_is_proved_that_nothing_fits() -> None:
    fixed = UsageRecord("fixed", 4, 0, 2, offset=4)
    problem = Problem((fixed, *problem_of((3, 0, 1), (3, 0, 2), (3, 1, 2)).records))
    plan = SHORT(problem.with_capacity(10))
    assert plan.lower_bound == plan.height == 11


def test_nodes_and_watchers_end_the_search_for_the_capacity() -> None:
    problem = tiling(200, 40, 1_000_000_007, seed=1).with_capacity(1_000_000_007)
    start = lowest_plan(best_module.quick_strategies(), problem)
    assert start is not None
    assert replace(SHORT, max_nodes_to_fit=1)(problem).height == start.height
    stopped = run(replace(SHORT, max_nodes_to_fit=None), problem, deadline(0.1))
    assert problem.lower_bound < stopped.height <= start.height


@pytest.mark.parametrize("name", ["training-60b.1793024", "tiling-220a.262144"])
def test_the_short_search_fills_what_one_pass_cannot(name: str) -> None:
    problem = read_csv(INSTANCES / f"{name}.csv").with_capacity(None)
    plan = Best()(problem)
    verify(problem, plan)
    assert plan.optimal


def test_without_a_limit_of_nodes_it_searches_until_it_is_stopped() -> None:
    problem = tiling(200, 40, 1_000_000_007, seed=1)
    unlimited, seen = Best(max_nodes=None), list[str]()

    def watch(best: Plan | None, _lower_bound: int) -> bool:
        seen.append("" if best is None else best.strategy)
        return seen.count("optimal") == 3

    plan = run(unlimited, problem, watch)
    verify(problem, plan)
    assert seen[-3:] == ["optimal"] * 3
    assert not plan.optimal


def test_records_that_meet_few_others_do_not_limit_the_nodes() -> None:
    """States live throughout, so no step parts the records of joint models."""
    generator = random.Random(1)
    steps = [
        UsageRecord(
            f"t{start}", 64 * generator.randrange(1, 4_000), start,
            start + generator.randrange(2, 14),
        )
        for start in range(1_000)
    ]  # fmt: skip
    states = [UsageRecord(f"state {each}", 64 * 97 * each, 0, 1_014) for each in range(1, 6)]
    plan = Best()(Problem((*steps, *states)))
    assert plan.optimal
    assert (plan.strategy, plan.parameters["max_nodes"]) == ("optimal", 500_000)


def test_a_watcher_that_stops_it_spares_the_search() -> None:
    problem = tiling(60, 40, 1000, seed=1)
    found = Best().search(problem, lambda _best, _bound: True)
    assert found == GreedyBySize()(problem)
    assert found.height < NoReuse()(problem).height


def test_the_first_of_equals_wins() -> None:
    by_size, tflm = GreedyBySize()(UNEQUAL), TflmGreedy()(UNEQUAL)
    assert by_size.height == tflm.height
    assert lowest_plan((NoReuse(), TflmGreedy(), GreedyBySize()), UNEQUAL) == tflm
    assert lowest_plan((NoReuse(), GreedyBySize(), TflmGreedy()), UNEQUAL) == by_size


def test_a_plan_at_the_bound_ends_the_search() -> None:
    problem = Problem((UsageRecord("a", 8, 0, 1),))
    seen: list[Plan | None] = []

    def watch(best: Plan | None, _lower_bound: int) -> bool:
        seen.append(best)
        return False

    lowest_plan((NoReuse(), TflmGreedy(), GreedyBySize()), problem, watch)
    assert len(seen) == 1


def test_it_tells_the_lowest_so_far_after_each_strategy() -> None:
    heights = []

    def watch(best: Plan | None, _lower_bound: int) -> bool:
        assert best is not None
        heights.append(best.height)
        return False

    lowest_plan((NoReuse(), GreedyBySize(), StripPacking()), UNEQUAL, watch)
    assert heights == [16, 12, 10]


def test_a_watcher_can_stop_it_after_the_one_behind_the_baseline() -> None:
    strategies = (NoReuse(), GreedyBySize(), StripPacking())
    plan = lowest_plan(strategies, UNEQUAL, lambda _best, _bound: True)
    assert plan == GreedyBySize()(UNEQUAL)


def test_a_strategy_that_does_not_support_the_problem_is_left_out() -> None:
    problem = Problem((UsageRecord("a", 8, 0, 1, offset=8),))
    assert lowest_plan((StripPacking(),), problem) is None


def test_no_strategy_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_module, "quick_strategies", list)
    with pytest.raises(UnsupportedProblemError):
        Best()(UNEQUAL)


needs_core = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")


@needs_core
def test_records_with_outlines_are_placed_by_them() -> None:
    problem = mobilenet_v1(96, 0.25, channels=1).problem()
    best = run(Best(), problem)
    verify(problem, best)
    assert (best.strategy, best.optimal) == ("stairs", True)
    assert best.height < problem.hulls().lower_bound


@needs_core
def test_rectangles_are_tried_where_they_may_be_lower() -> None:
    outline = (Stair(0, 2, 8, 9), Stair(2, 2, 8, 11))
    problem = Problem((*UNEQUAL.records, UsageRecord("image", 4, 8, 11, outline=outline)))
    seen: list[str] = []

    def watch(best: Plan | None, _lower_bound: int) -> bool:
        seen.append("" if best is None else best.strategy)
        return False

    best = run(Best(), problem, watch)
    verify(problem, best)
    assert best.height == 10
    assert set(seen) == {"stairs"}


@pytest.mark.usefixtures("without_core")
def test_without_the_core_outlines_are_placed_as_rectangles() -> None:
    problem = mobilenet_v1(32, 0.25).problem()
    plan = run(Best(), problem)
    verify(problem, plan)
    assert plan.height >= problem.hulls().lower_bound > plan.lower_bound == problem.lower_bound
    assert Best().why_not_searched(problem) is not None
