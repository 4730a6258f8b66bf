from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.strategies.share.executorch import Executorch
from support.problems import problem_of


def test_a_record_goes_to_the_ground_of_the_first_vacant_object() -> None:
    problem = problem_of((9, 0, 1), (8, 0, 1), (7, 1, 2))
    assert Executorch()(problem).offsets == (0, 9, 0)


def test_two_tenants_may_own_parts_of_an_object_at_once() -> None:
    # Objects owned whole would need 10 B and 5 B at the last step.
    plan = Executorch()(problem_of((10, 0, 1), (5, 1, 2), (5, 1, 2)))
    assert (plan.offsets, plan.height) == ((0, 0, 5), 10)


def test_a_vacant_ground_is_preferred_to_room_above_a_tenant() -> None:
    problem = problem_of((10, 0, 1), (6, 0, 1), (5, 1, 2), (4, 1, 2))
    assert Executorch()(problem).offsets == (0, 10, 0, 10)


def test_room_must_be_above_the_highest_tenant() -> None:
    # Above 6 B and 4 B the object of 10 B is full; at step 2 only the upper one lives.
    problem = problem_of((10, 0, 1), (6, 1, 2), (4, 1, 3), (3, 2, 3))
    assert Executorch()(problem).offsets == (0, 0, 6, 10)


def test_tenants_above_others_are_aligned() -> None:
    problem = problem_of((32, 0, 1), (10, 1, 2), (9, 1, 2), alignment=16)
    assert Executorch()(problem).offsets == (0, 0, 16)


def test_an_object_starts_where_each_of_its_tenants_may() -> None:
    records = (
        UsageRecord("a", 9, 0, 1),
        UsageRecord("b", 8, 0, 1),
        UsageRecord("c", 7, 1, 2),
        UsageRecord("d", 6, 1, 2, alignment=16),
    )
    assert Executorch()(Problem(records)).offsets == (0, 16, 0, 16)


def test_no_assignment_is_stated() -> None:
    assert Executorch()(problem_of((8, 0, 1))).objects is None
