import pytest

from arenite.planner.problem import Problem, UsageRecord
from arenite.strategies.place.tflm import Tflm
from support.small_problems import problem_of


def test_the_largest_come_first_and_of_equals_the_last() -> None:
    assert Tflm().order(problem_of((8, 0, 1), (9, 0, 1), (8, 0, 1))) == [1, 2, 0]


# tflite-micro, greedy_memory_planner_test.cc; lifetimes are closed there.
@pytest.mark.parametrize(
    ("records", "height"),
    [
        ([(10, 0, 2), (20, 2, 4)], 20),
        ([(10, 0, 2), (20, 1, 3), (30, 2, 4), (40, 3, 5), (50, 0, 2)], 90),
        ([(100, 0, 2), (50, 2, 4), (20, 1, 3)], 120),
    ],
)
def test_heights_are_those_of_upstreams_tests(
    records: list[tuple[int, int, int]], height: int
) -> None:
    assert Tflm()(problem_of(*records)).height == height


def test_offsets_are_those_of_upstreams_test() -> None:
    problem = problem_of((10, 0, 2), (20, 1, 3), (30, 2, 4), (40, 3, 5), (50, 0, 2))
    assert Tflm()(problem).offsets == (50, 70, 40, 0, 0)


def test_the_lowest_gap_is_taken_though_a_tighter_one_exists() -> None:
    problem = Problem(
        (
            UsageRecord("a", 4, 0, 1, offset=16),
            UsageRecord("b", 4, 0, 1, offset=26),
            UsageRecord("c", 6, 0, 1),
        )
    )
    assert Tflm()(problem).offsets[2] == 0
