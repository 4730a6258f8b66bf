"""Filters in the order of the kernels, whoever's kernels read them."""

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import Session
from arenite.runtime.rewrites import packed_filter, packed_integer_filter
from arenite.strategies import find
from support.running import assert_same, build, random_feeds, reference_outputs
from support.tflite_operator import Given, Reference, operator_model, weights
from support.tiny_onnx import parse, save, with_random_weights


@pytest.mark.parametrize(("outputs", "groups"), [(16, 1), (5, 1), (40, 1), (6, 2), (40, 2)])
def test_a_packed_filter_holds_each_weight_once_and_zeros(outputs, groups):
    weights = np.random.default_rng(0).standard_normal((outputs, 3, 2, 4)).astype(np.float32)
    packed = packed_filter(weights, groups)
    per_group = outputs // groups
    panels = groups * -(-per_group // 16)
    assert packed.shape == (panels, 3, 2, 4, 16)
    for output in range(outputs):
        group, index = divmod(output, per_group)
        panel = group * (panels // groups) + index // 16
        np.testing.assert_array_equal(packed[panel, ..., index % 16], weights[output])
    assert np.count_nonzero(packed) == weights.size


@pytest.mark.parametrize(("outputs", "groups"), [(16, 1), (5, 1), (40, 2)])
def test_a_packed_filter_of_integers_holds_sums_and_quads(outputs, groups):
    weights = np.random.default_rng(0).integers(-128, 128, (outputs, 3, 1, 3), np.int8)
    packed = packed_integer_filter(weights, groups)
    per_group = outputs // groups
    panels = groups * -(-per_group // 16)
    assert packed.shape == (panels, 1 + 3, 64)  # 9 weights are 3 quads
    for output in range(outputs):
        group, index = divmod(output, per_group)
        panel = packed[group * (panels // groups) + index // 16]
        sums = np.frombuffer(panel[0].tobytes(), "<i4")
        assert sums[index % 16] == weights[output].sum(dtype=np.int32)
        found = panel[1:].reshape(3, 16, 4)[:, index % 16].reshape(-1)
        np.testing.assert_array_equal(found[:9], weights[output].reshape(-1))
        assert not found[9:].any()


def test_a_filter_that_two_convolutions_read_is_stored_once(tmp_path):
    text = """(float[1,8,6,6] x) => (y) <float[8,8,1,1] a>
        { p = Conv(x, a) q = Relu(p) y = Conv(q, a) }"""
    compiled = compile_model(save(tmp_path, with_random_weights(parse(text))))
    plan = find("greedy-by-size")(compiled.source.problem)
    (stored,) = compiled.assemble(plan).constants
    assert stored[1].shape == (1, 1, 1, 8, 16)


def test_a_filter_that_another_operator_reads_is_there_as_it_is_too(tmp_path):
    text = """(float[2,8] x, int64[3] i) => (y, z) <float[8,12] a>
        { y = MatMul(x, a) z = Gather(a, i) }"""
    path = save(tmp_path, with_random_weights(parse(text)))
    shapes = {array.shape for array in compile_model(path).program.constants.values()}
    assert shapes == {(1, 8, 16), (8, 12)}
    with Session(build(path, tmp_path)) as session:
        feeds = random_feeds(session) | {"i": np.array([7, 0, 3])}
        assert_same(session.run(feeds), reference_outputs(path, feeds))


@pytest.mark.parametrize("outputs", [1, 8, 20])
def test_a_depthwise_convolution_of_one_channel_is_one_of_all(outputs, tmp_path):
    text = f"""(float[1,1,9,7] x) => (y) <float[{outputs},1,3,5] a, float[{outputs}] b>
        {{ y = Conv<pads=[1,2,1,2], group=1>(x, a, b) }}"""
    path = save(tmp_path, with_random_weights(parse(text)))
    steps = compile_model(path).program.steps
    assert [type(step.operator).__name__ for step in steps] == ["Conv2D"]
    with Session(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_a_depthwise_layer_of_one_channel_gives_what_litert_gives(dtype, tmp_path):
    stated = {} if dtype == "float32" else {"scales": (0.05,), "zero_point": 3}
    of_filter = stated | ({"zero_point": 0} if dtype == "int8" else {})
    numbers = np.random.default_rng(0).integers(0, 9, (1, 3, 3, 8)).astype(dtype)
    bias = np.arange(8).astype("float32" if dtype == "float32" else "int32")
    of_bias = {"scales": (0.05 * 0.05,)} if stated else {}
    path = tmp_path / "one.tflite"
    path.write_bytes(
        operator_model(
            "DEPTHWISE_CONV_2D",
            [
                Given((1, 9, 8, 1), dtype, **stated),
                weights(numbers, **of_filter),
                weights(bias, **of_bias),
            ],
            [Given((1, 9, 4, 8), dtype, **stated)],
            ("DepthwiseConv2DOptions", {"strideW": 2, "strideH": 1, "depthMultiplier": 8}),
        )
    )
    steps = compile_model(path).program.steps
    assert [type(step.operator).__name__ for step in steps] == ["Conv2D"]
    with Session(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        (own,) = session.run(feeds).values()
    (expected,) = Reference(path).run(list(feeds.values()))
    distance = np.abs(own.astype(float) - expected.astype(float)).max()
    assert distance <= (1e-5 if dtype == "float32" else 1)
