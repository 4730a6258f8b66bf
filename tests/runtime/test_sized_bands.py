"""Programs that run in bands at every size of a range."""

from functools import partial

import pytest

import arenite
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import lower_model, rules, runs_by_rows
from arenite.planner.sizes import Dimension
from arenite.strategies import BandsSearch
from support.banding import COSTS, placed
from support.tiny_onnx import parse, save, with_random_weights

CHAIN = """(float[1,3,h,w] x) => (y)
    <float[16,3,3,3] a, float[16,16,3,3] b, float[8,16,3,3] c, float[4,8,1,1] d> {
    p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p) r = Conv<pads=[1,1,1,1], strides=[2,2]>(q, b)
    s = Relu(r) t = Conv<pads=[1,1,1,1]>(s, c) u = Conv(t, d)
    y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(u) }"""
RANGE = Dimension("h", 8, 32), Dimension("w", 8, 32)


def banded(folder, dims, text=CHAIN):
    """Return the program of a chain in bands, and its file."""
    path = save(folder, with_random_weights(parse(text)))
    lowered = lower_model(path, Reading(dims=dims))
    allowed = partial(runs_by_rows, lowered.program)
    ways = BandsSearch(lowered.program, rules(), COSTS, placed, is_allowed=allowed)
    found = ways.within(ways.whole.height // 2)
    compiled = lowered.compiled(found.derivation)
    return compiled.program, compiled.assemble(found.plan)


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


@pytest.mark.parametrize("height", [Dimension("h", 8, 32), 32])
def test_shorter_rows_stay_where_they_are_unless_all_are_one_tensor(height, tmp_path):
    program, found = banded(tmp_path, {"h": height, "w": Dimension("w", 8, 32)})
    root = found.root
    assert root["turns"]
    parted = [each for each in root["tensors"] if each["name"] not in program.tensors]
    assert parted
    assert all("rows" in tensor for tensor in parted)
