"""What every strategy of the table owes its user."""

import dataclasses

import pytest
from hypothesis import given, settings

from arenite.planner.errors import MissingDependencyError, UnsupportedProblemError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import Anytime, Strategy, run
from arenite.planner.placement.verification import verify
from arenite.strategies import STRATEGIES
from support.brute_force import lowest_height, lowest_height_by_offsets
from support.oracle import paint
from support.problems import problems, problems_with_fixed_offsets, problems_with_outlines

EXACT = ("cp-sat", "optimal")


every_strategy = pytest.mark.parametrize(
    "strategy", [pytest.param(strategy, id=strategy.name) for strategy in STRATEGIES]
)
every_search = pytest.mark.parametrize(
    "strategy", [pytest.param(s, id=s.name) for s in STRATEGIES if isinstance(s, Anytime)]
)


@pytest.fixture(autouse=True)
def _its_packages_are_installed(strategy: Strategy) -> None:
    try:
        strategy(Problem((UsageRecord("a", 1, 0, 1),)))
    except MissingDependencyError as error:
        pytest.skip(str(error))


def sample(strategy: Strategy) -> settings:
    return settings(max_examples=60 if strategy.quick else 8, deadline=None)


@every_strategy
def test_a_plan_passes_verification_and_the_painted_grid(strategy: Strategy) -> None:
    @sample(strategy)
    @given(problem=problems())
    def check(problem: Problem) -> None:
        plan = strategy(problem)
        verify(problem, plan)
        paint(problem, plan)
        assert plan.height >= problem.lower_bound
        assert {type(offset) for offset in plan.offsets} <= {int}  # no number of a library's

    check()


@every_strategy
def test_the_same_problem_gives_the_same_plan(strategy: Strategy) -> None:
    @sample(strategy)
    @given(problem=problems())
    def check(problem: Problem) -> None:
        assert strategy(problem) == strategy(problem)

    check()


@every_strategy
def test_no_plan_is_below_the_optimum_and_none_claims_it_wrongly(strategy: Strategy) -> None:
    @sample(strategy)
    @given(problem=problems(max_records=6))
    def check(problem: Problem) -> None:
        optimum = lowest_height(problem)
        plan = strategy(problem)
        assert plan.lower_bound <= optimum <= plan.height
        assert plan.height == optimum or strategy.name not in EXACT
        assert plan.optimal or strategy.name not in EXACT

    check()


@every_strategy
def test_fixed_offsets_are_kept_or_refused(strategy: Strategy) -> None:
    @sample(strategy)
    @given(problem=problems_with_fixed_offsets())
    def check(problem: Problem) -> None:
        if strategy.why_unsupported(problem) is None:
            plan = run(strategy, problem)
            verify(problem, plan)
            paint(problem, plan)
        else:
            with pytest.raises(UnsupportedProblemError, match=strategy.name):
                run(strategy, problem)

    check()


@every_strategy
def test_records_with_outlines_are_placed_and_nothing_is_claimed_wrongly(
    strategy: Strategy,
) -> None:
    @sample(strategy)
    @given(problem=problems_with_outlines())
    def check(problem: Problem) -> None:
        plan = run(strategy, problem)
        verify(problem, plan)
        paint(problem, plan)
        assert plan.lower_bounds == problem.lower_bounds or not problem.has_outlines
        assert plan == run(strategy, problem)

    check()


@every_strategy
def test_no_plan_of_outlines_is_below_the_optimum(strategy: Strategy) -> None:
    @sample(strategy)
    @given(problem=problems_with_outlines(max_records=4, most_bytes=6))
    def check(problem: Problem) -> None:
        optimum = lowest_height_by_offsets(problem)
        plan = run(strategy, problem)
        assert plan.lower_bound <= optimum <= plan.height

    check()


@every_strategy
def test_nothing_needs_no_arena(strategy: Strategy) -> None:
    plan = strategy(Problem(()))
    assert (plan.offsets, plan.height) == ((), 0)


@every_strategy
def test_one_record_lies_on_the_ground(strategy: Strategy) -> None:
    plan = strategy(Problem((UsageRecord("only", 24, 3, 5, alignment=16),)))
    assert (plan.offsets, plan.height) == ((0,), 24)


@every_strategy
def test_the_plan_names_its_strategy(strategy: Strategy) -> None:
    plan = strategy(Problem((UsageRecord("a", 8, 0, 2), UsageRecord("b", 8, 1, 3))))
    quick = {other.name for other in STRATEGIES if other.quick}
    assert plan.strategy in (quick if strategy.name == "best" else {strategy.name})


@every_strategy
def test_no_clock_decides_a_plan(strategy: Strategy) -> None:
    names = {field.name for field in dataclasses.fields(strategy)}
    assert not {name for name in names if "time" in name and name != "raw_time"}


@every_search
def test_a_search_that_is_stopped_at_once_still_has_a_plan(strategy: Strategy) -> None:
    def stop(_best: Plan | None, _lower_bound: int) -> bool:
        return True

    @sample(strategy)
    @given(problem=problems())
    def check(problem: Problem) -> None:
        verify(problem, run(strategy, problem, stop))

    check()
