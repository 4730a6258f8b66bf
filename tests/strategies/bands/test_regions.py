"""Walks of regions: turns and peaks worked out by hand, and against the derived records."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from arenite.pipeline.targets.compiling import lower_model
from arenite.planner.errors import MissingDependencyError
from arenite.planner.placement.problem import load_spans
from arenite.planner.programs.row_steps import row_step
from arenite.planner.programs.rules import Rules
from arenite.planner.rewrites.derivation import derive
from arenite.planner.tensors import num_rows
from arenite.strategies.bands import regions as module
from arenite.strategies.bands.expand import BandedRegion, expand
from arenite.strategies.bands.regions import BandWalk, Region, Regions
from arenite.strategies.base import native
from support.banding import COSTS, chains
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

PADDED = """(float[1,1,4,2] x) => (y) <float[1,1,3,1] w, float[1,1,3,1] v>
{ a = Conv<pads=[1,0,1,0]>(x, w) b = Conv<pads=[1,0,1,0]>(a, v) y = Abs(b) }"""
"""Rows of 8 B: each row of `a` and of `b` reads the one above, itself, and the one below."""

SUMMED = """(float[1,1,4,2] x) => (y) <float[1,1,1,1] w>
{ a = Conv(x, w) b = GlobalAveragePool(a) y = Abs(b) }"""


def lowered(folder, text):
    """Return the program of a network with random weights."""
    return lower_model(save(folder, with_random_weights(parse(text)))).program


def turns_of(regions, region):
    return [tuple(turn) for turn in regions.turns(region)]


def test_each_step_makes_the_rows_that_the_next_one_needs(tmp_path):
    program = lowered(tmp_path, PADDED)
    regions = Regions(program, COSTS)
    start = next(index for index, step in enumerate(program.steps) if step.outputs[0] == "a")
    found = turns_of(regions, Region(start, start + 2))
    a, b = start, start + 1
    assert found == [
        (a, 0, 1), (a, 1, 1), (b, 0, 1), (a, 2, 1), (b, 1, 1), (a, 3, 1), (b, 2, 1), (b, 3, 1),
    ]  # fmt: skip


def test_rows_are_live_from_their_turn_to_their_last_reader(tmp_path):
    program = lowered(tmp_path, PADDED)
    start = next(index for index, step in enumerate(program.steps) if step.outputs[0] == "a")
    found = Regions(program, COSTS).walk(Region(start, start + 2))
    # Before row 2 of `a`: 3 rows of x, 2 of `a`, 1 of `b`; it makes the seventh.
    assert found.peak == 7 * 8


def test_bands_of_two_rows_halve_the_turns(tmp_path):
    program = lowered(tmp_path, PADDED)
    start = next(index for index, step in enumerate(program.steps) if step.outputs[0] == "a")
    found = turns_of(Regions(program, COSTS), Region(start, start + 2, 2, 2))
    assert found == [
        (start, 0, 2), (start, 2, 1), (start + 1, 0, 2), (start, 3, 1), (start + 1, 2, 2),
    ]  # fmt: skip


def test_a_limit_ends_a_walk_that_goes_above_it(tmp_path):
    regions = Regions(lowered(tmp_path, PADDED), COSTS)
    region = Region(0, next(iter([*regions.stops_after(0)][-1:])))
    found = regions.walk(region)
    assert found is not None
    assert regions.walk(region, found.peak) == found
    assert regions.walk(region, found.peak - 1) is None
    assert found.turns == len(regions.turns(region))


def test_sums_of_rows_take_no_result_before_the_last(tmp_path):
    program = lowered(tmp_path, SUMMED)
    regions = Regions(program, COSTS)
    summing = next(index for index, step in enumerate(regions.steps) if step and step.accumulators)
    turns = regions.turns(Region(summing - 1, summing + 1))
    assert [turn.rows for turn in turns] == [1] * 8
    assert [turn.step - summing for turn in turns] == [-1, 0] * 4


def test_the_time_of_turns_adds_up(tmp_path):
    program = lowered(tmp_path, PADDED)
    regions = Regions(program, COSTS)
    stop = [*regions.stops_after(0)][-1]
    whole = sum(regions.seconds(step) for step in range(stop))
    found = regions.walk(Region(0, stop, 64, 64))
    assert isinstance(found, BandWalk)
    assert found.seconds == pytest.approx(whole)
    finer = regions.walk(Region(0, stop))
    assert finer.seconds > found.seconds


def load_of(program, regions, region):
    """Return the most bytes that are live in a region, by the records of the program in bands."""
    turns = regions.turns(region)
    steps = tuple(each for each in regions.steps[region.start : region.stop] if each)
    banded = BandedRegion(region.start, steps, turns, regions.surroundings(region))
    counted = Rules(alignment=1, outlines=True)
    problem = derive(expand(program, [banded]), counted).problem
    return max(
        span.load
        for span in load_spans(problem.records)
        if span.end > region.start and span.start < region.start + len(turns)
    )


def check_walks(program):
    """Compare the peak of each region with the load of the records that derive from its turns."""
    regions = Regions(program, COSTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "row_step", without_overwriting)
        apart = Regions(program, COSTS)
    compared = 0
    for start in range(len(program.steps)):
        for stop in regions.stops_after(start):
            for rows in (1, 2):
                region = Region(start, stop, rows, rows)
                found, plain = regions.walk(region), apart.walk(region)
                assert found.turns == plain.turns == len(regions.turns(region))
                if not skips_rows(program, regions, region):
                    assert plain.peak == load_of(program, apart, region), region
                assert found.peak <= plain.peak
                compared += 1
    return compared


def skips_rows(program, regions, region):
    """Tell whether some step leaves out rows, for which the peak of a walk is not exact."""
    for each in regions.steps[region.start : region.stop]:
        for reads in each.reads:
            ends = [0, *reads.stop]
            starts = [*reads.first, num_rows(program.tensors[reads.tensor])]
            if any(start > end for start, end in zip(starts, ends, strict=True)):
                return True
    return False


def without_overwriting(program, step):
    """Return how a step can run row by row, its rows apart from those of its operands."""
    found = row_step(program, step)
    return None if found is None else replace(found, overwritable=())


@pytest.mark.parametrize("text", [PADDED, SUMMED])
def test_the_peak_is_the_load_of_the_program_in_bands(tmp_path, text):
    assert check_walks(lowered(tmp_path, text)) > 0


@settings(max_examples=15, deadline=None)
@given(chains())
def test_the_peak_of_random_networks_is_their_load(tmp_path_factory, text):
    check_walks(lowered(tmp_path_factory.mktemp("network"), text))


@pytest.mark.usefixtures("without_core")
def test_without_the_core_it_is_named_as_missing(tmp_path):
    program = lowered(tmp_path, PADDED)
    with pytest.raises(MissingDependencyError, match="running in bands"):
        Regions(program, COSTS)


def test_once_the_time_is_up_no_step_is_looked_at(tmp_path, monkeypatch):
    program = lowered(tmp_path, PADDED)
    asked = []
    monkeypatch.setattr(module, "row_step", lambda program, step: asked.append(step))
    regions = Regions(program, COSTS, should_stop=lambda: len(asked) == 1)
    assert regions.steps == (None,) * len(program.steps)
    assert len(asked) == 1
