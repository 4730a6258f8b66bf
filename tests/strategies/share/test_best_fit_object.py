from arenite.planner.problem import Problem, UsageRecord
from arenite.strategies.share.best_fit_object import assign_best_fit


def assigned_last(sizes: list[int], size: int) -> int:
    """Return the object of a record that comes when objects of these sizes are vacant."""
    early = [UsageRecord(str(i), size, 0, 1) for i, size in enumerate(sizes)]
    problem = Problem((*early, UsageRecord("late", size, 1, 2)))
    return assign_best_fit(problem.records, range(len(sizes) + 1))[-1]


def test_the_smallest_object_that_is_large_enough_is_taken() -> None:
    assert assigned_last([30, 10, 20, 5], 9) == 1
    assert assigned_last([30, 10, 20, 5], 10) == 1
    assert assigned_last([30, 10, 20, 5], 11) == 2


def test_when_none_is_large_enough_the_largest_grows() -> None:
    assert assigned_last([10, 30, 20], 31) == 1


def test_the_first_of_equals_is_taken() -> None:
    assert assigned_last([8, 8], 8) == 0
    assert assigned_last([8, 8], 9) == 0


def test_a_grown_object_is_large_enough_from_then_on() -> None:
    records = [UsageRecord(str(i), size, i, i + 1) for i, size in enumerate([8, 9])]
    late = [UsageRecord("x", 10, 0, 2), UsageRecord("y", 9, 2, 3)]
    assert assign_best_fit([*records, *late], range(4)) == [0, 0, 1, 0]


def test_a_record_may_live_between_two_tenants() -> None:
    records = [UsageRecord("a", 8, 0, 2), UsageRecord("b", 8, 5, 7), UsageRecord("c", 8, 2, 5)]
    assert assign_best_fit(records, range(3)) == [0, 0, 0]


def test_a_record_may_not_live_around_a_tenant() -> None:
    records = [UsageRecord("a", 8, 2, 3), UsageRecord("b", 8, 0, 9)]
    assert assign_best_fit(records, range(2)) == [0, 1]
