"""The load over the steps as storages are put inside one another."""

import copy
from collections.abc import Collection, Sequence

from arenite.planner.placement.problem import Problem


class Loads:
    """How many bytes are live at each step.

    Args:
        problem: The records, each named after its storage.
    """

    def __init__(self, problem: Problem) -> None:
        self._lives = {r.name: (r.size, r.start, r.end) for r in problem.records}
        self._loads = [0] * problem.num_steps
        for record in problem.records:
            for step in range(record.start, record.end):
                self._loads[step] += record.size

    def cheapest(self, outer: str, inner: Sequence[str]) -> str:
        """Return which one of the storages to put inside `outer`, which holds but one of them.

        Least is the largest load, then the bytes over all steps concerned. The first of those
        alike is returned, and the first of all if none is in the arena.

        Cost: O(storages x steps they live).
        """
        lives = self._lives
        ranked = [name for name in inner if name in lives]
        if len(ranked) < 2 or outer not in lives:
            return (*ranked, *inner)[0]
        concerned = [lives[name] for name in (outer, *ranked)]
        first = min(start for _, start, _ in concerned)
        last = max(end for _, _, end in concerned)

        def price(name: str) -> tuple[int, int]:
            size, start, end = lives[outer]
            inner_size, inner_start, inner_end = lives[name]
            loads = self._loads[first:last]
            for step in range(inner_start, inner_end):
                loads[step - first] -= inner_size
            for step in (*range(inner_start, start), *range(end, inner_end)):
                loads[step - first] += size
            return max(loads), sum(loads)

        return min(ranked, key=price)

    def best(self, outer: str, inner: Sequence[str]) -> tuple[str, ...]:
        """Return which of the storages to put inside `outer` for the least load.

        Each may extend the lifetime of `outer`; those that extend it least cost nothing once
        the others are inside. Among choices with the same largest load the one with the fewest
        bytes over the steps concerned wins; if no choice lowers the load, none is returned.

        Cost: O(storages x steps they live).
        """
        lives = self._lives
        # The caller's storages and constants are not in the arena and take nothing.
        size, start, end = lives.get(outer, (0, 0, len(self._loads)))
        ranked = sorted(
            (name for name in inner if name in lives),
            key=lambda name: max(0, start - lives[name][1]) + max(0, lives[name][2] - end),
        )
        if not ranked:
            return ()
        first = min(start, *(lives[name][1] for name in ranked))
        last = max(end, *(lives[name][2] for name in ranked))
        loads = self._loads[first:last]
        least, count = (max(loads), sum(loads)), 0
        for number, name in enumerate(ranked, 1):
            inner_size, inner_start, inner_end = lives[name]
            for step in range(inner_start, inner_end):
                loads[step - first] -= inner_size
            for step in (*range(inner_start, start), *range(end, inner_end)):
                loads[step - first] += size
            start, end = min(start, inner_start), max(end, inner_end)
            now = (max(loads), sum(loads))
            if now < least or (count and now == least):
                least, count = now, number
        return tuple(ranked[:count])

    def lay(self, outer: str, inner: str) -> None:
        """Put the storage `inner` inside `outer`."""
        inner_size, inner_start, inner_end = self._lives.pop(inner)
        for step in range(inner_start, inner_end):
            self._loads[step] -= inner_size
        if outer not in self._lives:
            return
        size, start, end = self._lives[outer]
        for step in (*range(inner_start, start), *range(end, inner_end)):
            self._loads[step] += size
        self._lives[outer] = (size, min(start, inner_start), max(end, inner_end))

    @property
    def peak(self) -> int:
        """The first step of the largest load."""
        return self._loads.index(max(self._loads))

    @property
    def height(self) -> tuple[int, int]:
        """The largest load, and at how many steps it is reached."""
        largest = max(self._loads, default=0)
        return largest, self._loads.count(largest)

    def holds(self, *storages: str) -> bool:
        """Tell whether all of these storages are in the arena."""
        return self._lives.keys() >= {*storages}

    def merge(self, name: str, size: int, storages: Collection[str]) -> None:
        """Replace storages by a new one that contains them.

        Cost: O(steps they live).
        """
        lives = [self._lives.pop(each) for each in storages]
        for inner_size, inner_start, inner_end in lives:
            for step in range(inner_start, inner_end):
                self._loads[step] -= inner_size
        start, end = min(life[1] for life in lives), max(life[2] for life in lives)
        for step in range(start, end):
            self._loads[step] += size
        self._lives[name] = (size, start, end)

    def copy(self) -> "Loads":
        """Return loads that change independently of these."""
        return copy.deepcopy(self)
