from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.errors import InfeasibleError, SearchLimitError, UnsupportedProblemError
from arenite.planner.importers.csv import read_csv
from arenite.planner.problem import Problem, UsageRecord
from arenite.planner.strategy import run
from arenite.planner.verify import verify
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from brute_force import lowest_height
from problems import problems
from shared_material import shared
from tilings import tiling


@settings(max_examples=300, deadline=None)
@given(problems(max_records=6))
def test_it_proves_the_height_that_brute_force_finds(problem):
    plan = Optimal()(problem)
    verify(problem, plan)
    assert plan.optimal
    assert plan.height == lowest_height(problem)


@settings(max_examples=50, deadline=None)
@given(problems(max_records=6), st.data())
def test_a_capacity_is_met_or_refuted(problem, data):
    lowest = lowest_height(problem)
    capacity = data.draw(st.integers(max(0, lowest - 3), lowest + 3))
    limited = replace(problem, capacity=capacity)
    if capacity >= lowest:
        assert Optimal()(limited).height == lowest
    else:
        with pytest.raises(InfeasibleError) as caught:
            Optimal()(limited)
        assert caught.value.lower_bound == lowest


@pytest.mark.parametrize("seed", range(4))
def test_it_fills_a_rectangle_that_was_cut_into_pieces(seed):
    problem = tiling(60, 40, 1000, seed)
    plan = Optimal()(problem)
    verify(problem, plan)
    assert plan.height == 1000
    assert GreedyBySize()(problem).height > 1000


def open_problem():
    """Pieces of two rectangles with a record that fits over neither: no proof in no time."""
    pieces = tiling(150, 60, 10_007, seed=1).records
    return Problem((*pieces, UsageRecord("odd", 5, 3, 57)))


def test_the_best_plan_so_far_is_kept_when_it_is_stopped():
    seen = []

    def watch(best, lower_bound):
        seen.append((best.height, lower_bound))
        return len(seen) >= 3

    problem = open_problem()
    plan = run(Optimal(), problem, watch)
    verify(problem, plan)
    assert len(seen) == 3
    assert plan.height <= GreedyBySize()(problem).height


def test_time_running_out_is_not_impossibility():
    problem = replace(open_problem(), capacity=10_012)
    with pytest.raises(SearchLimitError, match="no plan within 10012 B was found in the time"):
        Optimal(time_limit_s=0.1)(problem)


def test_the_same_seed_gives_the_same_plan():
    problem = tiling(60, 40, 1000, seed=5)
    assert Optimal(seed=3)(problem) == Optimal(seed=3)(problem)


def test_sizes_beyond_64_bits_are_refused_not_wrapped():
    huge = Problem(tuple(UsageRecord(f"r{i}", 1 << 62, i, i + 3) for i in range(4)))
    with pytest.raises(UnsupportedProblemError, match="less than 2"):
        run(Optimal(), huge)
    plan = GreedyBySize()(huge)
    verify(huge, plan)
    assert plan.height == 3 << 62


@pytest.mark.parametrize(
    ("name", "optimum"),
    [("A.1048576", 1_048_576), ("C.1048576", 1_039_360), ("E.1048576", 1_048_576),
     ("G.1048576", 1_048_576), ("I.1048576", 1_048_576), ("K.1048576", 1_048_576),
     ("a.6", 6), ("b.6", 6), ("c.8", 8), ("d.9", 9), ("e.12", 12), ("f.14", 14), ("g.7", 7)],
)  # fmt: skip
def test_hard_instances_are_proved_optimal(name, optimum):
    problem = replace(read_csv(shared(f"instances/minimalloc/{name}.csv")), capacity=None)
    plan = Optimal()(problem)
    verify(problem, plan)
    assert (plan.height, plan.optimal) == (optimum, True)
