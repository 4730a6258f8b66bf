from arenite.strategies.place.onnxruntime_pattern import OnnxruntimePattern
from support.small_problems import problem_of


def test_records_are_placed_as_they_are_born() -> None:
    assert OnnxruntimePattern().order(problem_of((1, 2, 3), (9, 0, 1), (5, 0, 4))) == [1, 2, 0]


def test_the_future_is_not_known() -> None:
    # 4 B are freed, 6 B do not fit there: an allocator without foresight needs 14 B.
    plan = OnnxruntimePattern()(problem_of((4, 0, 1), (4, 0, 3), (6, 1, 3)))
    assert (plan.offsets, plan.height) == ((0, 4, 8), 14)
