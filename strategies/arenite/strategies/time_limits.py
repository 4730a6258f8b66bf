"""A time limit, as a watch that the caller of a search hands in."""

import time
from collections.abc import Callable

from arenite.planner import Plan
from arenite.planner.placement import Watch


def time_is_up(seconds: float) -> Callable[[], bool]:
    """Return a function that tells whether `seconds` have passed since this call."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def deadline(seconds: float) -> Watch:
    """Return a watch that stops a search `seconds` after this call."""
    is_over = time_is_up(seconds)

    def watch(_best: Plan | None, _lower_bound: int) -> bool:
        return is_over()

    return watch
