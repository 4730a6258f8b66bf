from arenite.strategies.place.greedy_by_breadth import GreedyByBreadth
from support.small_problems import problem_of


def test_the_records_of_the_heaviest_step_come_first() -> None:
    # The largest record lives alone; the two others together are heavier.
    problem = problem_of((10, 0, 1), (6, 1, 2), (7, 1, 2))
    assert GreedyByBreadth().order(problem) == [2, 1, 0]


def test_of_equally_heavy_steps_the_lower_comes_first() -> None:
    assert GreedyByBreadth().order(problem_of((6, 4, 5), (6, 2, 3))) == [1, 0]
