"""The best checkpoints of a chain of equal cells, by dynamic programming."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.planner.rewrites import Schedule
from arenite.strategies.schedules.base import SchedulePolicy, cheapest
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.passes import Passes


@dataclass(frozen=True, slots=True)
class Gruslys(SchedulePolicy):
    """Take the stretches between cut points for cells, and keep some of the states between them.

    The number of states kept at once is the largest with which the program fits, as more of them
    never take more time.

    Attributes:
        most_slots: Numbers of states kept at once to try.
    """

    name: ClassVar[str] = "gruslys"
    source: ClassVar[str] = "Gruslys et al. 2016, arXiv 1606.03401, section 3.1"
    decides: ClassVar[str] = "which states of a chain are kept, and from which it runs again"

    most_slots: tuple[int, ...] = (48, 32, 24, 16, 12, 8, 6, 5, 4, 3, 2, 1)

    def decide(self, work: Work, limit: int | None, should_stop: ShouldStop) -> Schedule:
        return cheapest(self._drafts(work), limit, should_stop).schedule()

    def _drafts(self, work: Work) -> Iterator[Draft]:
        cells = _Cells(work, Passes.of(work))
        for slots in sorted({min(slots, cells.count) for slots in self.most_slots}, reverse=True):
            draft = Draft(work, cells.schedule(slots))
            yield draft


@cache
def forward_runs(cells: int, slots: int) -> tuple[int, int]:
    """Return how often cells run forward in all, and after how many to keep the first state.

    Cost: O(cells^2 slots) for all that are smaller, once.
    """
    if slots >= cells:
        return 2 * cells - 1, 1
    if slots == 1:
        return cells * (cells + 1) // 2, 0
    return min(
        (first + forward_runs(cells - first, slots - 1)[0] + forward_runs(first, slots)[0], first)
        for first in range(1, cells)
    )


class _Cells:
    """The forward pass as stretches between cut points, and the backward steps of each stretch."""

    def __init__(self, work: Work, passes: Passes) -> None:
        ends = [work.makers[storage] + 1 for storage in passes.cuts]
        bounds = sorted({0, *(end for end in ends if end < passes.turn), passes.turn})
        self.count = max(1, len(bounds) - 1)
        self._work = work
        self._forward = [range(*pair) for pair in pairwise(bounds)]
        self._backward = _backward(work, passes, bounds, self.count)

    def schedule(self, slots: int) -> list[int]:
        """Return the steps in the order in which they run, with this many states kept."""
        self._has_run: set[int] = set()
        out: list[int] = []
        if self._forward:
            self._chain(0, self.count, slots, out)
        else:
            self._run_backward(0, out)
        return out

    def _run(self, cell: int, out: list[int]) -> None:
        work = self._work
        for step in self._forward[cell]:
            again = step in self._has_run
            # Steps that cannot run again, or read a state that has changed, run once.
            if not again or (work.may_repeat[step] and work.closed_by[step] not in self._has_run):
                self._has_run.add(step)
                out.append(step)

    def _run_backward(self, cell: int, out: list[int]) -> None:
        self._has_run.update(self._backward[cell])
        out.extend(self._backward[cell])

    def _chain(self, first: int, count: int, slots: int, out: list[int]) -> None:
        """Run some cells forward and backward, the state before the first being there."""
        if count == 1:
            self._run(first, out)
            self._run_backward(first, out)
        elif slots == 1:
            for last in range(first + count - 1, first - 1, -1):
                for cell in range(first, last + 1):
                    self._run(cell, out)
                self._run_backward(last, out)
        else:
            kept = forward_runs(count, min(slots, count))[1]
            for cell in range(first, first + kept):
                self._run(cell, out)
            self._chain(first + kept, count - kept, slots - 1, out)
            self._chain(first, kept, slots, out)


def _backward(work: Work, passes: Passes, bounds: list[int], count: int) -> list[list[int]]:
    """Return the backward steps of each cell, the earliest whose tensors one of them reads."""
    found: list[list[int]] = [[] for _ in range(count)]
    cell = count - 1
    for step in range(passes.turn, work.num_steps):
        for storage in work.reads[step]:
            maker = work.makers[storage]
            if 0 <= maker < passes.turn and work.sizes[storage] >= passes.small:
                while cell and maker < bounds[cell]:
                    cell -= 1
        found[cell].append(step)
    return found
