import pytest

from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.strategy import Strategy
from arenite.strategies.place.tvm_by_conflicts import TvmByConflicts
from arenite.strategies.place.tvm_by_size import TvmBySize
from support.small_problems import problem_of


def test_size_then_conflicts_decide() -> None:
    problem = problem_of((4, 0, 1), (4, 2, 5), (9, 4, 5), (1, 2, 3))
    assert TvmBySize().order(problem) == [2, 1, 0, 3]


# TVM 0.14, test_tir_usmp_algo.py.
@pytest.mark.parametrize("strategy", [TvmBySize(), TvmByConflicts()])
def test_a_linear_graph_needs_its_two_largest_neighbours(strategy: Strategy) -> None:
    sizes = (10, 20, 100, 40, 50, 50)
    problem = problem_of(*((size, step, step + 2) for step, size in enumerate(sizes)))
    assert strategy(problem).height == 140


@pytest.mark.parametrize("strategy", [TvmBySize(), TvmByConflicts()])
def test_among_equals_the_later_name_comes_first(strategy: Strategy) -> None:
    assert strategy(problem_of((10, 0, 1), (10, 0, 1), (10, 0, 1))).offsets == (20, 10, 0)


def test_names_compare_as_strings() -> None:
    problem = Problem((UsageRecord("10", 4, 0, 1), UsageRecord("9", 4, 0, 1)))
    assert TvmBySize().order(problem) == [1, 0]


def test_gaps_are_never_used() -> None:
    # The 2 B would fit under the 4 B that float above the dead 6 B.
    plan = TvmBySize()(problem_of((6, 0, 2), (4, 1, 3), (2, 2, 3)))
    assert plan.offsets == (0, 6, 10)
