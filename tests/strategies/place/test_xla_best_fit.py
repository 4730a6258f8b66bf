from arenite.strategies.place.xla_best_fit import XlaBestFit
from support.small_problems import problem_of


def test_the_largest_come_first_and_equals_by_lifetime_then_index() -> None:
    problem = problem_of((4, 0, 1), (4, 0, 3), (9, 2, 3), (4, 3, 6))
    assert XlaBestFit().order(problem) == [2, 1, 3, 0]
