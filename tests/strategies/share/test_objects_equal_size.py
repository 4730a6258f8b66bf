from arenite.strategies.share.objects_equal_size import ObjectsEqualSize
from support.small_problems import problem_of


def test_only_exactly_the_same_size_is_reused() -> None:
    problem = problem_of((8, 0, 1), (7, 1, 2), (9, 1, 2), (8, 1, 2))
    assert ObjectsEqualSize().assign(problem.records) == [0, 1, 2, 0]


def test_the_object_freed_last_is_reused_first() -> None:
    problem = problem_of((8, 0, 2), (8, 0, 1), (8, 2, 3), (8, 2, 3))
    assert ObjectsEqualSize().assign(problem.records) == [0, 1, 0, 1]


def test_records_out_of_order_are_walked_by_start() -> None:
    problem = problem_of((8, 1, 2), (8, 0, 1), (8, 2, 3))
    assert ObjectsEqualSize().assign(problem.records) == [0, 0, 0]
