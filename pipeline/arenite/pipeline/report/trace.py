"""The winner's plan as a trace for Perfetto or chrome://tracing: a step is a millisecond.

Each model is a process. Its operators are one track, the tensors one for every address at
which any begins, and load, highest address in use and carried bytes are counters.
"""

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from arenite.pipeline.report.results import ModelReport
from arenite.planner import Plan
from arenite.planner.placement import Rectangle, load_spans

_STEP_US = 1000
_OPERATORS_TRACK = 1
_FIRST_ADDRESS_TRACK = 2

_Event: TypeAlias = dict[str, object]


def as_trace(reports: Iterable[ModelReport]) -> str:
    """Return the trace of the lowest plan of each model, as JSON."""
    events: list[_Event] = []
    for process, report in enumerate(reports, start=1):
        if report.winner is not None:
            events += _model(process, report, report.winner.plan)
    return json.dumps({"traceEvents": events}, separators=(",", ":"))


def _model(process: int, report: ModelReport, plan: Plan) -> Iterator[_Event]:
    yield _label("process_name", process, 0, f"{report.source.name}, {plan.strategy}")
    problem = report.source.problem
    yield _label("thread_name", process, _OPERATORS_TRACK, "operators")
    for step, operator in enumerate(problem.steps):
        yield _slice(process, _OPERATORS_TRACK, operator, step, step + 1)
    # Records at the same address are never live together, so the slices do not overlap.
    rectangles = list(problem.rectangles(plan.offsets))
    addresses = sorted({each.offset for each in rectangles})
    tracks = {offset: track for track, offset in enumerate(addresses, _FIRST_ADDRESS_TRACK)}
    for offset, track in tracks.items():
        yield _label("thread_name", process, track, f"address {offset}")
        yield {
            "name": "thread_sort_index", "ph": "M", "pid": process, "tid": track,
            "args": {"sort_index": track},
        }  # fmt: skip
    for each in rectangles:
        yield _slice(process, tracks[each.offset], each.name, each.start, each.end) | {
            "args": {
                "bytes": each.size, "first": each.offset, "last": each.offset + each.size - 1,
            }
        }  # fmt: skip
    yield from _counters(process, report, rectangles)


def _counters(
    process: int, report: ModelReport, rectangles: Sequence[Rectangle]
) -> Iterator[_Event]:
    records = report.source.problem.records
    end = 0
    for span in load_spans(records):
        if span.start > end:
            yield _counter(process, "load", end, 0)
        yield _counter(process, "load", span.start, span.load)
        end = span.end
    yield _counter(process, "load", end, 0)
    for step, top in _tops(rectangles):
        yield _counter(process, "highest address", step, top)
    if (diagnosis := report.diagnosis) is not None:
        for load in diagnosis.steps:
            yield _counter(process, "carried", load.step, load.carried)


def _tops(rectangles: Sequence[Rectangle]) -> Iterator[tuple[int, int]]:
    """Yield the steps at which the first byte above everything live changes, and that byte.

    Cost: O(n log n).
    """
    born: dict[int, list[tuple[int, int]]] = {each.end: [] for each in rectangles}
    for each in rectangles:
        born.setdefault(each.start, []).append((-(each.offset + each.size), each.end))
    live: list[tuple[int, int]] = []
    last = -1
    for step in sorted(born):
        for top_and_end in born[step]:
            heapq.heappush(live, top_and_end)
        while live and live[0][1] <= step:
            heapq.heappop(live)
        top = -live[0][0] if live else 0
        if top != last:
            yield step, top
        last = top


def _label(what: str, process: int, track: int, text: str) -> _Event:
    return {"name": what, "ph": "M", "pid": process, "tid": track, "args": {"name": text}}


def _slice(process: int, track: int, name: str, start: int, end: int) -> _Event:
    return {
        "name": name, "ph": "X", "pid": process, "tid": track, "ts": start * _STEP_US,
        "dur": (end - start) * _STEP_US,
    }  # fmt: skip


def _counter(process: int, name: str, step: int, value: int) -> _Event:
    return {
        "name": name, "ph": "C", "pid": process, "ts": step * _STEP_US,
        "args": {"bytes": value},
    }  # fmt: skip
