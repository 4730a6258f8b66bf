from arenite.strategies.share.objects_by_breadth import ObjectsByBreadth
from support.small_problems import problem_of


def test_the_records_of_the_heaviest_step_come_first() -> None:
    # Step 1 holds 10 B, step 0 only the larger record of 9 B.
    problem = problem_of((9, 0, 1), (4, 1, 2), (6, 1, 2))
    assert ObjectsByBreadth().assign(problem.records) == [0, 1, 0]


def test_objects_made_at_the_heaviest_step_grow_later() -> None:
    plan = ObjectsByBreadth()(problem_of((9, 0, 1), (4, 1, 2), (6, 1, 2)))
    assert plan.objects is not None
    assert plan.objects.sizes == (9, 4)
