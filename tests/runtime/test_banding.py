"""Networks in bands of rows: the same bits as whole, in fewer bytes."""

import pytest
from hypothesis import given, settings

from arenite.pipeline.targets.compiling import lower_model, rules
from arenite.planner.errors import UnmetBudgetError
from arenite.strategies import BandsSearch, InBands
from support.banding import COSTS, assert_same_bits, banding, chains, fed, outputs, placed
from support.shared_material import shared
from support.tiny_onnx import parse, save, with_random_weights

RESIDUAL = """(float[1,3,24,20] x) => (y)
<float[16,3,3,3] w, float[16,1,3,3] d, float[16,16,1,1] p, float[10,16] f>
{ a = Conv<strides=[2,2], pads=[0,0,1,1]>(x, w) b = Relu(a)
  c = Conv<group=16, pads=[1,1,1,1]>(b, d) e = Conv(c, p) g = Add(e, b)
  h = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(g)
  i = GlobalAveragePool(h) j = Flatten(i) y = Gemm<transB=1>(j, f) }"""


U_SHAPED = """(float[1,4,16,16] x) => (y)
<float[8,4,3,3] w, float[8,8,3,3] v, float[8,4,2,2] t, float[2,12,1,1] o>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
  c = Conv<pads=[1,1,1,1]>(b, v) u = ConvTranspose<strides=[2,2]>(c, t)
  k = Concat<axis=1>(u, a) y = Conv(k, o) }"""

PADDED = """(float[1,4,16,16] x) => (y)
<float[8,4,3,3] w, float[8,8,3,3] v, int64[8] some = {0,0,3,1,0,0,2,1}>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Pad(a, some)
  c = MaxPool<kernel_shape=[3,3], strides=[2,2]>(b) y = Conv(c, v) }"""
"""The first rows of `b` and the last are nothing but padding."""

MIRRORED = PADDED.replace("Pad(", 'Pad<mode="reflect">(')


SEGMENTED = """(float[1,3,16,16] x) => (y)
<float[8,3,3,3] w, float[21,8,1,1] o, float[4] twice = {1,1,2,2}>
{ a = Conv<strides=[2,2], pads=[0,0,1,1]>(x, w) b = Conv(a, o)
  c = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(b, , twice)
  y = ArgMax<axis=1, keepdims=KEPT>(c) }"""
"""The class of each pixel: the result has lost the axis of channels, or keeps one of them."""


def network(text, folder):
    """Return the file of a network with random weights."""
    return save(folder, with_random_weights(parse(text)))


def check_frontier(path):
    """Run every program of a frontier; return their heights."""
    lowered, ways = banding(path)
    arrays = fed(lowered)
    whole = outputs(lowered, ways.whole, arrays)
    heights = []
    for found in ways.frontier():
        assert_same_bits(outputs(lowered, found, arrays), whole)
        heights.append(found.height)
        assert found.multiply_adds == ways.whole.multiply_adds
    assert heights == sorted(heights, reverse=True)
    return heights


def test_a_residual_network_needs_a_fraction(tmp_path):
    heights = check_frontier(network(RESIDUAL, tmp_path))
    assert heights[-1] < heights[0] / 1.5


def test_what_a_skip_carries_falls_into_rows_too(tmp_path):
    heights = check_frontier(network(U_SHAPED, tmp_path))
    assert heights[-1] < heights[0]


def test_rows_that_are_nothing_but_padding_are_made_too(tmp_path):
    heights = check_frontier(network(PADDED, tmp_path))
    assert heights[-1] < heights[0]


@pytest.mark.parametrize("kept", ["0", "1"])
def test_the_classes_of_pixels_are_found_in_bands(kept, tmp_path):
    heights = check_frontier(network(SEGMENTED.replace("KEPT", kept), tmp_path))
    assert heights[-1] < heights[0] / 2


def test_a_budget_is_met_to_the_byte_or_refused_with_the_least(tmp_path):
    _, ways = banding(network(RESIDUAL, tmp_path))
    heights = [found.height for found in ways.frontier()]
    for budget in heights:
        assert ways.within(budget).height <= budget
    with pytest.raises(
        UnmetBudgetError, match=f"64 B, the least arena that bands reach is {heights[-1]:,} B"
    ):
        ways.within(64)


def test_what_fits_as_it_is_runs_whole(tmp_path):
    _, ways = banding(network(RESIDUAL, tmp_path))
    assert ways.within(10**9) is ways.whole
    assert InBands.of(ways.whole).regions == ()


def test_a_stopped_search_keeps_what_it_has(tmp_path):
    program = lower_model(network(RESIDUAL, tmp_path)).program
    ways = BandsSearch(program, rules(), COSTS, placed, should_stop=lambda: True)
    assert [found.height for found in ways.frontier()] == [ways.whole.height]
    with pytest.raises(UnmetBudgetError):
        ways.within(64)


@settings(max_examples=25, deadline=None)
@given(chains())
def test_random_networks_make_the_same_bits_in_bands(tmp_path_factory, text):
    check_frontier(network(text, tmp_path_factory.mktemp("network")))


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("kws_ref_model", 5_000),
        ("vww_96_int8", 29_200),
        ("pretrainedResnet_quant", 12_000),
        ("person_detect", 14_500),
        ("mobilenet_v1_0.5_160_quant", 86_500),
    ],
)
def test_public_networks_reach_what_bands_promise(model, least):
    assert check_frontier(shared(f"models/tflite/{model}.tflite"))[-1] <= least


def test_mirrored_rows_run_in_bands(tmp_path):
    heights = check_frontier(network(MIRRORED, tmp_path))
    assert len(heights) > 1
