import pytest

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import verify
from support.problems import tiling

pytest.importorskip("ortools")

from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.cp_sat_model import _Model


def records_of(*sizes_and_alignments: tuple[int, int]) -> tuple[UsageRecord, ...]:
    return tuple(
        UsageRecord(str(index), size, 0, 1, alignment)
        for index, (size, alignment) in enumerate(sizes_and_alignments)
    )


def units_of(*sizes_and_alignments: tuple[int, int]) -> tuple[int, int]:
    records = records_of(*sizes_and_alignments)
    model = _Model(records, [0] * len(records), 0, 1024)
    return model.unit, model.height_unit


def test_offsets_are_counted_in_the_common_divisor_of_the_sizes() -> None:
    assert units_of((48, 1), (72, 1)) == (24, 24)


def test_sizes_are_rounded_up_to_the_least_alignment_for_offsets_but_not_for_the_height() -> None:
    assert units_of((100, 64), (36, 64)) == (64, 4)


def test_an_alignment_that_does_not_divide_makes_the_unit_smaller() -> None:
    assert units_of((3, 1), (3, 4)) == (1, 1)
    problem = Problem(records_of((3, 1), (3, 4), (3, 4)))
    plan = CpSat()(problem)
    verify(problem, plan)
    assert (plan.height, plan.lower_bound) == (10, 10)


# Six records leave gaps of 15 B between them, each for one of eight records of 8 B.
BINS = Problem(records_of(*[(17, 16)] * 6, *[(8, 1)] * 8))


@pytest.mark.parametrize("broken_symmetry", [True, False])
def test_stacking_interchangeable_records_in_one_order_pays(
    monkeypatch: pytest.MonkeyPatch, broken_symmetry: bool
) -> None:
    if not broken_symmetry:
        monkeypatch.setattr(_Model, "_break_symmetry", lambda *_: None)
    max_work = 9.0 if broken_symmetry else 0.15
    assert CpSat(max_work=max_work)(BINS).optimal is broken_symmetry


def test_a_rectangle_cut_into_150_pieces_is_put_together_again() -> None:
    problem = tiling(num_records=150, num_steps=100, height=100_000, seed=4)
    assert CpSat(max_work=9.0)(problem).optimal
