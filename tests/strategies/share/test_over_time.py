import pytest

from arenite.planner.placement.problem import UsageRecord
from arenite.strategies.share.over_time import (
    ObjectsEqualSize,
    ObjectsInOrder,
    OnnxruntimeReuse,
    share_over_time,
)
from support.problems import problem_of


class Witness:
    """Hands out what came back first and writes down what comes back."""

    def __init__(self) -> None:
        self.free: list[int] = []
        self.given_back: list[tuple[int, int, str]] = []

    def take(self, _record: UsageRecord) -> int | None:
        return self.free.pop(0) if self.free else None

    def give_back(self, index: int, size: int, tenant: UsageRecord) -> None:
        self.free.append(index)
        self.given_back.append((index, size, tenant.name))


def test_what_ends_at_a_step_is_free_for_what_starts_there() -> None:
    problem = problem_of((8, 0, 2), (8, 1, 3), (8, 2, 4))
    assert share_over_time(problem.records, [0, 1, 2], Witness()) == [0, 1, 0]


def test_objects_come_back_by_end_and_then_in_the_problems_order() -> None:
    problem = problem_of((1, 0, 3), (2, 0, 2), (3, 0, 3), (4, 9, 10))
    free = Witness()
    share_over_time(problem.records, [0, 1, 2, 3], free)
    assert free.given_back == [(1, 2, "b"), (0, 1, "a"), (2, 3, "c")]


def test_an_object_comes_back_as_large_as_it_has_grown() -> None:
    problem = problem_of((8, 0, 1), (5, 1, 2), (9, 2, 3), (1, 3, 4))
    free = Witness()
    share_over_time(problem.records, [0, 1, 2, 3], free)
    assert free.given_back == [(0, 8, "a"), (0, 8, "b"), (0, 9, "c")]


@pytest.mark.parametrize(
    ("strategy", "records", "objects"),
    [
        # Only exactly the same size is reused.
        (ObjectsEqualSize(), [(8, 0, 1), (7, 1, 2), (9, 1, 2), (8, 1, 2)], [0, 1, 2, 0]),
        # The object freed last is reused first.
        (ObjectsEqualSize(), [(8, 0, 2), (8, 0, 1), (8, 2, 3), (8, 2, 3)], [0, 1, 0, 1]),
        # Records out of order are walked by start.
        (ObjectsEqualSize(), [(8, 1, 2), (8, 0, 1), (8, 2, 3)], [0, 0, 0]),
        # Sizes stand for unknown shapes.
        (OnnxruntimeReuse(), [(8, 0, 1), (9, 1, 2), (8, 1, 2)], [0, 1, 0]),
        # The buffer freed last is reused first.
        (OnnxruntimeReuse(), [(8, 0, 1), (8, 0, 2), (8, 2, 3)], [0, 1, 1]),
        # An object is made only when none is free.
        (ObjectsInOrder(), [(1, 0, 1), (1000, 1, 2), (1, 2, 3), (1000, 2, 3)], [0, 0, 0, 1]),
    ],
)
def test_objects_are_reused_as_the_strategy_says(
    strategy: ObjectsInOrder | ObjectsEqualSize | OnnxruntimeReuse,
    records: list[tuple[int, int, int]],
    objects: list[int],
) -> None:
    assert strategy.assign(problem_of(*records).records) == objects


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


@pytest.mark.parametrize(
    ("size", "chosen"), [(4, 0), (10, 0), (11, 0), (14, 0), (15, 1), (16, 1), (20, 1), (99, 1)]
)
def test_the_closest_size_is_taken_and_the_larger_when_equally_close(
    size: int, chosen: int
) -> None:
    problem = problem_of((10, 0, 1), (20, 0, 1), (size, 1, 2))
    assert ObjectsInOrder().assign(problem.records) == [0, 1, chosen]


def test_a_smaller_object_grows_and_is_remembered_as_grown() -> None:
    # Once grown to 12 B the first object is the closest to 13 B, ahead of 20 B.
    problem = problem_of((8, 0, 1), (20, 0, 2), (12, 1, 2), (13, 2, 3))
    plan = ObjectsInOrder()(problem)
    assert plan.objects is not None
    assert plan.objects.assignment == (0, 1, 0, 0)
    assert plan.objects.sizes == (13, 20)


@pytest.mark.parametrize(("size", "chosen"), [(8, 0), (7, 0), (9, 1)])
def test_of_equal_sizes_the_first_is_taken_from_above_and_the_last_from_below(
    size: int, chosen: int
) -> None:
    problem = problem_of((8, 0, 1), (8, 0, 1), (size, 1, 2))
    assert ObjectsInOrder().assign(problem.records) == [0, 1, chosen]
