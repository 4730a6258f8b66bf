"""Check a simulated run; shares no code with the simulator."""

from collections import defaultdict
from itertools import pairwise

from arenite.planner.errors import InvalidTimelineError
from arenite.planner.placement.problem import UsageRecord
from arenite.planner.programs.costs import Costs
from arenite.planner.programs.program import COMPUTE, Program
from arenite.planner.rewrites.rescheduling import problem_of, with_views
from arenite.planner.timing.timeline import Span, Timeline

_ROUNDING = 1e-9
"""Of the times, relative to the whole run."""


class WrongStepsError(InvalidTimelineError):
    """The spans are not those of the program's steps."""


class TooQuickError(InvalidTimelineError):
    """A step takes less time than it costs."""


class LaneBusyError(InvalidTimelineError):
    """A lane does two things at once, or not in their order."""


class TooEarlyError(InvalidTimelineError):
    """A step begins before its turn, or before something that it reads is there."""


class StillInUseError(InvalidTimelineError):
    """A step touches bytes after others may have been given their place."""


class WrongPeakError(InvalidTimelineError):
    """More or fewer bytes are live than stated."""


def check_timeline(program: Program, costs: Costs, timeline: Timeline) -> None:
    """Return if a run is one that the program can have.

    Raises:
        WrongStepsError: The spans are not those of the steps.
        TooQuickError: A step is quicker than the costs say.
        LaneBusyError: A lane does two things at once.
        TooEarlyError: A step does not wait for its operands, or for its turn.
        StillInUseError: Bytes may be overwritten while a step of another lane needs them.
        WrongPeakError: The most bytes live at once are not those stated.

    Cost: O(operands of the steps + n log n).
    """
    program = with_views(program)
    spans = timeline.spans
    slack = _ROUNDING * max([1e-9, *(span.end for span in spans)])
    _check_steps(program, costs, spans, slack)
    _check_lanes(spans, slack)
    _check_turns(program, spans, slack)
    _check_reads(program, spans, slack)
    problem = problem_of(program)
    _check_storages(program, problem.records, spans, slack)
    for memory in program.memories:
        records = [record for record in problem.records if record.memory == memory.name]
        peak = _peak(records, spans)
        if timeline.peaks.get(memory.name) != peak:
            raise WrongPeakError(
                f"memory {memory.name!r}: {peak} B are live at once, "
                f"{timeline.peaks.get(memory.name)} B are stated"
            )


def _check_steps(program: Program, costs: Costs, spans: tuple[Span, ...], slack: float) -> None:
    stated = [(span.step, span.lane) for span in spans]
    if stated != [(step.name, step.lane) for step in program.steps]:
        raise WrongStepsError("the spans are not those of the program's steps, in its order")
    for span, step in zip(spans, program.steps, strict=True):
        seconds = costs.seconds(program, step)
        if span.end - span.start < seconds - slack:
            raise TooQuickError(
                f"step {step.name!r} takes {span.end - span.start} s, {seconds} s expected",
                step.name,
            )


def _check_lanes(spans: tuple[Span, ...], slack: float) -> None:
    lanes: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        lanes[span.lane].append(span)
    for lane, its in lanes.items():
        for one, other in pairwise(its):
            if other.start < one.end - slack:
                raise LaneBusyError(
                    f"lane {lane!r} begins {other.step!r} before {one.step!r} is done", other.step
                )


def _check_turns(program: Program, spans: tuple[Span, ...], slack: float) -> None:
    turn = 0.0
    for span in spans:
        if span.issued < turn - slack or span.start < span.issued - slack:
            raise TooEarlyError(f"step {span.step!r} begins before its turn", span.step)
        if span.lane == COMPUTE:
            turn = span.end


def _check_reads(program: Program, spans: tuple[Span, ...], slack: float) -> None:
    written: dict[str, float] = {}
    for span, step in zip(spans, program.steps, strict=True):
        for name in step.reads:
            seen: str | None = name
            while seen is not None:  # a view is there when the viewed tensor is
                if span.start < written.get(seen, 0.0) - slack:
                    raise TooEarlyError(
                        f"step {step.name!r} begins before {name!r} is complete", step.name
                    )
                alias = program.tensors[seen].alias
                seen = None if alias is None else alias.tensor
        written.update(dict.fromkeys(step.writes, span.end))


def _check_storages(
    program: Program, records: tuple[UsageRecord, ...], spans: tuple[Span, ...], slack: float
) -> None:
    """Check that records that share no step, and so may share bytes, share no time."""
    last_touch: dict[str, tuple[float, str]] = {}
    first_touch: dict[str, float] = {}
    for span, step in zip(spans, program.steps, strict=True):
        for storage in {program.root(name)[0] for name in (*step.reads, *step.writes)}:
            if span.end >= last_touch.get(storage, (0.0, ""))[0]:
                last_touch[storage] = (span.end, step.name)
            first_touch[storage] = min(first_touch.get(storage, span.issued), span.issued)
    by_end = sorted(records, key=lambda record: record.end)
    latest: dict[str, tuple[float, str]] = {}
    dead = 0
    for record in sorted(records, key=lambda record: record.start):
        while dead < len(by_end) and by_end[dead].end <= record.start:
            gone = by_end[dead]
            touch = last_touch.get(gone.name, (0.0, ""))
            latest[gone.memory] = max(latest.get(gone.memory, (0.0, "")), touch)
            dead += 1
        time, step_name = latest.get(record.memory, (0.0, ""))
        if first_touch.get(record.name, time) < time - slack:
            raise StillInUseError(
                f"{record.name!r} may overwrite bytes that step {step_name!r} still touches",
                step_name,
            )


def _peak(records: list[UsageRecord], spans: tuple[Span, ...]) -> int:
    """Return the most bytes live at once, by the times at which records come and go."""
    events: list[tuple[float, int, int]] = []
    for record in records:
        if not spans:
            return sum(record.size for record in records)
        # At the same time, steps end in their order.
        events.append((spans[record.start].issued, 2 * record.start, record.size))
        events.append((spans[record.end - 1].end, 2 * record.end - 1, -record.size))
    peak = load = 0
    for _, _, change in sorted(events):
        load += change
        peak = max(peak, load)
    return peak
