from hypothesis import given

from arenite.planner.placement.problem import Problem
from arenite.strategies.base.records import breadth_order, count_conflicts
from support.problems import problems


def walk_over_the_steps(problem: Problem) -> list[int]:
    def live(step: int) -> list[int]:
        return [i for i, r in enumerate(problem.records) if r.start <= step < r.end]

    def load(step: int) -> int:
        return sum(problem.records[i].size for i in live(step))

    order: list[int] = []
    for step in sorted(range(problem.num_steps), key=lambda step: -load(step)):
        for index in sorted(live(step), key=lambda i: -problem.records[i].size):
            if index not in order:
                order.append(index)
    return order


@given(problem=problems())
def test_the_breadth_order_is_a_walk_over_the_heaviest_steps(problem: Problem) -> None:
    assert breadth_order(problem.records) == walk_over_the_steps(problem)


@given(problem=problems())
def test_conflicts_are_the_records_met(problem: Problem) -> None:
    records = problem.records
    assert count_conflicts(records) == [
        sum(record.meets(other) for other in records) - 1 for record in records
    ]
