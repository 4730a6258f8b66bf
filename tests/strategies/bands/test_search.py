"""Programs within budgets, beside those of the frontier."""

import onnx

from bench.zoo import NETWORKS
from support.banding import banding
from support.tiny_onnx import parse, save


def test_a_budget_is_met_no_slower_than_by_the_frontier(tmp_path):
    path = tmp_path / "small.onnx"
    onnx.save(NETWORKS["mobilenet-v1-0.25-96"](), path)
    ways = banding(path)[1]
    whole, *lower = ways.frontier()
    assert ways.within(whole.height) is ways.whole
    for budget in (each.height + 512 for each in lower):
        found = ways.within(budget)
        assert found.height <= budget
        assert found.seconds <= min(each.seconds for each in lower if each.height <= budget)


def test_a_program_without_an_arena_has_no_lower_one(tmp_path):
    path = save(tmp_path, parse("(float[0,4] x) => (y) { y = Relu(x) }"))
    assert [each.height for each in banding(path)[1].frontier()] == [0]
