import pytest
from hypothesis import given

from arenite.planner.errors import UnsupportedProblemError
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import run
from arenite.strategies.place.strip_packing import StripPacking
from support.problems import problem_of, problems


def by_the_book(problem: Problem) -> tuple[int, ...]:
    """Draw the skyline as one height a step, with steps already in compressed time."""
    skyline = [0] * problem.num_steps
    offsets = [0] * len(problem.records)
    left = set(range(len(offsets)))
    while left:
        ground = min(skyline)
        start = end = skyline.index(ground)
        while end < len(skyline) and skyline[end] == ground:
            end += 1
        inside = [
            (-r.lifetime, -r.size, i)
            for i, r in enumerate(problem.records)
            if i in left and start <= r.start and r.end <= end
        ]
        if inside:
            index = min(inside)[2]
            record = problem.records[index]
            offsets[index] = -(-ground // record.alignment) * record.alignment
            top = offsets[index] + record.size
            skyline[record.start : record.end] = [top] * record.lifetime
            left.remove(index)
        else:
            sides = [skyline[i] for i in (start - 1, end) if 0 <= i < len(skyline)]
            skyline[start:end] = [min(sides)] * (end - start)
    return tuple(offsets)


@given(problem=problems())
def test_it_does_what_the_book_says(problem: Problem) -> None:
    assert StripPacking(raw_time=True)(problem).offsets == by_the_book(problem)


def test_the_longest_lived_inside_the_lowest_segment_is_placed_first() -> None:
    plan = StripPacking()(problem_of((5, 0, 1), (7, 0, 3), (2, 1, 3)))
    assert plan.offsets == (7, 0, 7)


def test_of_equal_lifetimes_the_larger_and_then_the_first_is_placed() -> None:
    assert StripPacking()(problem_of((3, 0, 1), (5, 0, 1), (5, 0, 1))).offsets == (10, 0, 5)


def test_idle_steps_count_only_in_raw_time() -> None:
    # Between 20 and 90 nothing is born or dies, so the last record is the longest lived
    # in steps only.
    problem = problem_of((4, 0, 10), (1, 0, 5), (1, 5, 20), (6, 9, 90))
    assert StripPacking()(problem).offsets != StripPacking(raw_time=True)(problem).offsets


def test_records_rest_on_aligned_heights() -> None:
    plan = StripPacking()(problem_of((10, 0, 2), (10, 0, 1), alignment=16))
    assert (plan.offsets, plan.height) == ((0, 16), 26)


def test_the_plan_states_the_time_scale() -> None:
    assert StripPacking(raw_time=True)(problem_of((1, 0, 1))).parameters == {"raw_time": True}


def test_fixed_offsets_are_refused() -> None:
    problem = Problem((UsageRecord("a", 8, 0, 1, offset=0),))
    with pytest.raises(UnsupportedProblemError, match="fixed"):
        run(StripPacking(), problem)
