import pytest

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.strategies.place.one_pass import (
    GreedyByArea,
    GreedyByBreadth,
    GreedyByLifetime,
    GreedyBySize,
    OnePass,
    OnnxruntimePattern,
    TfliteCpu,
    TflmGreedy,
    XlaBestFit,
)
from support.problems import problem_of

CHAIN = ((16, 0, 2), (8, 1, 3), (64, 2, 4), (32, 3, 5), (8, 4, 6))


ORDERS = [
    # The largest come first, equals in the problem's order.
    (GreedyBySize(), [(8, 0, 1), (9, 0, 1), (8, 0, 1)], [1, 0, 2]),
    # The largest record lives alone; the two others together are heavier.
    (GreedyByBreadth(), [(10, 0, 1), (6, 1, 2), (7, 1, 2)], [2, 1, 0]),
    # Of equally heavy steps the lower comes first.
    (GreedyByBreadth(), [(6, 4, 5), (6, 2, 3)], [1, 0]),
    # Size times lifetime decides.
    (GreedyByArea(), [(9, 0, 1), (3, 0, 4), (4, 1, 4)], [1, 2, 0]),
    # The longest-lived come first, equals by size.
    (GreedyByLifetime(), [(9, 0, 1), (3, 0, 4), (4, 1, 5), (4, 2, 6)], [2, 3, 1, 0]),
    # The largest come first; of equals the last.
    (TflmGreedy(), [(8, 0, 1), (9, 0, 1), (8, 0, 1)], [1, 2, 0]),
    # Records of the whole run come first, in the problem's order.
    (TfliteCpu(), [(9, 0, 3), (1, 0, 4), (5, 0, 4), (8, 1, 4)], [1, 2, 0, 3]),
    # The others go by size, then start, then index.
    (TfliteCpu(), [(4, 3, 5), (4, 1, 2), (6, 4, 5), (4, 1, 3)], [2, 1, 3, 0]),
    # Records are placed at their birth.
    (OnnxruntimePattern(), [(1, 2, 3), (9, 0, 1), (5, 0, 4)], [1, 2, 0]),
    # The largest come first, equals by lifetime, then index.
    (XlaBestFit(), [(4, 0, 1), (4, 0, 3), (9, 2, 3), (4, 3, 6)], [2, 1, 3, 0]),
]


@pytest.mark.parametrize(("strategy", "records", "order"), ORDERS)
def test_records_are_placed_in_the_order_of_the_strategy(
    strategy: OnePass, records: list[tuple[int, int, int]], order: list[int]
) -> None:
    assert strategy.order(problem_of(*records)) == order


def test_starts_are_aligned_and_the_end_is_not_padded() -> None:
    plan = GreedyBySize()(problem_of(*CHAIN, alignment=128))  # TFLite GPU delegate's test
    assert (plan.offsets, plan.height) == ((0, 128, 0, 128, 0), 160)


def test_a_chain_needs_its_two_largest_neighbours() -> None:
    plan = GreedyBySize()(problem_of(*CHAIN))
    assert (plan.offsets, plan.height) == ((0, 64, 0, 64, 0), 96)


# tflite-micro, greedy_memory_planner_test.cc; lifetimes are closed there.
@pytest.mark.parametrize(
    ("records", "height"),
    [
        ([(10, 0, 2), (20, 2, 4)], 20),
        ([(10, 0, 2), (20, 1, 3), (30, 2, 4), (40, 3, 5), (50, 0, 2)], 90),
        ([(100, 0, 2), (50, 2, 4), (20, 1, 3)], 120),
    ],
)
def test_heights_are_those_of_upstreams_tests(
    records: list[tuple[int, int, int]], height: int
) -> None:
    assert TflmGreedy()(problem_of(*records)).height == height


def test_offsets_are_those_of_upstreams_test() -> None:
    problem = problem_of((10, 0, 2), (20, 1, 3), (30, 2, 4), (40, 3, 5), (50, 0, 2))
    assert TflmGreedy()(problem).offsets == (50, 70, 40, 0, 0)


def test_the_lowest_gap_is_taken_though_a_tighter_one_exists() -> None:
    problem = Problem(
        (
            UsageRecord("a", 4, 0, 1, offset=16),
            UsageRecord("b", 4, 0, 1, offset=26),
            UsageRecord("c", 6, 0, 1),
        )
    )
    assert TflmGreedy()(problem).offsets[2] == 0


def test_the_future_is_not_known() -> None:
    # 4 B are freed, 6 B do not fit there: an allocator without foresight needs 14 B.
    plan = OnnxruntimePattern()(problem_of((4, 0, 1), (4, 0, 3), (6, 1, 3)))
    assert (plan.offsets, plan.height) == ((0, 4, 8), 14)
