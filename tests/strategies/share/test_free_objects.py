from arenite.planner.problem import UsageRecord
from arenite.strategies.share.free_objects import share_over_time
from support.small_problems import problem_of


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
