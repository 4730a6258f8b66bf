from arenite.strategies.share.objects_by_size import ObjectsBySize
from support.small_problems import problem_of


def test_the_largest_come_first_and_equals_in_the_problems_order() -> None:
    problem = problem_of((8, 0, 1), (9, 0, 1), (8, 0, 1))
    assert ObjectsBySize().assign(problem.records) == [1, 0, 2]


def test_no_object_grows() -> None:
    # 16 B could grow the object of 8 B if that came first.
    plan = ObjectsBySize()(problem_of((8, 0, 1), (16, 1, 2)))
    assert plan.objects is not None
    assert (plan.objects.assignment, plan.objects.sizes) == ((0, 0), (16,))
