from arenite.strategies.place.greedy_by_size import GreedyBySize
from support.small_problems import problem_of

CHAIN = ((16, 0, 2), (8, 1, 3), (64, 2, 4), (32, 3, 5), (8, 4, 6))


def test_the_largest_come_first_and_equals_in_the_problems_order() -> None:
    assert GreedyBySize().order(problem_of((8, 0, 1), (9, 0, 1), (8, 0, 1))) == [1, 0, 2]


def test_starts_are_aligned_and_the_end_is_not_padded() -> None:
    plan = GreedyBySize()(problem_of(*CHAIN, alignment=128))  # TFLite GPU delegate's test
    assert (plan.offsets, plan.height) == ((0, 128, 0, 128, 0), 160)


def test_a_chain_needs_its_two_largest_neighbours() -> None:
    plan = GreedyBySize()(problem_of(*CHAIN))
    assert (plan.offsets, plan.height) == ((0, 64, 0, 64, 0), 96)
