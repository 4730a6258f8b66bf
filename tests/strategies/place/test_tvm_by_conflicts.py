from arenite.strategies.place.tvm_by_conflicts import TvmByConflicts
from support.small_problems import problem_of


def test_conflicts_then_size_decide() -> None:
    problem = problem_of((9, 0, 1), (1, 0, 3), (2, 1, 2), (3, 2, 3))
    assert TvmByConflicts().order(problem) == [1, 0, 3, 2]
