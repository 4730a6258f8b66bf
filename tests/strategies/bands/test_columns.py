"""Regions in strips of columns: the same bits, and recomputed columns are counted."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arenite.pipeline.targets.compiling import lower_model, rules, runs_by_rows
from arenite.planner.errors import OrderError
from arenite.planner.planfile.bands import RegionOf
from arenite.planner.rewrites.derivation import derive
from arenite.strategies import BandsSearch, InBands, describe_bands, rebuild_bands
from arenite.strategies.bands.columns import strips
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.bands.search import run_in_bands
from arenite.strategies.base import native
from support.banding import COSTS, assert_same_bits, chains, fed, outputs_of, placed
from support.quantised_chain import expanding
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

BLOCKS = """(float[1,4,12,18] x) => (y)
<float[8,4,3,3] f, float[24,8,1,1] a, float[24,1,3,3] d, float[8,24,1,1] p>
{ i = Conv<strides=[2,1], pads=[1,1,1,1]>(x, f) g = Conv(i, a)
  h = Conv<group=24, pads=[1,1,1,1]>(g, d) k = Conv(h, p) r = Add(i, k)
  s = Conv(r, a) t = Conv<group=24, strides=[2,2], pads=[1,1,1,1]>(s, d) y = Conv(t, p) }"""
"""A residual block between two windows: the sum reads fewer columns than the block is made of."""


WINDOWS = """(float[1,4,7,7] x) => (y) <float[4,4,3,3] w>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Conv<pads=[1,1,1,1]>(a, w) y = Conv<pads=[1,1,1,1]>(b, w) }"""


def saved(folder, text=BLOCKS):
    return lower_model(save(folder, with_random_weights(parse(text))))


def regions_of(program):
    return Regions(program, COSTS, partial(runs_by_rows, program))


def run_of(model, program):
    found = derive(program, replace(rules(), outlines=True))
    return outputs_of(model, found, placed(found.problem), fed(model))


def all_in_strips(program, most=1 << 30):
    """Yield the program with one region in strips, for every region and some widths."""
    regions = regions_of(program)
    for start, step in enumerate(regions.steps):
        if step is None:
            continue
        for stop in regions.stops_after(start):
            widths = regions.widths(start, stop)
            for width in dict.fromkeys([*widths[:1], *widths[-1:]]):
                yield run_in_bands(regions, [Region(start, stop, 1, 1, width)])
                most -= 1
                if not most:
                    return


@settings(max_examples=12, deadline=None)
@given(chains(), st.integers(1, 4))
@example(BLOCKS, 2)
def test_random_networks_make_the_same_bits_in_strips_of_columns(tmp_path_factory, text, rows):
    model = saved(tmp_path_factory.mktemp("network"), text)
    whole = run_of(model, model.program)
    for program in all_in_strips(model.program, 8 * rows):
        assert_same_bits(run_of(model, program), whole)


def test_networks_of_bytes_make_the_same_bits(tmp_path):
    path = tmp_path / "network.tflite"
    path.write_bytes(expanding())
    model = lower_model(path)
    whole = run_of(model, model.program)
    found = list(all_in_strips(model.program))
    assert found
    for program in found:
        assert_same_bits(run_of(model, program), whole)


def test_a_walk_foretells_load_and_work(tmp_path):
    program = saved(tmp_path).program
    regions = regions_of(program)
    stop = len(program.steps)
    region = Region(0, stop, 1, 1, 2)
    walk = regions.walk(region)
    found = derive(run_in_bands(regions, [region]), replace(rules(), outlines=True, alignment=1))
    ends = (program.tensors[name].size for name in ("x", "y"))
    assert 0 <= walk.peak - found.problem.lower_bound <= max(ends)  # one of them comes or goes
    assert walk.peak < regions.walk(Region(0, stop)).peak
    assert walk.turns == len(found.program.steps)
    work = sum(each.multiply_adds for steps in regions.in_strips(region) for each in steps)
    made = sum(
        step.operator.multiply_adds(found.program.operands(step)) for step in found.program.steps
    )
    assert made == work > sum(each.multiply_adds for each in regions.steps)


def test_ends_are_wider_than_what_lies_between_them(tmp_path):
    program = saved(tmp_path, WINDOWS).program
    found = regions_of(program).in_strips(Region(0, 3, 1, 1, 1))
    # A strip in the middle has 5 and 3 columns between the windows, one at an end 4 and 3.
    assert [steps[-1].made for steps in found] == [(0, 2), (2, 3), (3, 4), (4, 5), (5, 7)]
    assert strips(10, 3, 4) == [(0, 4), (4, 6), (6, 10)]
    assert strips(5, 2, 4) == [(0, 3), (3, 5)]


@pytest.mark.parametrize(
    "text",
    [
        BLOCKS.replace("y = Conv(t, p)", "y = Conv(t, p) z = Neg(k)").replace("(y)", "(y, z)"),
        BLOCKS.replace("y = Conv(t, p)", "u = Conv(t, p) y = GlobalAveragePool(u)"),
    ],
    ids=["two results", "sums of columns"],
)
def test_what_is_not_made_of_some_columns_runs_in_no_strips(tmp_path, text):
    regions = regions_of(saved(tmp_path, text).program)
    assert not regions.widths(0, len(regions.steps))


def test_a_plan_file_states_strips_and_makes_them_again(tmp_path):
    model = saved(tmp_path)
    allowed = partial(runs_by_rows, model.program)
    search = BandsSearch(model.program, rules(), COSTS, placed, is_allowed=allowed, in_strips=9)
    *_, least = search.frontier()
    assert any(each.columns for each in InBands.of(least).regions)
    bands = describe_bands(model.program, least)
    again = rebuild_bands(model.program, bands, least.problem, rules(), allowed)
    assert again.problem == least.problem
    for wrong in (1 << 20, 18):
        edited = replace(bands, regions=(RegionOf(*_ends(bands), 1, 1, wrong),))
        with pytest.raises(OrderError, match=f"in strips of {wrong} columns"):
            rebuild_bands(model.program, edited, least.problem, rules(), allowed)


def _ends(bands):
    return bands.order[0], bands.order[-1]
