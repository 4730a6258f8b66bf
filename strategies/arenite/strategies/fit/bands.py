"""Bands of rows: the regions of a program, and how many rows at a time."""

from collections.abc import Iterable, Sequence

from arenite.planner.program import Program
from arenite.planner.rewrites.bands.expand import BandedRegion, expand
from arenite.planner.rewrites.bands.walk import Region
from arenite.strategies.fit.paths import Edge
from arenite.strategies.fit.regions import Regions


def in_bands(regions: Regions, path: Iterable[Region]) -> Program:
    """Return the program with regions run in bands."""
    return expand(regions.program, [_banded(regions, region) for region in path])


def regions_of(path: Sequence[Edge]) -> list[Region]:
    """Return the regions on a path."""
    return [edge.region for edge in path if edge.region is not None]


def _banded(regions: Regions, region: Region) -> BandedRegion:
    walk, boundary = regions.walk(region), regions.boundary(region.start, region.stop)
    assert walk is not None and boundary is not None, f"{region} cannot run in bands"
    steps = [step for step in regions.steps[region.start : region.stop] if step is not None]
    return BandedRegion(region.start, tuple(steps), walk.turns, boundary)
