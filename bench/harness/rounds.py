"""Measurements in turn, so that what slows the machine down slows all of them."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the wall-clock seconds that work takes, and what it returns."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def mean_processor_seconds(work: Callable[[], object], at_least_s: float) -> float:
    """Return the processor time that work takes, the mean over as often as fits a time.

    Args:
        work: Run at least once.
        at_least_s: Seconds of processor time after which it is not run again.
    """
    count, begun = 0, time.process_time()
    while not count or time.process_time() - begun < at_least_s:
        work()
        count += 1
    return (time.process_time() - begun) / count


def interleaved(
    measurements: Mapping[str, Callable[[], Result]],
    num_rounds: int,
    *,
    at_least_s: float = 0.0,
) -> dict[str, list[Result]]:
    """Return what each measurement gives, round by round: entries of one index are paired.

    Each round begins with another of them, so that none is always the first.

    Args:
        measurements: By name.
        num_rounds: At least so many.
        at_least_s: Seconds before which no round is the last.
    """
    names = list(measurements)
    found: dict[str, list[Result]] = {name: [] for name in names}
    ends = time.perf_counter() + at_least_s
    number = 0
    while number < num_rounds or time.perf_counter() < ends:
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(measurements[name]())
        number += 1
    return found
