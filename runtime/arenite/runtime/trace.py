"""The profile of a run as a trace for Perfetto or chrome://tracing, one track per backend."""

import json
from collections.abc import Iterable

from arenite.runtime.session import StepProfile


def chrome_trace(name: str, steps: Iterable[StepProfile]) -> str:
    """Return the steps of a run in sequence, as JSON.

    Args:
        name: Name of the model.
        steps: Steps as returned by `Session.profile`.
    """
    events: list[dict[str, object]] = [_label("process_name", 0, name)]
    tracks: dict[str, int] = {}
    begun = 0
    for step in steps:
        if step.backend not in tracks:
            tracks[step.backend] = len(tracks) + 1
            events.append(_label("thread_name", tracks[step.backend], step.backend))
        events.append(
            {
                "name": step.name, "cat": step.operator, "ph": "X", "pid": 1,
                "tid": tracks[step.backend], "ts": begun / 1000, "dur": step.nanoseconds / 1000,
                "args": {"operator": step.operator, "bytes": step.bytes},
            }
        )  # fmt: skip
        begun += step.nanoseconds
    return json.dumps({"traceEvents": events}, separators=(",", ":"))


def _label(what: str, track: int, text: str) -> dict[str, object]:
    return {"name": what, "ph": "M", "pid": 1, "tid": track, "args": {"name": text}}
