"""A run of a program with lanes in time: simulated, and checked by what shares no code with it."""

from arenite.planner.timing.check import check_timeline
from arenite.planner.timing.simulate import simulate
from arenite.planner.timing.timeline import Span, Timeline

__all__ = ["Span", "Timeline", "check_timeline", "simulate"]
