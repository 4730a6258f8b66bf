import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.strategies.share.best_fit import (
    ObjectsByBreadth,
    ObjectsBySize,
    Tenancy,
    assign_best_fit,
)
from support.problems import problem_of, problems


def test_nothing_is_vacant_before_there_are_objects() -> None:
    assert Tenancy(problem_of((8, 0, 1)).records).vacant(0).tolist() == []


@given(problem=problems(), data=st.data())
def test_an_object_is_vacant_unless_a_tenant_is_met(problem: Problem, data: st.DataObject) -> None:
    records = problem.records
    tenancy = Tenancy(records)
    tenants: list[list[int]] = []
    for index, record in enumerate(records):
        vacant = [
            number
            for number, inside in enumerate(tenants)
            if not any(record.meets(records[other]) for other in inside)
        ]
        assert tenancy.vacant(index).tolist() == vacant
        tops = np.arange(1, len(records) + 1)
        assert tenancy.highest(index, tops).tolist() == [
            max((other + 1 for other in inside if record.meets(records[other])), default=0)
            for inside in tenants
        ]
        if data.draw(st.booleans()) or not tenants:
            assert tenancy.assign(index, None) == len(tenants)
            tenants.append([index])
        else:
            chosen = data.draw(st.integers(0, len(tenants) - 1))
            assert tenancy.assign(index, chosen) == chosen
            tenants[chosen].append(index)
    by_object = enumerate(tenants)
    expected = {index: number for number, inside in by_object for index in inside}
    assert dict(enumerate(tenancy.assignment)) == expected


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


def test_the_largest_come_first_and_equals_in_the_problems_order() -> None:
    problem = problem_of((8, 0, 1), (9, 0, 1), (8, 0, 1))
    assert ObjectsBySize().assign(problem.records) == [1, 0, 2]


def test_no_object_grows() -> None:
    # 16 B could grow the object of 8 B if that came first.
    plan = ObjectsBySize()(problem_of((8, 0, 1), (16, 1, 2)))
    assert plan.objects is not None
    assert (plan.objects.assignment, plan.objects.sizes) == ((0, 0), (16,))


def test_the_records_of_the_heaviest_step_come_first() -> None:
    # Step 1 holds 10 B, step 0 only the larger record of 9 B.
    problem = problem_of((9, 0, 1), (4, 1, 2), (6, 1, 2))
    assert ObjectsByBreadth().assign(problem.records) == [0, 1, 0]


def test_objects_made_at_the_heaviest_step_grow_later() -> None:
    plan = ObjectsByBreadth()(problem_of((9, 0, 1), (4, 1, 2), (6, 1, 2)))
    assert plan.objects is not None
    assert plan.objects.sizes == (9, 4)
