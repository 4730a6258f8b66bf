from arenite.planner.problem import UsageRecord
from arenite.strategies.share.onnxruntime_reuse import OnnxruntimeReuse
from support.small_problems import problem_of


def record(name: str, start: int, *layout: int, size: int = 64) -> UsageRecord:
    return UsageRecord(name, size, start, start + 1, layout=layout)


def test_a_buffer_of_the_same_shape_and_element_size_is_reused() -> None:
    records = [record("a", 0, 32, 4, 4), record("b", 1, 32, 4, 4)]
    assert OnnxruntimeReuse().assign(records) == [0, 0]


def test_a_buffer_of_another_shape_is_not_though_it_is_as_large() -> None:
    records = [record("a", 0, 32, 4, 4), record("b", 1, 32, 2, 8), record("c", 2, 16, 4, 4)]
    assert OnnxruntimeReuse().assign(records) == [0, 1, 2]


def test_scalars_share_with_nothing() -> None:
    records = [record("a", 0, 32, size=4), record("b", 1, 32, size=4)]
    assert OnnxruntimeReuse().assign(records) == [0, 1]


def test_sizes_stand_for_unknown_shapes() -> None:
    problem = problem_of((8, 0, 1), (9, 1, 2), (8, 1, 2))
    assert OnnxruntimeReuse().assign(problem.records) == [0, 1, 0]


def test_the_buffer_freed_last_is_reused_first() -> None:
    problem = problem_of((8, 0, 1), (8, 0, 2), (8, 2, 3))
    assert OnnxruntimeReuse().assign(problem.records) == [0, 1, 1]
