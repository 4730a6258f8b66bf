"""Run steps in bands whose tensors exceed the cache of a processor.

It needs no budget. Where a step makes a tensor larger than the cache for the next one alone,
whole steps write it to memory and read it back. A few rows at a time it stays in the cache, and
it takes a fraction of the arena. Each turn reads all weights of its step, so those must stay there
too.
"""

from collections import Counter
from collections.abc import Callable

from arenite.planner import Program, ShouldStop
from arenite.planner.programs import SD_CARD, RowStep, never
from arenite.strategies.bands.paths import SearchStoppedError
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.bands.search import run_in_bands
from arenite.strategies.base import native

_CACHE = 512 * 1024
"""Bytes that a core's second cache holds, or its share of one."""
_ROWS = 8
"""Rows of a band: few enough for the cache, enough for threads to share."""
_MOST_BANDS = 256
"""Bands of a tensor; a tensor of many short rows, such as a list of boxes, has more rows in each.
Every turn is a step of the program, which derivation and placement visit."""


def beyond_cache(regions: Regions) -> tuple[Region, ...]:
    """Return the regions whose steps hand each other more than the cache holds, in order.

    Cost: O(operands of all steps).
    """
    program = regions.program
    readers = Counter(name for step in program.steps for name in {*step.reads})
    readers.update(program.output_tensors)
    found: list[Region] = []
    start = 0
    while start < len(program.steps):
        stop = start + 1
        if _hands_over(regions, readers, start):
            for end in regions.stops_after(start):
                stop = end
                if not _hands_over(regions, readers, end - 1):
                    break
        if stop - start > 1:
            rows = max(_ROWS, *(_rows_of_a_band(regions, index) for index in range(start, stop)))
            found.append(Region(start, stop, rows, rows))
        start = stop
    return tuple(found)


def bands_for_cache(
    program: Program,
    is_allowed: Callable[[RowStep], bool] = lambda _: True,
    should_stop: ShouldStop = never,
) -> Program | None:
    """Return the program with those regions in bands.

    None if there is none, or no native core, or the time is up.

    Args:
        is_allowed: Whether a step that could run row by row may.
    """
    if not native.is_built():
        return None
    made = (program.tensors[name] for step in program.steps for name in step.outputs)
    if all(tensor.size <= _CACHE for tensor in made):
        return None
    # Any costs: the choice does not ask for time.
    regions = Regions(program, SD_CARD, is_allowed, should_stop=should_stop)
    chosen = beyond_cache(regions)
    try:
        return run_in_bands(regions, chosen, should_stop) if chosen else None
    except SearchStoppedError:
        return None


def _rows_of_a_band(regions: Regions, index: int) -> int:
    """Return the least rows of which a step takes no more than the most bands."""
    step = regions.steps[index]
    return 1 if step is None else -(-step.num_rows // _MOST_BANDS)


def _hands_over(regions: Regions, readers: Counter[str], index: int) -> bool:
    """Tell whether a step makes a tensor beyond the cache, for the next step alone."""
    pair = regions.steps[index : index + 2]
    if len(pair) < 2 or any(each is None or each.constant_bytes > _CACHE for each in pair):
        return False
    step, after = regions.program.steps[index : index + 2]
    return any(
        regions.program.tensors[name].size > _CACHE and name in after.reads and readers[name] == 1
        for name in step.outputs
    )
