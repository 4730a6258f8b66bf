import pytest

from arenite.planner.placement.plan import Plan
from arenite.strategies.share.mxnet import Mxnet
from support.problems import problem_of


def assigned_last(match_range: int, *sizes: int) -> int:
    """Return the block of the last size, when blocks of the others are free."""
    *early, late = sizes
    problem = problem_of(*((size, 0, 1) for size in early), (late, 1, 2))
    return list(Mxnet((match_range,)).assign(problem.records))[-1]


def test_the_smallest_block_in_range_that_is_large_enough_is_taken() -> None:
    assert assigned_last(16, 40, 20, 10, 11) == 1


def test_a_block_above_the_range_is_left_and_a_smaller_one_grows() -> None:
    assert assigned_last(2, 25, 10, 12) == 1
    assert assigned_last(2, 24, 10, 12) == 0


def test_outside_the_range_a_block_is_made() -> None:
    assert assigned_last(2, 25, 5, 12) == 2
    assert assigned_last(2, 25, 6, 12) == 1


def test_blocks_are_never_shared_with_range_zero() -> None:
    assert assigned_last(0, 8, 8) == 1


def test_of_equal_blocks_the_first_freed_is_taken_from_above_and_the_last_from_below() -> None:
    assert assigned_last(2, 8, 8, 8) == 0
    assert assigned_last(2, 8, 8, 9) == 1


def test_the_largest_record_of_a_step_comes_first() -> None:
    problem = problem_of((20, 0, 1), (10, 1, 2), (19, 1, 2))
    assert Mxnet((16,)).assign(problem.records) == [0, 1, 0]


def test_the_match_range_of_the_least_total_is_kept() -> None:
    # Range 16 wastes 16 B on 1 B and then needs 16 B more; range 1 does not.
    problem = problem_of((16, 0, 1), (1, 1, 3), (16, 2, 3))
    assert [total(Mxnet((r,))(problem)) for r in (16, 1)] == [32, 17]
    assert total(Mxnet((16, 1))(problem)) == 17


def test_the_match_ranges_are_stated() -> None:
    assert Mxnet((1, 16)).parameters() == {"match_ranges": "1,16"}


@pytest.mark.parametrize("match_ranges", [(), (1, -1)])
def test_match_ranges_that_mean_nothing_are_refused(match_ranges: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="match_ranges"):
        Mxnet(match_ranges)


def total(plan: Plan) -> int:
    assert plan.objects is not None
    return plan.objects.total
