from arenite.strategies.place.greedy_by_area import GreedyByArea
from support.small_problems import problem_of


def test_size_times_lifetime_decides() -> None:
    assert GreedyByArea().order(problem_of((9, 0, 1), (3, 0, 4), (4, 1, 4))) == [1, 2, 0]
