"""What runs in bands since its tensors exceed a cache."""

from functools import partial

import pytest

from arenite.pipeline.targets.compiling import lower_model, runs_by_rows
from arenite.planner.programs.costs import SD_CARD
from arenite.strategies.bands.cache import bands_for_cache, beyond_cache
from arenite.strategies.bands.regions import Regions
from support.tiny_onnx import parse, save, with_random_weights

BLOCK = """(float[1,4,{h},64] x) => (y)
    <float[{c},4,1,1] a, float[{c},1,3,3] b, float[4,{c},1,1] c>
    {{ p = Conv(x, a) q = Relu(p) r = Conv<group={c}, pads=[1,1,1,1]>(q, b) s = Relu(r)
      y = Conv(s, c) }}"""
KEPT = """(float[1,4,64,64] x) => (y, r)
    <float[64,4,1,1] a, float[64,1,3,3] b, float[4,64,1,1] c>
    { p = Conv(x, a) r = Conv<group=64, pads=[1,1,1,1]>(p, b) y = Conv(r, c) }"""
HEAVY = """(float[1,64,48,48] x) => (y) <float[64,64,1,1] a, float[64,64,7,7] b>
    { p = Conv(x, a) y = Conv<pads=[3,3,3,3]>(p, b) }"""


def regions_of(tmp_path, text):
    path = save(tmp_path, with_random_weights(parse(text)))
    program = lower_model(path).program
    return Regions(program, SD_CARD, partial(runs_by_rows, program))


@pytest.mark.parametrize(
    ("rows", "channels", "found"), [(64, 64, [(0, 3)]), (32, 64, []), (33, 64, [(0, 3)])]
)
def test_steps_that_hand_over_more_than_the_cache_holds(tmp_path, rows, channels, found):
    regions = regions_of(tmp_path, BLOCK.format(h=rows, c=channels))
    assert [(each.start, each.stop) for each in beyond_cache(regions)] == found


def test_what_others_read_is_handed_over_whole(tmp_path):
    (region,) = beyond_cache(regions_of(tmp_path, KEPT))
    assert (region.start, region.stop) == (0, 2)


def test_weights_that_each_turn_would_read_again_stay_in_one(tmp_path):
    regions = regions_of(tmp_path, HEAVY)
    assert all(regions.steps)
    assert beyond_cache(regions) == ()


BOXES = """(float[1,70000,4] x) => (y) <float[1,1,4] a> { p = Mul(x, a) q = Relu(p) y = Exp(q) }"""


def test_a_tensor_of_many_short_rows_takes_a_bounded_number_of_turns(tmp_path):
    regions = regions_of(tmp_path, BOXES)
    (region,) = beyond_cache(regions)
    assert len(regions.turns(region)) <= 256 * (region.stop - region.start)


def test_bands_are_given_up_when_the_time_is_up(tmp_path):
    program = lower_model(save(tmp_path, with_random_weights(parse(BOXES)))).program
    asked = iter([False, False, True])
    assert bands_for_cache(program, should_stop=lambda: next(asked)) is None
    assert bands_for_cache(program) is not None
