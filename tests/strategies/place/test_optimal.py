from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from arenite.planner.errors import InfeasibleError, SearchLimitError, UnsupportedProblemError
from arenite.planner.importers.csv import read_csv
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.strategies import deadline
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from support.brute_force import lowest_height
from support.problems import problems, problems_with_fixed_offsets, tiling
from support.shared_material import shared


@settings(max_examples=300, deadline=None)
@given(problems(max_records=6) | problems_with_fixed_offsets(max_records=6))
def test_it_proves_the_height_that_brute_force_finds(problem):
    plan = Optimal()(problem)
    verify(problem, plan)
    assert plan.optimal
    assert plan.height == lowest_height(problem)


@settings(max_examples=200, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(problems(max_records=10) | problems_with_fixed_offsets(max_records=10))
def test_it_agrees_with_cp_sat(problem):
    pytest.importorskip("ortools")
    ours, theirs = Optimal()(problem), CpSat(max_work=0.15)(problem)
    assert ours.optimal
    assert theirs.lower_bound <= ours.height <= theirs.height
    assert ours.height == theirs.height or not theirs.optimal


@settings(max_examples=50, deadline=None)
@given(problems(max_records=6), st.data())
def test_a_capacity_is_met_or_refuted(problem, data):
    lowest = lowest_height(problem)
    capacity = data.draw(st.integers(max(0, lowest - 3), lowest + 3))
    limited = problem.with_capacity(capacity)
    if capacity >= lowest:
        assert Optimal()(limited).height == lowest
    else:
        with pytest.raises(InfeasibleError) as caught:
            Optimal()(limited)
        assert capacity < caught.value.lower_bound <= lowest


@pytest.mark.parametrize("seed", range(4))
def test_it_fills_a_rectangle_that_was_cut_into_pieces(seed):
    problem = tiling(60, 40, 1000, seed)
    plan = Optimal()(problem)
    verify(problem, plan)
    assert plan.height == 1000
    assert GreedyBySize()(problem).height > 1000


def open_problem():
    """Pieces of a rectangle, too many to be put together again soon."""
    return tiling(200, 40, 1_000_000_007, seed=1)


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
    problem = open_problem().with_capacity(1_000_000_007)
    with pytest.raises(SearchLimitError, match="before the search ended, though one may exist"):
        run(Optimal(max_nodes=None), problem, deadline(0.1))


def test_the_same_seed_gives_the_same_plan():
    strategy = Optimal(seed=3, max_nodes=100_000)
    plan = strategy(open_problem())
    assert not plan.optimal
    assert plan == strategy(open_problem())
    assert plan.offsets != replace(strategy, seed=4)(open_problem()).offsets


@pytest.mark.parametrize("num_records", [500, 2_000])
def test_it_improves_on_greedy_far_from_a_proof(num_records):
    problem = tiling(num_records, num_records // 10, 1_000_000_007, seed=num_records)
    plan = Optimal(max_nodes=300 * num_records)(problem)
    verify(problem, plan)
    assert not plan.optimal
    assert plan.gap < 0.7 * GreedyBySize()(problem).gap


def test_records_in_each_others_way_are_refused():
    problem = Problem((UsageRecord("a", 4, 0, 2, offset=0), UsageRecord("b", 4, 1, 3, offset=2)))
    with pytest.raises(UnsupportedProblemError, match="'a' and 'b' where they are fixed"):
        run(Optimal(), problem)


def test_a_fixed_record_is_built_around():
    # Under 12 B, the 4 B below the fixed record are all that is left for the other.
    fixed = UsageRecord("fixed", 8, 0, 4, offset=4)
    problem = Problem((fixed, UsageRecord("a", 4, 1, 3), UsageRecord("b", 12, 4, 5)))
    plan = Optimal()(problem)
    assert (plan.height, plan.optimal, plan.offsets[:2]) == (12, True, (4, 0))


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
    problem = read_csv(shared(f"instances/minimalloc/{name}.csv")).with_capacity(None)
    plan = run(Optimal(max_nodes=None), problem, deadline(60))
    verify(problem, plan)
    assert (plan.height, plan.optimal) == (optimum, True)
