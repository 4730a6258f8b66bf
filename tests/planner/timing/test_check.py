"""The checker refuses every way in which a run can be wrong."""

from dataclasses import replace

import pytest

from arenite.planner.errors import InvalidTimelineError
from arenite.planner.programs.costs import Budget, Costs, Link
from arenite.planner.programs.program import COMPUTE, Program
from arenite.planner.rewrites.rescheduling import peak_of, problem_of
from arenite.planner.timing import Span, Timeline, check, check_timeline, simulate
from arenite.planner.timing.check import (
    LaneBusyError,
    StillInUseError,
    TooEarlyError,
    TooQuickError,
    WrongPeakError,
    WrongStepsError,
)
from arenite.strategies import find_policy
from support.training_programs import training_program

COSTS = Costs(1e9, 1e9, Link(1e8, 1e8))


@pytest.fixture(scope="module")
def program() -> Program:
    made = find_policy("modnn")(training_program(7), Budget(70, is_percent=True), COSTS)
    assert any(step.lane != COMPUTE for step in made.steps)
    return made


@pytest.fixture(scope="module")
def timeline(program: Program) -> Timeline:
    return simulate(program, COSTS)


def with_span(timeline: Timeline, index: int, **changes: float) -> Timeline:
    spans = list(timeline.spans)
    spans[index] = replace(spans[index], **changes)  # type: ignore[arg-type]
    return replace(timeline, spans=tuple(spans))


def index_of(timeline: Timeline, start: str) -> int:
    return next(i for i, span in enumerate(timeline.spans) if span.step.startswith(start))


def test_a_simulated_run_is_right(program: Program, timeline: Timeline) -> None:
    check_timeline(program, COSTS, timeline)
    assert timeline.peaks["arena"] == peak_of(program)
    assert timeline.bytes_out == timeline.bytes_back > 0
    assert timeline.stalled_s(COMPUTE) >= 0
    assert timeline.seconds >= timeline.busy_s(COMPUTE)


def test_the_spans_must_be_those_of_the_steps(program: Program, timeline: Timeline) -> None:
    with pytest.raises(WrongStepsError):
        check_timeline(program, COSTS, replace(timeline, spans=timeline.spans[1:]))


def test_no_step_is_quicker_than_it_costs(program: Program, timeline: Timeline) -> None:
    span = timeline.spans[-1]
    assert span.end > span.start
    with pytest.raises(TooQuickError, match=span.step):
        check_timeline(program, COSTS, with_span(timeline, -1, end=span.start))


def test_a_lane_does_one_thing_at_a_time(program: Program, timeline: Timeline) -> None:
    links = [i for i, span in enumerate(timeline.spans) if span.step.startswith("spill")]
    assert len(links) > 1
    first, second = (timeline.spans[i] for i in links[:2])
    late = with_span(timeline, links[0], end=second.start + 1 + first.end)
    with pytest.raises(LaneBusyError, match=second.step):
        check_timeline(program, COSTS, late)


def test_a_step_waits_for_its_turn(program: Program, timeline: Timeline) -> None:
    index = index_of(timeline, "fetch")
    early = with_span(timeline, index, issued=0.0)
    with pytest.raises(TooEarlyError, match="before its turn"):
        check_timeline(program, COSTS, early)


def test_a_step_waits_for_what_it_reads(program: Program, timeline: Timeline) -> None:
    links = [i for i, span in enumerate(timeline.spans) if span.lane != COMPUTE]
    last = max(links)
    late = with_span(timeline, last, end=timeline.seconds + 1)
    with pytest.raises(TooEarlyError, match="is complete"):
        check_timeline(program, COSTS, late)


def test_bytes_are_not_given_away_while_a_lane_needs_them(
    program: Program, timeline: Timeline
) -> None:
    # The rules before catch this as well, as a program must wait for what other lanes touch.
    records = problem_of(program).records
    late = with_span(timeline, index_of(timeline, "spill"), end=timeline.seconds + 1)
    check._check_storages(program, records, timeline.spans, 0.0)
    with pytest.raises(StillInUseError, match="still touches"):
        check._check_storages(program, records, late.spans, 0.0)


def test_the_peak_is_as_stated(program: Program, timeline: Timeline) -> None:
    for wrong in (-16, 16):
        peaks = {**timeline.peaks, "arena": timeline.peaks["arena"] + wrong}
        with pytest.raises(WrongPeakError, match="are stated"):
            check_timeline(program, COSTS, replace(timeline, peaks=peaks))


def test_every_rule_is_an_invalid_timeline() -> None:
    rules = (WrongStepsError, TooQuickError, LaneBusyError, TooEarlyError, StillInUseError)
    assert all(issubclass(rule, InvalidTimelineError) for rule in (*rules, WrongPeakError))


def test_nothing_takes_no_time() -> None:
    assert Timeline((), {}).seconds == 0
    assert Span("a", COMPUTE, 0, 0, 1).end == 1
