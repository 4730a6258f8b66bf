"""Programs that run in bands at every size of a range."""

from functools import partial

import numpy as np
import pytest

import arenite
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.programs import session_of
from arenite.pipeline.targets.compiling import lower_model, rules, runs_by_rows
from arenite.planner.programs import UnwrittenRowsError, verify_run
from arenite.planner.sizes import Dimension
from arenite.runtime import ProgramError, Session
from arenite.runtime.program import program_pieces, rectangles_of, root_of, run_of
from arenite.strategies import BandsSearch
from support.banding import COSTS, assert_same_bits, placed
from support.edited_programs import edited
from support.running import PoisonedSession
from support.tiny_onnx import parse, save, with_random_weights

CHAIN = """(float[1,3,h,w] x) => (y)
    <float[16,3,3,3] a, float[16,16,3,3] b, float[8,16,3,3] c, float[4,8,1,1] d> {
    p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p) r = Conv<pads=[1,1,1,1], strides=[2,2]>(q, b)
    s = Relu(r) t = Conv<pads=[1,1,1,1]>(s, c) u = Conv(t, d)
    y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(u) }"""
RANGE = Dimension("h", 8, 32), Dimension("w", 8, 32)


def banded(folder, dims, text=CHAIN, share=0.5):
    """Return the program of a chain in bands, and its file."""
    path = save(folder, with_random_weights(parse(text)))
    lowered = lower_model(path, Reading(dims=dims))
    allowed = partial(runs_by_rows, lowered.program)
    ways = BandsSearch(lowered.program, rules(), COSTS, placed, is_allowed=allowed)
    found = ways.within(int(ways.whole.height * share))
    compiled = lowered.compiled(found.derivation)
    return compiled.program, compiled.assemble(found.plan)


def rooted(assembly):
    """Return the root table of a file as it is read."""
    with Session.of_pieces(list(program_pieces(assembly)), "banded") as session:
        return root_of(session.flatbuffer())


@pytest.mark.parametrize("low", [8, 20])
def test_fewer_rows_change_nothing_in_a_band(low, tmp_path):
    _, fixed = banded(tmp_path, {"h": 32, "w": 32})
    _, found = banded(tmp_path, {"h": Dimension("h", low, 32), "w": 32})
    lists = ("dimensions", "expressions", "axes", "numbers")
    assert {name: part for name, part in found.root.items() if name not in lists} == fixed.root


def test_rows_that_no_step_reads_may_be_missing(tmp_path):
    text = "(float[1,3,h,w] x) => (y) <float[7,3,1,2] a> { y = Conv<strides=[2,2]>(x, a) }"
    path = save(tmp_path, with_random_weights(parse(text)))
    assert arenite.fit_frontier(path, dims={"h": "3..11:8", "w": "2..6"}).fits


def test_an_average_of_one_row_at_the_lowest_size_runs_in_bands(tmp_path):
    text = """(float[1,3,h,16] x) => (y)
        <float[16,3,3,3] a, float[16,16,3,3] b, float[8,16,3,3] c> {
        p = Conv<pads=[1,1,1,1]>(x, a) r = Conv<pads=[1,1,1,1]>(p, b) s = Relu(r)
        t = AveragePool<kernel_shape=[2,2], strides=[2,2]>(s) y = Conv<pads=[1,1,1,1]>(t, c) }"""
    _, ranged = banded(tmp_path, {"h": Dimension("h", 2, 32)}, text)
    root = ranged.root
    steps = [root["steps"][each["step"]] for each in root["turns"] if each.get("count")]
    assert "Pool2D" in {each["kernel_type"] for each in steps}
    with PoisonedSession(program_pieces(ranged)) as session:
        for h in (2, 3, 4, 32):
            feeds = {"x": np.random.default_rng(h).standard_normal((1, 3, h, 16), np.float32)}
            model = lower_model(tmp_path / "tiny.onnx", Reading(dims={"h": h}))
            with session_of(model.program) as alone:
                expected = alone.run(feeds)
            assert_same_bits(session.run(feeds), expected)


@pytest.mark.parametrize("height", [Dimension("h", 8, 32), 32])
def test_shorter_rows_stay_where_they_are_unless_all_are_one_tensor(height, tmp_path):
    program, found = banded(tmp_path, {"h": height, "w": Dimension("w", 8, 32)})
    root = found.root
    assert root["turns"]
    parted = [each for each in root["tensors"] if each["name"] not in program.tensors]
    assert parted
    assert all("rows" in tensor for tensor in parted)


KEPT = """(float[1,3,h,w] x) => (y, g)
    <float[12,3,3,3] a, float[16,12,1,1] b, float[8,12,1,1] c, float[4,24,3,3] d> {
    p = Conv<pads=[1,1,1,1]>(x, a) g = GlobalAveragePool(p) s = Sigmoid(p)
    q = Conv(s, b) r = Conv(s, c) t = Concat<axis=1>(q, r) u = MaxPool<kernel_shape=[1,1]>(t)
    y = Conv<pads=[1,1,1,1]>(u, d) }"""
