from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.strategies.place.no_reuse import NoReuse
from support.problems import problem_of


def test_records_lie_end_to_end_even_when_they_never_meet() -> None:
    plan = NoReuse()(problem_of((10, 0, 2), (20, 1, 3), (5, 7, 8)))
    assert (plan.offsets, plan.height) == ((0, 10, 30), 35)


def test_starts_are_aligned_and_the_end_is_not_padded() -> None:
    plan = NoReuse()(problem_of((10, 0, 2), (20, 1, 3), alignment=16))
    assert (plan.offsets, plan.height) == ((0, 16), 36)


def test_the_others_lie_above_the_fixed() -> None:
    problem = Problem((UsageRecord("a", 8, 0, 1), UsageRecord("b", 8, 5, 6, offset=32)))
    assert NoReuse()(problem).offsets == (40, 32)
