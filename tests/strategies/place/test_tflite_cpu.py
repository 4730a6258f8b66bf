from arenite.strategies.place.tflite_cpu import TfliteCpu
from support.small_problems import problem_of


def test_records_of_the_whole_run_come_first_in_the_problems_order() -> None:
    problem = problem_of((9, 0, 3), (1, 0, 4), (5, 0, 4), (8, 1, 4))
    assert TfliteCpu().order(problem) == [1, 2, 0, 3]


def test_the_others_go_by_size_then_start_then_index() -> None:
    problem = problem_of((4, 3, 5), (4, 1, 2), (6, 4, 5), (4, 1, 3))
    assert TfliteCpu().order(problem) == [2, 1, 3, 0]
