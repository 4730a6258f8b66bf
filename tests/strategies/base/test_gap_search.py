import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.strategies.base import native
from arenite.strategies.base.gap_search import Fit, _place_in_python, place_in_order
from support.problems import problem_of, problems_with_fixed_offsets


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
@pytest.mark.parametrize("fit", Fit)
def test_the_native_core_and_its_python_twin_agree(fit: Fit) -> None:
    @settings(max_examples=150, deadline=None)
    @given(problem=problems_with_fixed_offsets(), data=st.data())
    def check(problem: Problem, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(problem.records))))
        native = place_in_order(problem, order, fit)
        assert native == _place_in_python(problem.records, order, fit)

    check()


def two_gaps() -> Problem:
    # Blocks of 4 B at 0, 16 and 26 leave gaps of 12 and 6 bytes for the last record.
    return Problem(
        (
            UsageRecord("a", 4, 0, 1, offset=0),
            UsageRecord("b", 4, 0, 1, offset=16),
            UsageRecord("c", 4, 0, 1, offset=26),
            UsageRecord("d", 6, 0, 1),
        )
    )


@pytest.mark.parametrize(
    ("fit", "offset"), [(Fit.FIRST, 4), (Fit.BEST, 20), (Fit.BEST_TFLITE_CPU, 20), (Fit.TOP, 30)]
)
def test_each_fit_takes_its_gap(fit: Fit, offset: int) -> None:
    assert place_in_order(two_gaps(), range(4), fit)[3] == offset


def test_best_fit_takes_the_lowest_of_equal_gaps() -> None:
    fixed = [UsageRecord(str(at), 4, 0, 1, offset=at) for at in (0, 10, 20)]
    problem = Problem((*fixed, UsageRecord("d", 6, 0, 1)))
    assert place_in_order(problem, range(4), Fit.BEST)[3] == 4


def test_the_leading_gap_is_used() -> None:
    problem = problem_of((100, 0, 2), (80, 1, 3), (60, 2, 4))
    assert place_in_order(problem, range(3), Fit.BEST) == (0, 100, 0)


# TFLite, simple_memory_arena_test.cc: placed in the order listed, closed lifetimes there.
@pytest.mark.parametrize(
    ("records", "offsets"),
    [
        (
            [(2047, 1, 4), (2047, 2, 6), (2047, 3, 7), (2047, 5, 7), (1023, 4, 7), (1023, 6, 7)],
            (0, 2048, 4096, 0, 6144, 2048),
        ),
        ([(2047, 0, 5), (1023, 1, 3), (2047, 3, 5)], (0, 2048, 2048)),
        ([(2047, 0, 3), (2047, 1, 3), (2047, 1, 3)], (0, 2048, 4096)),
        ([(1023, 0, 3), (1023, 1, 3), (1023, 1, 3)], (0, 1024, 2048)),
    ],
)
def test_tflite_cpu_fit_gives_the_offsets_of_tflites_own_tests(
    records: list[tuple[int, int, int]], offsets: tuple[int, ...]
) -> None:
    problem = problem_of(*records, alignment=32)
    assert place_in_order(problem, range(len(records)), Fit.BEST_TFLITE_CPU) == offsets


def test_tflite_cpu_fit_lets_a_looser_gap_replace_a_tight_one() -> None:
    # Gaps above the aligned cursor: 16 at 16, then 18 at 48. The first is remembered as
    # 22, counted from its unaligned cursor at 10, so the second looks tighter.
    problem = Problem(
        (
            UsageRecord("a", 10, 0, 1, offset=0),
            UsageRecord("b", 16, 0, 1, offset=32),
            UsageRecord("c", 10, 0, 1, offset=66),
            UsageRecord("d", 12, 0, 1, alignment=16),
        )
    )
    assert place_in_order(problem, range(4), Fit.BEST_TFLITE_CPU)[3] == 48
    assert place_in_order(problem, range(4), Fit.BEST)[3] == 16


class _AlarmError(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends a signal")
@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
def test_a_signal_ends_a_placement_of_many_records() -> None:
    # All live at once: hundreds of millions of comparisons.
    problem = Problem(tuple(UsageRecord(str(index), 1, 0, 1) for index in range(20_000)))
    records, order = native.records_of(problem), list(range(20_000))

    def alarm(_number: int, _frame: object) -> None:
        raise _AlarmError

    previous = signal.signal(signal.SIGALRM, alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(_AlarmError):
            native.core.place_in_order(records, order, native.core.Fit.BEST)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
