"""Fit a program into a budget by running parts of it in bands of rows."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

from arenite.planner import (
    Boundary,
    Candidate,
    Costs,
    Problem,
    Program,
    Rules,
    ShouldStop,
    Step,
    derive,
)
from arenite.planner.placement import Placer, load_spans
from arenite.planner.programs import RowStep, never
from arenite.strategies.bands.binding import BandsLimitError, binding_of
from arenite.strategies.bands.expand import BandedRegion, StripOfRegion, expand
from arenite.strategies.bands.paths import (
    EdgePath,
    Edges,
    SearchStoppedError,
    least_peak,
    quickest,
    quickest_above,
    smoothest,
)
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.bands.strips import unfold

_LEVELS = 8
"""Peaks that a frontier tries, from that of the whole program to the least."""
_LEVELS_BELOW = 2
"""The same from the height of another program on."""
_LEVELS_IN_STRIPS = 4
"""The same where regions may run in strips of columns, which cost the more the lower they go."""
_NEAR = 1.02
"""A peak near the least, as a multiple of it, that a search below another program tries too: the
least takes bands of single rows."""
_ATTEMPTS = 6
"""Peaks that are tried before a plan fits a budget."""


def descending(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Yield the first of some programs, and each that is lower than all before it."""
    height = math.inf
    for each in candidates:
        if each.height < height:
            height = each.height
            yield each


@dataclass(frozen=True, slots=True)
class InBands:
    """Which parts of a candidate run in bands.

    Attributes:
        base: The program of whose steps the regions are; some may be several in strips.
        regions: The regions.
    """

    base: Program
    regions: tuple[Region, ...]

    @classmethod
    def of(cls, candidate: Candidate) -> Self:
        """Return the note of a candidate; without regions if nothing in it runs in bands."""
        found = candidate.note(cls)
        return cls(candidate.unshared, ()) if found is None else found


