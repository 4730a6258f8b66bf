"""The cheapest way through a program: whole steps and regions, none above a peak."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from arenite.planner.rewrites.bands.walk import Region
from arenite.strategies.fit.regions import Regions

_LONGEST = 48
"""Steps of the longest region that is tried."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one place between steps to a later one.

    Attributes:
        stop: Index after the last step.
        peak: Most bytes that are live on the way.
        turns: Turns that it takes.
        region: The region; None for a single step that runs whole.
    """

    stop: int
    peak: int
    turns: int
    region: Region | None = None


@dataclass(slots=True)
class Edges:
    """The edges of a program, found when they are asked for.

    Attributes:
        regions: What can run in bands.
        loads: Bytes that are live at each step of the program that runs whole.
    """

    regions: Regions
    loads: tuple[int, ...]
    _known: dict[tuple[int, int], Edge] = field(default_factory=dict)
    _above: dict[tuple[int, int], int] = field(default_factory=dict)

    def within(self, start: int, peak: int) -> Iterator[Edge]:
        """Yield the edges from a place on that do not go above a peak."""
        if self.loads[start] <= peak:
            yield Edge(start + 1, self.loads[start], 1)
        for stop in self.regions.stops_after(start):
            if stop - start > _LONGEST:
                return
            edge = self._edge(start, stop, peak)
            if edge is not None:
                yield edge

    def _edge(self, start: int, stop: int, peak: int) -> Edge | None:
        known = self._known.get((start, stop))
        if known is not None:
            return known if known.peak <= peak else None
        if self._above.get((start, stop), -1) >= peak:
            return None
        region = Region(start, stop)
        walk = self.regions.walk(region, peak)
        if walk is None or walk.peak is None:
            self._above[start, stop] = peak
            return None
        edge = Edge(stop, walk.peak, len(walk.turns), region)
        self._known[start, stop] = edge
        return edge


def least_peak(edges: Edges, precision: float = 0.002) -> int:
    """Return the least peak below which there is a way through, within a fraction of it."""
    low, high = 0, max(edges.loads, default=0)
    while high - low > max(1, int(precision * high)):
        middle = (low + high) // 2
        path = _through(edges, middle)
        if path is None:
            low = middle
        else:
            high = max(edge.peak for edge in path)
    return high


def _through(edges: Edges, peak: int) -> list[Edge] | None:
    """Return some way through that does not go above a peak, None if there is none."""
    came: dict[int, tuple[int, Edge]] = {}
    goal = len(edges.loads)
    waiting, seen = [0], {0}
    while waiting and goal not in came:
        place = max(waiting)
        waiting.remove(place)
        for edge in edges.within(place, peak):
            if edge.stop not in seen:
                seen.add(edge.stop)
                came[edge.stop] = (place, edge)
                waiting.append(edge.stop)
    return _back(came, goal) if goal in came or goal == 0 else None


def smoothest(edges: Edges, peak: int) -> list[Edge] | None:
    """Return the way through below a peak of which the places near the peak are fewest.

    Plans of smooth profiles come closer to the load.
    """
    goal = len(edges.loads)
    cost = {0: 0.0}
    came: dict[int, tuple[int, Edge]] = {}
    for place in range(goal):
        if place not in cost:
            continue
        for edge in edges.within(place, peak):
            price = cost[place] + (edge.peak / peak) ** 6 + 1e-5 * edge.turns
            if price < cost.get(edge.stop, float("inf")):
                cost[edge.stop] = price
                came[edge.stop] = (place, edge)
    return _back(came, goal) if goal in came or goal == 0 else None


def _back(came: dict[int, tuple[int, Edge]], goal: int) -> list[Edge]:
    path: list[Edge] = []
    while goal:
        goal, edge = came[goal]
        path.append(edge)
    return path[::-1]
