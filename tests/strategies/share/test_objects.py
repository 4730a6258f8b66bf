import dataclasses

import pytest
from hypothesis import given, settings

from arenite.planner.errors import MissingDependencyError, UnsupportedProblemError
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import Strategy, StrategyKind, run
from arenite.planner.placement.verification import verify
from arenite.planner.units import align_up
from arenite.strategies import STRATEGIES
from arenite.strategies.share.mxnet import Mxnet
from arenite.strategies.share.objects import (
    ObjectSharing,
    lay_end_to_end,
    object_sizes,
    order_of_use,
    positional_maxima,
)
from support.brute_force import positional_maxima_of
from support.problems import problem_of, problems

SHARING = [*(s for s in STRATEGIES if isinstance(s, ObjectSharing)), Mxnet((0,)), Mxnet((16,))]

every_sharing = pytest.mark.parametrize(
    "strategy", [pytest.param(s, id=f"{s.name} {dict(s.parameters())}") for s in SHARING]
)


@every_sharing
def test_no_two_tenants_of_an_object_are_live_at_once(strategy: ObjectSharing) -> None:
    @settings(max_examples=100, deadline=None)
    @given(problem=problems())
    def check(problem: Problem) -> None:
        owners: dict[tuple[int, int], str] = {}
        for record, index in zip(problem.records, assignment_of(strategy, problem), strict=True):
            for step in range(record.start, record.end):
                assert owners.setdefault((index, step), record.name) == record.name

    check()


@every_sharing
def test_a_plan_states_the_objects_it_lays_end_to_end(strategy: ObjectSharing) -> None:
    @settings(max_examples=100, deadline=None)
    @given(problem=problems())
    def check(problem: Problem) -> None:
        assignment = assignment_of(strategy, problem)
        plan = strategy(problem)
        verify(problem, plan)
        objects = plan.objects
        assert objects is not None
        assert objects.assignment == tuple(assignment)
        assert set(assignment) == set(range(len(objects.sizes)))
        assert objects.lower_bound == sum(positional_maxima_of(problem))
        assert problem.naive >= objects.total >= objects.lower_bound
        assert plan.height >= objects.total
        for index, size in enumerate(objects.sizes):
            tenants = [i for i, chosen in enumerate(assignment) if chosen == index]
            assert size == max(problem.records[i].size for i in tenants)
            assert len({plan.offsets[i] for i in tenants}) == 1

    check()


@every_sharing
def test_without_alignment_the_height_is_the_total(strategy: ObjectSharing) -> None:
    @settings(max_examples=50, deadline=None)
    @given(problem=problems())
    def check(problem: Problem) -> None:
        records = tuple(dataclasses.replace(record, alignment=1) for record in problem.records)
        assignment_of(strategy, Problem(records))
        plan = strategy(Problem(records))
        assert plan.objects is not None
        assert plan.height == plan.objects.total

    check()


@pytest.mark.parametrize(
    "strategy", [pytest.param(s, id=s.name) for s in STRATEGIES if s.kind is StrategyKind.OBJECTS]
)
def test_fixed_offsets_are_refused(strategy: Strategy) -> None:
    problem = Problem((UsageRecord("a", 8, 0, 1), UsageRecord("b", 8, 0, 1, offset=8)))
    with pytest.raises(UnsupportedProblemError, match="does not place records at fixed offsets"):
        run(strategy, problem)


@given(problem=problems())
def test_positional_maxima_are_those_of_the_profiles(problem: Problem) -> None:
    assert positional_maxima(problem.records) == positional_maxima_of(problem)


@given(problem=problems())
def test_positional_maxima_add_up_to_at_least_the_largest_load(problem: Problem) -> None:
    records = tuple(dataclasses.replace(record, alignment=1) for record in problem.records)
    assert sum(positional_maxima(records)) >= Problem(records).lower_bound


def test_records_are_used_in_the_order_they_start_in() -> None:
    problem = problem_of((1, 2, 3), (1, 0, 1), (1, 2, 4), (1, 0, 9))
    assert order_of_use(problem.records) == [1, 3, 0, 2]


def test_an_object_is_as_large_as_its_largest_tenant() -> None:
    problem = problem_of((4, 0, 1), (9, 0, 1), (6, 1, 2))
    assert object_sizes(problem.records, [0, 1, 0]) == [6, 9]


def test_an_object_starts_where_each_of_its_tenants_may() -> None:
    records = [
        UsageRecord("a", 5, 0, 1),
        UsageRecord("b", 3, 0, 1, alignment=4),
        UsageRecord("c", 3, 1, 2, alignment=16),
        UsageRecord("d", 1, 0, 1),
    ]
    assert list(lay_end_to_end(records, [0, 1, 1, 2], [5, 3, 1])) == [0, align_up(5, 16), 19]


def assignment_of(strategy: ObjectSharing, problem: Problem) -> list[int]:
    try:
        return list(strategy.assign(problem.records))
    except MissingDependencyError as error:
        pytest.skip(str(error))
