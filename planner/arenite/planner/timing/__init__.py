"""A run of a program with lanes in time: simulated, and checked by code that shares none."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.timing.check import check_timeline
    from arenite.planner.timing.simulation import simulate
    from arenite.planner.timing.timeline import Span, Timeline
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = ["Span", "Timeline", "check_timeline", "simulate"]
