from arenite.strategies.place.greedy_by_lifetime import GreedyByLifetime
from support.small_problems import problem_of


def test_the_longest_lived_come_first_and_equals_by_size() -> None:
    problem = problem_of((9, 0, 1), (3, 0, 4), (4, 1, 5), (4, 2, 6))
    assert GreedyByLifetime().order(problem) == [2, 3, 1, 0]
