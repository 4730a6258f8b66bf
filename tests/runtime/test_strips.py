"""Steps that run as one in strips of columns: the bits that they make one after another."""

from itertools import islice

from hypothesis import example, given, settings
from hypothesis import strategies as st

from arenite.pipeline.targets.compiling import lower_model, rules
from arenite.planner.rewrites.derivation import derive
from arenite.strategies import BandsSearch
from arenite.strategies.bands.strips import fuse, unfold
from support.banding import COSTS, assert_same_bits, banded_ways, fed, outputs_of, placed
from support.quantised_chain import expanding
from support.tiny_onnx import parse, save, with_random_weights

BLOCK = """(float[1,4,23,21] x) => (y)
<float[4,4,7,7] s, float[24,4,1,1] w, float[24,1,3,3] d, float[4,24,1,1] p, float[4,1,3,3] e>
{ i = Conv<pads=[3,3,3,3]>(x, s) a = Conv(i, w)
  b = Conv<group=24, strides=[2,2], pads=[1,1,1,1]>(a, d) c = Conv(b, p)
  y = Conv<group=4, pads=[1,1,1,1]>(c, e) }"""
"""`a` is six times as wide as what is around it."""


ONE_PIXEL = """(float[1,3,1,1] x) => (y)
<float[8,3,1,1] w, float[8,8,1,1] d, float[5,8,1,1] p>
{ i = Relu(x) a = Conv(i, w) b = Conv(a, d) c = Conv(b, p) y = Abs(c) }"""


@st.composite
def blocks(draw):
    """Draw a network whose middle is a chain with one window over rows."""
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    kernel = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    strides = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dilations = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    pads = [draw(st.integers(0, kernel[side % 2] - 1)) for side in range(4)]
    for axis, length in enumerate((rows, columns)):
        if length + pads[axis] + pads[axis + 2] < (kernel[axis] - 1) * dilations[axis] + 1:
            return ONE_PIXEL
    group = draw(st.sampled_from([1, 8]))
    return f"""(float[1,3,{rows},{columns}] x) => (y)
<float[8,3,1,1] w, float[8,{8 // group},{kernel[0]},{kernel[1]}] d, float[5,8,1,1] p>
{{ i = Relu(x) a = Conv(i, w)
  b = Conv<group={group}, strides=[{strides[0]},{strides[1]}], pads={pads},
           dilations=[{dilations[0]},{dilations[1]}]>(a, d)
  c = Conv(b, p) y = Abs(c) }}"""


PADDED = """(float[1,3,1,1] x) => (y)
<float[8,3,1,1] w, float[8,8,1,3] d, float[5,8,1,1] p>
{ i = Relu(x) a = Conv(i, w) b = Conv<strides=[2,1], pads=[0,1,0,2]>(a, d) c = Conv(b, p)
  y = Abs(c) }"""
"""Strips of one column of `b` depend on the same column of `a`."""


TWO_WINDOWS = """(float[1,3,12,10] x) => (y)
<float[6,3,3,3] w, float[6,1,3,3] d, float[4,6,1,1] p>
{ i = Relu(x) a = Conv<strides=[2,2], pads=[0,0,1,1]>(i, w) b = Conv<group=6, pads=[1,1,1,1]>(a, d)
  c = Conv(b, p) y = Abs(c) }"""
"""Rows of `a` are made again for each row of `b`."""


def lowered(text, folder):
    return lower_model(save(folder, with_random_weights(parse(text))))


def chains_in(program, width):
    """Yield the program with some of its steps in strips, for all that can be."""
    for start in range(len(program.steps)):
        for stop in range(start + 1, len(program.steps) + 1):
            fused = fuse(program, start, stop, width)
            if fused is not None:
                yield fused


def run_of(model, program):
    """Return what a program makes, whatever dead memory holds."""
    found = derive(program, rules())
    return outputs_of(model, found, placed(found.problem), fed(model))


@settings(max_examples=30, deadline=None)
@given(blocks(), st.integers(1, 5))
@example(PADDED, 1)
@example(TWO_WINDOWS, 3)
def test_random_chains_make_the_same_bits_in_strips(tmp_path_factory, text, width):
    model = lowered(text, tmp_path_factory.mktemp("network"))
    whole = run_of(model, model.program)
    for fused in chains_in(model.program, width):
        assert_same_bits(run_of(model, unfold(fused)), whole)


@settings(max_examples=6, deadline=None)
@given(blocks(), st.integers(1, 5))
def test_random_chains_make_the_same_bits_in_strips_and_bands(tmp_path_factory, text, width):
    model = lowered(text, tmp_path_factory.mktemp("network"))
    whole = run_of(model, model.program)
    for fused in chains_in(model.program, width):
        for found in islice(BandsSearch(fused, rules(), COSTS, placed).frontier(), 1, None):
            made = outputs_of(model, found.derivation, found.plan, fed(model))
            assert_same_bits(made, whole)


def test_strips_go_below_what_bands_reach_and_say_what_they_make_again(tmp_path):
    model, ways = banded_ways(save(tmp_path, with_random_weights(parse(BLOCK))))
    whole = run_of(model, model.program)
    fits = list(ways.frontier())
    heights = [found.height for found in fits]
    assert heights == sorted(heights, reverse=True)
    again = [found for found in fits if found.multiply_adds > ways.whole.multiply_adds]
    assert again
    for found in again:
        assert_same_bits(outputs_of(model, found.derivation, found.plan, fed(model)), whole)
        assert found.multiply_adds <= 1.75 * ways.whole.multiply_adds
    assert again[-1].height < min(each.height for each in fits if each not in again)


def test_strips_of_bytes_make_the_same_bits(tmp_path):
    path = tmp_path / "network.tflite"
    path.write_bytes(expanding())
    model = lower_model(path)
    whole = run_of(model, model.program)
    fused = list(chains_in(model.program, 5))
    assert fused
    for each in fused:
        assert_same_bits(run_of(model, unfold(each)), whole)


def test_a_budget_is_met_without_strips_where_it_can_be(tmp_path):
    _, ways = banded_ways(save(tmp_path, with_random_weights(parse(BLOCK))))
    for fit in ways.frontier():
        found = ways.within(fit.height)
        assert found.height <= fit.height
        if fit.multiply_adds == ways.whole.multiply_adds:
            assert found.multiply_adds == fit.multiply_adds
