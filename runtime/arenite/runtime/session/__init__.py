"""Run a model with every tensor at its planned offset."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.session.session import MAX_THREADS, Session, SessionOptions
    from arenite.runtime.session.stated import (
        ArenaMemory,
        SessionMemory,
        SessionPort,
        StepProfile,
        Tuned,
        chrome_trace,
        processor_name,
    )
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "session": "MAX_THREADS Session SessionOptions",
            "stated": (
                "ArenaMemory SessionMemory SessionPort StepProfile Tuned chrome_trace "
                "processor_name"
            ),
        },
    )

__all__ = [
    "MAX_THREADS", "ArenaMemory", "Session", "SessionMemory", "SessionOptions", "SessionPort",
    "StepProfile", "Tuned", "chrome_trace", "processor_name",
]  # fmt: skip
