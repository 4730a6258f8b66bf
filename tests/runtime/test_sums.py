"""Sums that a convolution makes as it stores its result."""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime.operators import Binary
from arenite.runtime.rewrites import WeightBudget
from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

# What becomes of the sum, and how many steps of sums are left.
NETWORKS = {
    "a residual block": (0, """(float[1,8,9,9] x) => (y)
        <float[20,8,1,1] a, float[20] b, float[8,20,3,3] c, float[8] d>
        { p = Conv(x, a, b) q = Relu(p) r = Conv<pads=[1,1,1,1]>(q, c, d) s = Add(r, x)
          y = Relu(s) }"""),
    "a convolution and what it reads": (0, """(float[2,16,7,7] x) => (y)
        <float[16,16,3,3] a, float[16,16,1,1] b>
        { v = Conv(x, b) w = Sigmoid(v) p = Conv<pads=[1,1,1,1]>(w, a) y = Add(w, p) }"""),
    "two convolutions": (0, """(float[1,8,8,8] x) => (y)
        <float[24,8,1,1] a, float[24,8,3,3] b, float[24] c>
        { p = Conv(x, a) q = Conv<pads=[1,1,1,1]>(x, b, c) s = Add(p, q) y = Relu(s) }"""),
    "a depthwise convolution": (0, """(float[1,20,8,8] x) => (y) <float[20,1,3,3] a>
        { w = Relu(x) p = Conv<pads=[1,1,1,1], group=20>(w, a) y = Add(p, w) }"""),
    "products": (0, """(float[5,12] x) => (y) <float[12,30] a, float[30,12] b>
        { p = MatMul(x, a) q = Relu(p) r = MatMul(q, b) y = Add(r, x) }"""),
    "a part of what is read": (0, """(float[1,20,8,8] x) => (y)
        <float[8,20,3,3] a, float[20,20,1,1] b, int64[1] from = {4}, int64[1] to = {12},
        int64[1] axis = {1}>
        { v = Conv(x, b) w = Sigmoid(v) p = Slice(w, from, to, axis) q = Conv<pads=[1,1,1,1]>(w, a)
          y = Add(p, q) }"""),
    "rows of what is read": (0, """(float[1,8,16,8] x) => (y)
        <float[8,8,9,1] a, float[8,8,1,1] b, int64[1] from = {3}, int64[1] to = {11},
        int64[1] axis = {2}>
        { v = Conv(x, b) w = Sigmoid(v) p = Slice(w, from, to, axis) q = Conv(w, a)
          y = Add(p, q) }"""),
    "a whole that is read, of a part that is added": (0, """(float[1,8,9,9] x) => (y)
        <float[8,16,3,3] a>
        { p = Sigmoid(x) q = Tanh(x) r = Concat<axis=1>(p, q) s = Conv<pads=[1,1,1,1]>(r, a)
          y = Add(s, p) }"""),
    "two sums": (1, """(float[1,8,6,6] x, float[1,8,6,6] z) => (y) <float[8,8,1,1] a>
        { p = Conv(x, a) q = Add(p, x) y = Add(q, z) }"""),
    "a clamp before": (1, """(float[1,8,6,6] x) => (y) <float[8,8,1,1] a>
        { p = Conv(x, a) q = Relu(p) y = Add(q, x) }"""),
    "another reader": (1, """(float[1,8,6,6] x) => (y, z) <float[8,8,1,1] a>
        { p = Conv(x, a) y = Add(p, x) z = Sigmoid(p) }"""),
    "a result": (1, """(float[1,8,6,6] x) => (p, y) <float[8,8,1,1] a>
        { p = Conv(x, a) y = Add(p, x) }"""),
    "twice itself": (1, """(float[1,8,6,6] x) => (y) <float[8,8,1,1] a>
        { p = Conv(x, a) y = Add(p, p) }"""),
    "another shape": (1, """(float[1,8,6,6] x, float[1,8,1,6] z) => (y) <float[8,8,1,1] a>
        { p = Conv(x, a) y = Add(p, z) }"""),
}  # fmt: skip


@pytest.fixture(params=NETWORKS)
def case(request, tmp_path):
    """The sums that are left, and the network."""
    left, text = NETWORKS[request.param]
    return left, save(tmp_path, with_random_weights(parse(text)))


def test_the_results_are_those_of_onnxruntime(case, tmp_path):
    _, path = case
    file = build(path, tmp_path)
    with PoisonedSession(file) as session:
        for seed in range(2):
            feeds = random_feeds(session, seed)
            assert_same(session.run(feeds), reference_outputs(path, feeds))


def test_a_sum_is_left_only_where_it_must_be(case):
    left, path = case
    steps = compile_model(path).program.steps
    assert sum(isinstance(step.operator, Binary) for step in steps) == left


def test_the_result_takes_the_place_of_what_is_added(tmp_path):
    _, text = NETWORKS["a residual block"]
    path = save(tmp_path, with_random_weights(parse(text)))
    records = compile_model(path).source.problem.records
    image = 1 * 8 * 9 * 9 * np.dtype(np.float32).itemsize
    assert [record.size for record in records if {"x", "s"} <= set(record.tensors)] == [
        -(-image // 64) * 64
    ]


def test_sums_behind_weights_that_are_loaded_for_each_run_give_the_same(tmp_path):
    text = """(float[1,64,6,6] x) => (y) <float[64,64,3,3] a, float[64,64,3,3] b, float[64] c>
        { p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p) r = Conv<pads=[1,1,1,1]>(q, b, c)
          y = Add(x, r) }"""
    path = save(tmp_path, with_random_weights(parse(text)))
    for percent in (20, 60):
        budget = WeightBudget(percent, is_percent=True)
        file = build(path, tmp_path, reading=Reading(weight_budget=budget))
        with PoisonedSession(file) as session:
            feeds = random_feeds(session)
            assert_same(session.run(feeds), reference_outputs(path, feeds))
