"""Programs of which blocks run as one in strips, each in the widest that a peak allows.

A block widens its image before it slides a window over it, and narrows the result. At first every
block of a program runs in narrow strips, a row of its result at a time, so that only what lies
between blocks is kept. Then each in turn takes the way of the least work that still has a way
through within the peak: wide strips, only its last steps in strips, or none.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from arenite.planner import Candidate, Program, Step
from arenite.planner.tensors import has_rows, row_bytes
from arenite.strategies.bands.binding import BandsLimitError, binding_of
from arenite.strategies.bands.paths import SearchStoppedError
from arenite.strategies.bands.search import BandsSearch, descending
from arenite.strategies.bands.strips import fused_step, with_fused

_LONGEST = 4
"""Most steps of a block."""
_NUMBERS = (1, 2, 3, 4, 6, 9, 12, 18)
"""Numbers of strips that are tried."""
_LEVELS = 6
"""Peaks that a frontier tries."""
_ATTEMPTS = 6
"""Peaks that are tried before a plan fits a budget."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a block.

    Attributes:
        steps: Those that run as one.
        step: That one; None if each step of the block runs for itself.
        work: Multiply-adds beyond those of the steps.
        scratch: Bytes between its steps.
    """

    steps: range
    step: Step | None
    work: int
    scratch: int


Block: TypeAlias = Sequence[Way]
"""The ways to run a block, those of the least work first."""
Search: TypeAlias = Callable[[Program], BandsSearch]


class ChainsSearch:
    """Searches programs whose blocks run in strips, by what little they recompute."""

    def __init__(self, given: BandsSearch, search: Search, most_work: float) -> None:
        """Find the blocks.

        Args:
            given: The search of the program whose steps run for themselves.
            search: Returns the search of another program, which looks for lower ones than the
                lowest of the given search.
            most_work: Most multiply-adds of a program.
        """
        self._given = given
        self._search = search
        self._most_work = most_work
        self._known: dict[int, Candidate | None] = {}
        self._work = given.whole.whole.multiply_adds
        self._work_s = given.whole.whole.seconds / self._work if self._work else 0.0
        self._blocks = tuple(_blocks(given.program, given.can_run_by_rows))

    @property
    def is_of_use(self) -> bool:
        """Whether there is a block."""
        return bool(self._blocks)

    def within(self, budget: int) -> Candidate:
        """Return a program whose plan fits a budget, with little work.

        Raises:
            BandsLimitError: None fits, or none was found before the search was stopped.
        """
        peak, lowest, is_stopped = budget, self._given.lowest, False
        try:
            for _ in range(_ATTEMPTS):
                found = self._at(peak)
                if found is None:
                    break
                lowest = min(lowest, found, key=lambda each: each.height)
                if lowest.height <= budget:
                    return lowest
                peak = min(peak - 1, peak * budget // found.height)
            lowest = min((lowest, *self._lower()), key=lambda each: each.height)
            if lowest.height <= budget:
                return lowest
        except SearchStoppedError:
            is_stopped = True
        raise BandsLimitError(budget, lowest.height, binding_of(lowest), is_stopped=is_stopped)

    def frontier(self) -> Iterator[Candidate]:
        """Yield the lowest program of the given search, and lower ones, each of more work."""
        lowest = self._given.lowest
        with suppress(SearchStoppedError):
            yield from descending(chain([lowest], self._lower()))

    def _lower(self) -> Iterator[Candidate]:
        """Yield programs between the lowest of the given search and the least peak."""
        top, least = self._given.lowest.height, self._search(self._program(self._narrow)).least
        for level in range(1, _LEVELS + 1):
            found = self._at(int(top * (least / top) ** (level / _LEVELS)))
            if found is None:
                return
            yield found

    @property
    def _narrow(self) -> list[Way]:
        """Every block in the narrowest strips."""
        return [
            min((way for way in ways if way.step), key=lambda way: (way.steps.start, way.scratch))
            for ways in self._blocks
        ]

    def _at(self, peak: int) -> Candidate | None:
        """Return a program whose peak is within bounds, None if there is none."""
        if peak not in self._known:
            self._known[peak] = self._found(peak)
        return self._known[peak]

    def _found(self, peak: int) -> Candidate | None:
        chosen = self._narrow
        least_s = self._seconds(chosen, peak)
        if least_s == math.inf:
            return None
        for index in sorted(range(len(chosen)), key=lambda index: -chosen[index].work):
            best = chosen[index]
            others = sum(way.work for way in chosen) - best.work
            for way in self._blocks[index]:
                if (self._work + others + way.work) * self._work_s >= least_s:
                    break  # it takes no less time, whatever runs in strips beside it
                chosen[index] = way
                seconds = self._seconds(chosen, peak)
                if seconds < least_s:
                    best, least_s = way, seconds
            chosen[index] = best
        found = self._search(self._program(chosen)).at(peak)
        return None if found is None or found.multiply_adds > self._most_work else found

    def _seconds(self, chosen: Sequence[Way], peak: int) -> float:
        return self._search(self._program(chosen)).seconds_within(peak)

    def _program(self, chosen: Sequence[Way]) -> Program:
        return with_fused(
            self._given.program, {way.steps: way.step for way in chosen if way.step is not None}
        )


def _blocks(program: Program, can_run: Callable[[range], bool]) -> Iterator[Block]:
    start, count = 0, len(program.steps)
    while start < count:
        for stop in range(min(start + _LONGEST, count), start + 1, -1):
            if can_run(range(start, stop)) and _is_block(program, range(start, stop)):
                ways = list(_ways(program, start, stop))
                if ways:
                    apart = Way(range(start, stop), None, 0, 0)
                    ways.sort(key=lambda way: (way.work, -way.scratch))
                    yield (apart, *ways)
                    start = stop - 1
                    break
        start += 1


def _is_block(program: Program, steps: range) -> bool:
    """Tell whether all rows between some steps are longer than those of its ends."""
    ends = (program.steps[steps[0]].inputs[0], program.steps[steps[-1]].outputs[0])
    between = [program.steps[index].outputs[0] for index in steps[:-1]]
    tensors = [program.tensors[name] for name in (*ends, *between) if name]
    if len(tensors) < len(ends) + len(between) or not all(map(has_rows, tensors)):
        return False
    sizes = list(map(row_bytes, tensors))
    return min(sizes[len(ends) :]) > max(sizes[: len(ends)])


def _ways(program: Program, start: int, stop: int) -> Iterator[Way]:
    """Yield the ways to run steps, or all but the first ones, in strips."""
    operands = [program.operands(each) for each in program.steps[start:stop]]
    result = operands[-1].result
    assert result is not None
    if len(result.shape) != 4:
        return
    columns = int(result.shape[2])
    for first in range(start, stop - 1):
        work = sum(
            program.steps[index].operator.multiply_adds(operands[index - start])
            for index in range(first, stop)
        )
        widths = dict.fromkeys(-(-columns // number) for number in _NUMBERS)
        for width in widths:
            step = fused_step(program, first, stop, width)
            if step is None:
                break
            its = program.operands(step)
            again = step.operator.multiply_adds(its) - work
            yield Way(range(first, stop), step, again, step.operator.row_scratch(its))
