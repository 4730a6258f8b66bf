import pytest
from hypothesis import given, settings

from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.strategies import deadline
from arenite.strategies.base import native
from arenite.strategies.place import stairs as module
from arenite.strategies.place.optimal import Optimal
from arenite.strategies.place.stairs import Stairs
from support.banded import mobilenet_v1, mobilenet_v2, resnet_8, u_net
from support.brute_force import lowest_height_by_offsets
from support.problems import problems_with_outlines

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

PERSON_DETECT = mobilenet_v1(96, 0.25, channels=1).problem()
DOWN = (Stair(0, 8, 0, 1), Stair(8, 8, 0, 2), Stair(16, 8, 0, 3))
UP = (Stair(0, 8, 1, 4), Stair(8, 8, 2, 4), Stair(16, 8, 3, 4))


def test_stairs_go_up_where_stairs_come_down() -> None:
    problem = Problem(
        (UsageRecord("x", 24, 0, 3, outline=DOWN), UsageRecord("y", 24, 1, 4, outline=UP))
    )
    plan = Stairs()(problem)
    verify(problem, plan)
    assert (plan.offsets, plan.height, plan.optimal) == ((0, 0), 24, True)


def test_a_record_lies_between_stairs() -> None:
    comb = (Stair(0, 4, 0, 2), Stair(8, 4, 0, 2), Stair(4, 4, 1, 2))
    problem = Problem(
        (UsageRecord("comb", 12, 0, 2, outline=comb), UsageRecord("a", 4, 0, 1, alignment=4))
    )
    assert Stairs()(problem).offsets == (0, 4)


@pytest.mark.parametrize(
    ("network", "cuts", "most"),
    [
        (mobilenet_v1(96, 0.25, channels=1), (), 1.0),
        (mobilenet_v1(96, 0.25), (), 1.014),
        (mobilenet_v1(160, 0.5), (), 1.01),
        (resnet_8(), (), 1.02),
        (u_net(32, 8, itemsize=1), (), 1.02),
        (mobilenet_v2(144, width=0.35), (), 1.01),
        (mobilenet_v2(224), (5, 9, 16, 30), 1.03),
    ],
)
def test_rows_of_networks_lie_within_a_few_per_cent_of_the_load(network, cuts, most) -> None:
    problem = network.problem(cuts)
    plan = Stairs(max_work=3_000_000)(problem)
    verify(problem, plan)
    assert plan.height <= most * problem.lower_bound
    assert plan.height < problem.hulls().lower_bound


def test_the_search_goes_below_the_orders() -> None:
    problem = mobilenet_v1(160, 0.5).problem()
    assert Stairs()(problem).height < Stairs(max_work=0)(problem).height


@settings(max_examples=60, deadline=None)
@given(problem=problems_with_outlines(max_records=3, most_bytes=6))
def test_little_is_lost_on_three_records(problem: Problem) -> None:
    assert Stairs()(problem).height <= 1.5 * lowest_height_by_offsets(problem)


def test_the_seed_decides() -> None:
    problem = mobilenet_v2(144, width=0.35).problem()
    plans = [Stairs(seed, 300_000)(problem) for seed in (0, 0, 1)]
    assert plans[0] == plans[1] != plans[2]
    assert plans[0].parameters == {"seed": 0, "max_work": 300_000}


def test_a_watcher_that_stops_it_gets_the_first_order() -> None:
    problem = mobilenet_v1(96, 0.25).problem()
    seen = []

    def watch(best, lower_bound):
        verify(problem, best)
        seen.append((best.height, lower_bound))
        return True

    plan = run(Stairs(), problem, watch)
    verify(problem, plan)
    assert seen == [(plan.height, problem.lower_bound)]


def test_a_deadline_ends_it() -> None:
    problem = mobilenet_v1(160, 0.5).problem()
    verify(problem, run(Stairs(max_work=1 << 50), problem, deadline(0.05)))


def test_without_a_limit_it_ends_after_attempts_in_vain() -> None:
    problem = Problem(
        tuple(
            UsageRecord(f"r{index}", size, index % 3, index % 3 + 2, alignment=4)
            for index, size in enumerate((5, 9, 3, 7, 6, 11, 2))
        )
    )
    plan = Stairs(max_work=None)(problem)
    verify(problem, plan)
    assert plan.parameters == {"seed": 0}


def test_fixed_records_stay_and_others_go_round_them() -> None:
    problem = Problem(
        (
            UsageRecord("x", 24, 0, 3, offset=8, outline=DOWN),
            UsageRecord("a", 8, 1, 3),
            UsageRecord("b", 16, 2, 3),
        )
    )
    plan = Stairs()(problem)
    verify(problem, plan)
    assert (plan.offsets[0], plan.height) == (8, 32)


def test_fixed_records_that_collide_are_refused_and_those_that_interlock_are_not() -> None:
    stair = UsageRecord("x", 24, 0, 3, offset=8, outline=DOWN)
    inside = Problem((stair, UsageRecord("a", 8, 1, 3, offset=8)))
    verify(inside, run(Stairs(), inside))
    colliding = Problem((stair, UsageRecord("a", 8, 1, 3, offset=16)))
    with pytest.raises(UnsupportedProblemError, match="cannot keep both 'a' and 'x'"):
        run(Stairs(), colliding)


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CONFLICTS", 10)
    with pytest.raises(UnsupportedProblemError, match="pairs of rectangles that meet"):
        run(Stairs(), PERSON_DETECT)


def test_the_exact_search_takes_rectangles_and_proves_nothing_of_outlines() -> None:
    plan = Optimal(max_nodes=20_000)(PERSON_DETECT)
    verify(PERSON_DETECT, plan)
    assert plan.lower_bound == PERSON_DETECT.lower_bound < PERSON_DETECT.hulls().lower_bound
    assert not plan.optimal
