"""The cheapest way through a program: whole steps and regions in bands, none above a peak."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from arenite.planner import ShouldStop
from arenite.strategies.bands.regions import Region, Regions

_ROWS = (1, 2, 4, 8, 16, 32, 64)
"""Rows of a band that are tried."""
_SMOOTH = 6
"""How much more a peak near the limit counts than a lower one: the power of their ratio."""
_PRECISION = 0.002
"""How far the least peak may be off, as a fraction of it."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one place between steps to a later one.

    Attributes:
        stop: Index after the last step.
        peak: Most bytes that are live on the way.
        turns: Turns that it takes.
        seconds: Estimated time.
        region: The region; None for a single step that runs whole.
    """

    stop: int
    peak: int
    turns: int
    seconds: float
    region: Region | None = None


EdgePath: TypeAlias = tuple[Edge, ...]


class SearchStoppedError(Exception):
    """The caller stopped a search."""


@dataclass(slots=True)
class Edges:
    """The edges of a program, found when they are asked for.

    Attributes:
        loads: Bytes that are live at each step of the program that runs whole.
        should_stop: Asked between walks; True ends the search with `SearchStoppedError`.
        in_strips: Most steps of a region that exceeds a peak and may run in strips of columns.
    """

    regions: Regions
    loads: tuple[int, ...]
    should_stop: ShouldStop
    in_strips: int = 0
    _known: dict[Region, Edge] = field(default_factory=dict)
    _above: dict[Region, int] = field(default_factory=dict)

    def within(self, start: int, peak: int, *, smooth: bool = False) -> Iterator[Edge]:
        """Yield the edges from a place on that do not go above a peak.

        Args:
            start: Index of the first step.
            smooth: Whether to yield regions of single rows that could run whole, too; else only
                those that cannot, with the most rows a band that the peak allows.
        """
        if self.loads[start] <= peak:
            yield self.whole(start)
        is_needed = smooth
        in_strips = True
        for stop in self.regions.stops_after(start):
            is_needed = is_needed or self.loads[stop - 1] > peak
            if not is_needed:
                continue
            edge = self._edge(Region(start, stop), peak)
            if edge is None and in_strips and 1 < stop - start <= self.in_strips:
                edge, in_strips = self._in_strips(start, stop, peak)
            if edge is not None and not smooth:
                edge = self._coarsest(edge, peak)
            if edge is not None:
                yield edge

    def whole(self, start: int) -> Edge:
        """Return the edge of one step that runs whole."""
        return Edge(start + 1, self.loads[start], 1, self.regions.seconds(start))

    def _in_strips(self, start: int, stop: int, peak: int) -> tuple[Edge | None, bool]:
        """Return the edge in the widest strips that stay within a peak, and if more may."""
        widths = self.regions.widths(start, stop)
        if not widths:
            return None, True
        low, high = 0, len(widths)
        found: Edge | None = None
        while low < high:
            middle = (low + high) // 2
            edge = self._edge(Region(start, stop, columns=widths[middle]), peak)
            if edge is None:
                low = middle + 1
            else:
                found, high = edge, middle
        is_too_long = found is None and not self.regions.fits_between(
            Region(start, stop, columns=widths[-1]), peak
        )
        return found, not is_too_long

    def _coarsest(self, finest: Edge, peak: int) -> Edge:
        """Return the edge of the same steps with the most rows a band that stays within a peak."""
        best, region = finest, finest.region
        assert region is not None
        low, high = 0, len(_ROWS) - 1
        while low < high:
            middle = (low + high + 1) // 2
            rows = _ROWS[middle]
            edge = self._edge(region._replace(rows=rows, inner_rows=rows), peak)
            if edge is None:
                high = middle - 1
            else:
                low = middle
                best = edge if edge.seconds < best.seconds else best
        return best

    def _edge(self, region: Region, peak: int) -> Edge | None:
        known = self._known.get(region)
        if known is not None:
            return known if known.peak <= peak else None
        if self._above.get(region, -1) >= peak:
            return None
        if self.should_stop():
            raise SearchStoppedError
        walk = self.regions.walk(region, peak)
        if walk is None:
            self._above[region] = peak
            return None
        edge = Edge(region.stop, *walk, region)
        self._known[region] = edge
        return edge


def least_peak(edges: Edges) -> int:
    """Return the least peak below which there is a way through, within a fraction of it."""
    low, high = 0, max(edges.loads, default=0)
    while high - low > max(1, int(_PRECISION * high)):
        middle = (low + high) // 2
        path = _through(edges, middle)
        if path is None:
            low = middle
        else:
            high = max(edge.peak for edge in path)
    return high


def _through(edges: Edges, peak: int) -> EdgePath | None:
    """Return some way through that does not go above a peak, None if there is none."""
    came: dict[int, tuple[int, Edge]] = {}
    goal = len(edges.loads)
    waiting, seen = [0], {0}
    while waiting and goal not in came:
        place = max(waiting)
        waiting.remove(place)
        for edge in edges.within(place, peak, smooth=True):
            if edge.stop not in seen:
                seen.add(edge.stop)
                came[edge.stop] = (place, edge)
                waiting.append(edge.stop)
    return _back(came, goal) if goal in came or goal == 0 else None


def smoothest(edges: Edges, peak: int) -> EdgePath | None:
    """Return the way through within a peak that is near it at the fewest places.

    Plans of smooth profiles come closer to the load.
    """
    return _cheapest(
        edges, peak, lambda edge: (edge.peak / peak) ** _SMOOTH + 1e-5 * edge.turns, smooth=True
    )


def quickest(edges: Edges, peak: int, *, smooth: bool = False) -> EdgePath | None:
    """Return the way through within a peak that takes the least time, None if there is none.

    Args:
        smooth: Whether regions run in single rows, which is quicker to find.
    """
    return _cheapest(edges, peak, lambda edge: edge.seconds, smooth=smooth)


def quickest_above(edges: Edges, room: int, byte_s: float) -> EdgePath:
    """Return the way through that takes the least time where bytes above a room take more.

    Args:
        room: Bytes of a quick memory; regions in bands stay within it.
        byte_s: Seconds that each byte above it adds to a step that runs whole.
    """

    def price(edge: Edge) -> float:
        return edge.seconds + max(0, edge.peak - room) * byte_s

    def ways(place: int) -> Iterator[Edge]:
        if edges.loads[place] > room:
            yield edges.whole(place)
        yield from edges.within(place, room)

    path = _cheapest_of(len(edges.loads), ways, price)
    assert path is not None  # a step that runs whole may take any bytes
    return path


def _cheapest(
    edges: Edges, peak: int, price: Callable[[Edge], float], *, smooth: bool = False
) -> EdgePath | None:
    return _cheapest_of(
        len(edges.loads), lambda place: edges.within(place, peak, smooth=smooth), price
    )


def _cheapest_of(
    goal: int, ways: Callable[[int], Iterator[Edge]], price: Callable[[Edge], float]
) -> EdgePath | None:
    cost = {0: 0.0}
    came: dict[int, tuple[int, Edge]] = {}
    for place in range(goal):
        if place not in cost:
            continue
        for edge in ways(place):
            total = cost[place] + price(edge)
            if total < cost.get(edge.stop, math.inf):
                cost[edge.stop] = total
                came[edge.stop] = (place, edge)
    return _back(came, goal) if goal in came or goal == 0 else None


def _back(came: dict[int, tuple[int, Edge]], goal: int) -> EdgePath:
    path: list[Edge] = []
    while goal:
        goal, edge = came[goal]
        path.append(edge)
    return tuple(path[::-1])