"""A tensor from before the band, a concatenation in it, and one that is read after it."""


EXCITED = """(float[1,8,h,w] x) => (y)
    <float[48,8,1,1] a, float[48,1,3,3] b, float[48,48,1,1] c, float[8,48,1,1] d,
    float[8,8,1,1] e> {
    p = Conv(x, a) q = Conv<group=48, pads=[1,1,1,1]>(p, b) g = GlobalAveragePool(q)
    s = Conv(g, c) z = Sigmoid(s) m = Mul(q, z) n = Conv(m, d) y = Conv(n, e) }"""
"""Rows that are summed up, and read again once the sum is known."""


@pytest.mark.parametrize("text", [KEPT, EXCITED])
def test_bands_take_no_more_than_at_the_highest_size_alone(text, tmp_path):
    dims = {"h": Dimension("h", 8, 32, 8), "w": Dimension("w", 8, 32, 8)}
    _, fixed = banded(tmp_path, {"h": 32, "w": 32}, text, 0.55)
    _, found = banded(tmp_path, dims, text, 0.55)
    assert found.root["memories"][0]["size"] == fixed.root["memories"][0]["size"]
    if text == KEPT:
        assert any(each["kernel_type"] == "Copy" for each in found.root["steps"])
        assert found.root["offsets"]  # rows that die one after another end where they did
        root = rooted(found)
        for sizes in ({"h": 8, "w": 8}, {"h": 32, "w": 8}, {"h": 16, "w": 24}):
            verify_run(run_of(root, sizes), rectangles_of(root))
        wrong = {**root, "offsets": root["offsets"][:-1]}
        verify_run(run_of(wrong, {"h": 32, "w": 32}), rectangles_of(root))
        with pytest.raises(UnwrittenRowsError, match="reads row 0 of 's"):
            verify_run(run_of(wrong, {"h": 8, "w": 8}), rectangles_of(root))
        with pytest.raises(ProgramError, match="lies elsewhere at other sizes"):
            Session.of_pieces([edited(found, lambda root: root.update(offsets=[]))], "hostile")
    else:
        assert any(each.get("scratch", -1) >= 0 for each in found.root["steps"])
    channels = 3 if text == KEPT else 8
    with PoisonedSession(program_pieces(found)) as session:
        for height, width in ((8, 8), (32, 8), (16, 24), (8, 32), (32, 32)):
            x = np.random.default_rng(0).standard_normal((1, channels, height, width))
            feeds = {"x": x.astype(np.float32)}
            model = lower_model(tmp_path / "tiny.onnx", Reading(dims={"h": height, "w": width}))
            with session_of(model.program) as alone:
                expected = alone.run(feeds)
            assert_same_bits(session.run(feeds), expected)


IN_BANDS = {
    "an average of one row at the lowest size": """(float[1,8,h,16] x) => (y)
        <float[16,8,3,3] a, float[4,16,1,1] b> { p = Conv<pads=[1,1,1,1]>(x, a)
        q = AveragePool<kernel_shape=[2,1], strides=[2,1]>(p) y = Conv(q, b) }""",
    "elements of one row at the lowest size": """(float[1,8,h,16] x) => (y) <float[8,1,1,3] w>
        { t = Tanh(x) c = Conv<group=8, pads=[0,1,0,1], strides=[2,1]>(t, w)
        j = Concat<axis=1>(c, c) r = Relu(j) a = Sigmoid(j) y = Min(r, a) }""",
    "a transposed convolution of few outputs": """(float[1,8,h,16] x) => (y)
        <float[8,3,1,1] w, float[4,3,3,3] c> { t = Relu(x)
        u = ConvTranspose<strides=[2,2]>(t, w) y = Conv<pads=[1,1,1,1]>(u, c) }""",
}


@pytest.mark.parametrize("text", IN_BANDS.values(), ids=IN_BANDS)
def test_steps_with_working_memory_run_in_bands_at_each_size(text, tmp_path):
    path, program = save(tmp_path, with_random_weights(parse(text))), tmp_path / "made.arena"
    found = arenite.fit_frontier(path, dims={"h": "2..32:2"})
    assert len(found) > 1
    found[len(found) - 1].save(program)
    generator = np.random.default_rng(0)
    with PoisonedSession(program) as session:
        for rows in (32, 2, 14):
            feeds = {"x": generator.standard_normal((1, 8, rows, 16)).astype(np.float32)}
            with arenite.Session(path, dims={"h": rows}) as fixed:
                assert_same_bits(session.run(feeds), fixed.run(feeds))