class BandsSearch:
    """The ways to run a program in bands, within any budget.

    Attributes:
        whole: The program that runs whole, or the one to go below.
        lowest: The one of the least height that was found so far.
        is_allowed: Whether a step that could run row by row may.
    """

    def __init__(
        self,
        program: Program,
        rules: Rules,
        costs: Costs,
        place: Placer,
        should_stop: ShouldStop = never,
        is_allowed: Callable[[RowStep], bool] = lambda _: True,
        above: Candidate | None = None,
        in_strips: int = 0,
        known: dict[int, tuple[Step, RowStep | None]] | None = None,
    ) -> None:
        """Find the regions that can run in bands.

        Args:
            program: The program in its final order, none of its storage shared.
            should_stop: Asked repeatedly; True ends searches with their results so far.
            is_allowed: Whether a step that could run row by row may.
            above: Another program of the same model, to begin with instead of the whole one; the
                search looks for lower ones.
            in_strips: Most steps of a region that may run in strips of columns, too.
            known: Steps of other programs, for `Regions`.
        """
        self._place = place
        self.is_allowed = is_allowed
        outside = (*program.input_tensors, *program.output_tensors)
        self._regions = Regions(
            program,
            costs,
            is_allowed,
            outside if rules.boundary is Boundary.EXCLUDE else (),
            should_stop,
            known,
        )
        self._rules = replace(rules, outlines=True, by_rows=self._regions.by_rows)
        self._known: dict[tuple[Region, ...], Candidate] = {}
        whole = derive(program, rules)
        loads = _loads(whole.problem, len(program.steps))
        self._edges = Edges(self._regions, loads, should_stop, in_strips)
        if above is not None:
            self._levels = _LEVELS_IN_STRIPS if in_strips else _LEVELS_BELOW
            self._top = above.height
            self.whole = self.lowest = above
            return
        self._levels, self._top = _LEVELS, max(loads, default=0)
        seconds = sum(self._edges.whole(step).seconds for step in range(len(program.steps)))
        plan = place(whole.problem)
        self.whole = Candidate(whole.program, whole.problem, plan, seconds, program)
        self.lowest = self.whole

    @property
    def program(self) -> Program:
        """The program, none of it in bands."""
        return self._regions.program

    @property
    def steps_by_rows(self) -> frozenset[str]:
        """Names of the steps that can run row by row."""
        return frozenset(each.step.name for each in self._regions.steps if each is not None)

    def can_run_by_rows(self, steps: range) -> bool:
        """Tell whether each of some steps can run row by row."""
        return all(self._regions.steps[step] is not None for step in steps)

    def within(self, budget: int) -> Candidate:
        """Return the quickest program whose plan fits a budget.

        Raises:
            BandsLimitError: None fits, or none was found before the search was stopped.
        """
        if self.whole.height <= budget:
            return self.whole
        peak, lowest, is_stopped = budget, self.whole, False
        try:
            for _ in range(_ATTEMPTS):
                path = quickest(self._edges, peak)
                if path is None:
                    break
                lowest = min(self._planned(path), lowest, key=lambda each: each.height)
                if lowest.height <= budget:
                    return lowest
                peak = min(peak - 1, peak * budget // lowest.height)
        except SearchStoppedError:
            is_stopped = True
        found = [lowest, *self.frontier()]
        fitting = [each for each in found if each.height <= budget]
        if fitting:
            return min(fitting, key=lambda each: each.seconds)
        lowest = min(found, key=lambda each: each.height)
        is_stopped = is_stopped or self._edges.should_stop()
        binding = binding_of(lowest)
        raise BandsLimitError(budget, lowest.height, binding, is_stopped=is_stopped)

    def frontier(self) -> Iterator[Candidate]:
        """Yield programs of descending height, each slower than the one before."""
        with suppress(SearchStoppedError):
            yield from descending(chain([self.whole], self._lower()))

    @property
    def least(self) -> int:
        """The least peak of a way through."""
        return least_peak(self._edges)

    def seconds_within(self, peak: int) -> float:
        """Return the least time of single rows that do not go above a peak; infinite if none."""
        path = quickest(self._edges, peak, smooth=True)
        return math.inf if path is None else sum(edge.seconds for edge in path)

    def at(self, peak: int) -> Candidate | None:
        """Return the lowest of some programs that do not go above a peak, None if none does.

        Its plan may be above the peak.
        """
        paths = (quickest(self._edges, peak), smoothest(self._edges, peak))
        found = [self._planned(path) for path in paths if path is not None]
        return min(found, key=lambda each: each.height, default=None)

    def above(self, room: int, byte_s: float) -> Candidate:
        """Return the quickest program if steps that run whole may exceed a room, at a price.

        Args:
            room: Most bytes of regions in bands.
            byte_s: Seconds that each byte above it adds to a step.

        Returns:
            Its plan, as any other's, is of one memory; the program that runs whole once the
            search is stopped.
        """
        try:
            return self._planned(quickest_above(self._edges, room, byte_s))
        except SearchStoppedError:
            return self.whole

    def _lower(self) -> Iterator[Candidate]:
        top, levels = self._top, self._levels
        if not top:
            return  # an arena of no bytes
        least = least_peak(self._edges)
        peaks = [
            max(least, int(top * (least / top) ** (level / levels)))
            for level in range(1, levels + 1)
        ]
        if levels != _LEVELS:
            peaks.insert(-1, int(_NEAR * least))
        for peak in peaks:
            path = quickest(self._edges, peak)
            if path is not None:
                yield self._planned(path)
        path = smoothest(self._edges, least)
        if path is not None:
            yield self._planned(path)

    def _planned(self, path: EdgePath) -> Candidate:
        regions = tuple(edge.region for edge in path if edge.region is not None)
        known = self._known.get(regions)
        if known is None:
            seconds = sum(edge.seconds for edge in path)
            known = self._known[regions] = self._lowest(regions, seconds)
            self.lowest = min(self.lowest, known, key=lambda each: each.height)
        return known

    def _lowest(self, regions: tuple[Region, ...], seconds: float) -> Candidate:
        """Return the program in bands; results over what they replace if that is lower."""
        found: list[Candidate] = []
        for lays_over in (False, True):
            banded = run_in_bands(
                self._regions, regions, self._edges.should_stop, lays_over=lays_over
            )
            if self._edges.should_stop():
                if found:
                    break
                raise SearchStoppedError
            if found and banded.tensors == found[0].unshared.tensors:
                break
            notes = (InBands(self.program, regions),)
            found.append(
                Candidate.of(banded, self._rules, self._place, seconds, self.whole.whole, notes)
            )
            if found[0].height <= found[0].problem.lower_bound:
                break  # nothing is lower
        return min(found, key=lambda each: each.height)


def run_in_bands(
    regions: Regions,
    chosen: Iterable[Region],
    should_stop: ShouldStop = never,
    *,
    lays_over: bool = False,
) -> Program:
    """Return a program with some regions in bands, and strips as ordinary steps.

    Args:
        chosen: Some that do not overlap, in order; each of their steps can run row by row.
        lays_over: Whether results are laid over what they replace, row by row.
    """

    def banded(region: Region) -> Iterator[BandedRegion | StripOfRegion]:
        steps = [each for each in regions.steps[region.start : region.stop] if each]
        found = BandedRegion(
            region.start, tuple(steps), regions.turns(region), regions.surroundings(region)
        )
        if not region.columns:
            yield found
            return
        for strip in regions.in_strips(region) or ():
            yield StripOfRegion(found, strip)

    all_regions = chain.from_iterable(map(banded, chosen))
    expanded = expand(regions.program, all_regions, should_stop, lays_over=lays_over)
    return unfold(expanded, should_stop)


def _loads(problem: Problem, num_steps: int) -> tuple[int, ...]:
    """Return the bytes that are live at each step."""
    loads = [0] * num_steps
    for span in load_spans(problem.records):
        for step in range(span.start, min(span.end, num_steps)):
            loads[step] = span.load
    return tuple(loads)
