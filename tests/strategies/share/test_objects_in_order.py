import pytest

from arenite.strategies.share.objects_in_order import ObjectsInOrder
from support.small_problems import problem_of


@pytest.mark.parametrize(
    ("size", "chosen"),
    [(4, 0), (10, 0), (11, 0), (14, 0), (15, 1), (16, 1), (20, 1), (99, 1)],
)
def test_the_closest_size_is_taken_and_the_larger_when_equally_close(
    size: int, chosen: int
) -> None:
    problem = problem_of((10, 0, 1), (20, 0, 1), (size, 1, 2))
    assert ObjectsInOrder().assign(problem.records) == [0, 1, chosen]


def test_a_smaller_object_grows_and_is_remembered_as_grown() -> None:
    # Once grown to 12 B the first object is the closest to 13 B, ahead of 20 B.
    problem = problem_of((8, 0, 1), (20, 0, 2), (12, 1, 2), (13, 2, 3))
    plan = ObjectsInOrder()(problem)
    assert plan.objects is not None
    assert plan.objects.assignment == (0, 1, 0, 0)
    assert plan.objects.sizes == (13, 20)


@pytest.mark.parametrize(("size", "chosen"), [(8, 0), (7, 0), (9, 1)])
def test_of_equal_sizes_the_first_is_taken_from_above_and_the_last_from_below(
    size: int, chosen: int
) -> None:
    problem = problem_of((8, 0, 1), (8, 0, 1), (size, 1, 2))
    assert ObjectsInOrder().assign(problem.records) == [0, 1, chosen]


def test_an_object_is_made_only_when_none_is_free() -> None:
    problem = problem_of((1, 0, 1), (1000, 1, 2), (1, 2, 3), (1000, 2, 3))
    assert ObjectsInOrder().assign(problem.records) == [0, 0, 0, 1]
