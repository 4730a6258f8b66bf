"""Blocks of a transformer by rows of tokens: keys and values whole, all else in bands."""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import lower_model, runs_by_rows
from arenite.planner.programs import row_step
from arenite.strategies.bands.repeats import repeat_cheap_steps
from arenite.strategies.base import native
from support.banding import assert_same_bits, banded_ways, fed, outputs
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

TOKENS, WIDTH = 96, 64
BLOCK = (
    "n = LayerNormalization(x, s, s) q = MatMul(n, a) k = MatMul(n, b) v = MatMul(n, c) "
    "m = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v) p = MatMul(m, d) z = Add(p, x) "
    "l = LayerNormalization(z, s, s) u = MatMul(l, e) g = com.microsoft.FastGelu(u) "
    "f = MatMul(g, h) y = Add(f, z) "
)
WEIGHTS = (
    "float[64] s, float[64,64] a, float[64,64] b, float[64,64] c, float[64,64] d, "
    "float[64,256] e, float[256,64] h"
)
GRAPH = f"(float[1,{TOKENS},{WIDTH}] x) => (y) <{WEIGHTS}> {{ {BLOCK} }}"
TENSOR = 4 * TOKENS * WIDTH


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    model = with_random_weights(parse(GRAPH, microsoft=True))
    for each in model.graph.initializer:
        array = 0.1 * np.frombuffer(each.raw_data, np.float32)
        each.raw_data = array.astype(np.float32).tobytes()
    return save(tmp_path_factory.mktemp("block"), model)


def test_a_block_needs_its_tokens_keys_and_values_and_a_few_rows(path):
    lowered, ways = banded_ways(path)
    found = list(ways.frontier())
    assert found[0].height >= 5 * TENSOR  # the block's tokens, and four times as many columns
    assert found[-1].height < 3.5 * TENSOR
    arrays = fed(lowered)
    whole = outputs(lowered, found[0], arrays)
    for each in found[1:]:
        assert_same_bits(outputs(lowered, each, arrays), whole)


def test_a_norm_is_made_again_for_queries_and_once_for_keys_and_values(path):
    program = lower_model(path).program
    repeated, copies = repeat_cheap_steps(program)
    assert len(copies) == 1
    labels = [step.operator.label for step in repeated.steps]
    kept = ["LayerNorm", "FullyConnected", "FullyConnected"]
    assert labels[:7] == [*kept, "LayerNorm", "FullyConnected", "Attention", "FullyConnected"]
    queries = repeated.steps[5].inputs[0]
    assert repeated.steps[4].outputs == (queries,)  # its rows are read, those of keys are not


@pytest.mark.parametrize("text", [
    "(float[1,8,16] x) => (y, n) <float[16] s> {n = LayerNormalization(x, s, s) a = Neg(n) "
    "b = Abs(n) y = Add(a, b)}",
    "(float[1,8,16] x) => (y) <float[16] s, float[16,16] w> {n = MatMul(x, w) "
    "a = Softmax(n) b = Abs(n) y = Add(a, b)}",
    "(float[1,8,16] x) => (y) {n = Neg(x) a = Softmax(n) y = Add(a, x)}",
], ids=["an output", "a product", "one reader"])  # fmt: skip
def test_what_is_wanted_dear_or_read_once_is_not_repeated(text, tmp_path):
    program = lower_model(save(tmp_path, with_random_weights(parse(text)))).program
    assert repeat_cheap_steps(program) == (program, {})


def test_a_step_that_reads_the_result_of_a_repeated_one_stays_where_it_is(tmp_path):
    text = (
        "(float[1,8,16] x) => (y) {n = Softmax(x) m = Softmax(n) a = Abs(m) b = Neg(m) "
        "c = Add(a, b) y = Add(c, n)}"
    )
    program = lower_model(save(tmp_path, parse(text))).program
    steps = {step.outputs[0]: step.name for step in program.steps}
    repeated, copies = repeat_cheap_steps(program)
    assert list(copies.values()) == [steps["n"]]
    assert [step.name for step in repeated.steps].count(steps["m"]) == 1


def test_a_step_stays_before_what_reads_a_view_of_its_result(tmp_path):
    text = (
        "(float[1,8,16] x) => (y, z, w) <int64[2] s = {8, 16}> {n = Softmax(x) a = Abs(n) "
        "b = Neg(n) y = Add(a, b) p = Sigmoid(x) r = Reshape(p, s) z = ReduceMax<axes=[0]>(r) "
        "w = Tanh(p)}"
    )
    program = lower_model(save(tmp_path, parse(text))).program
    repeated, copies = repeat_cheap_steps(program)
    assert len(copies) == 1
    order = [step.outputs[0] for step in repeated.steps]
    assert order.index("p") < order.index("z")


def test_every_step_of_a_block_runs_by_rows_at_any_number_of_tokens(tmp_path):
    text = GRAPH.replace(f"float[1,{TOKENS}", "float[1,N")
    path = save(tmp_path, with_random_weights(parse(text, microsoft=True)))
    from arenite.planner.sizes import read_lengths

    reading = Reading(dims=read_lengths({"N": "1..40"}))
    program = lower_model(path, reading).program
    found = [row_step(program, step) for step in program.steps]
    assert all(each is not None and runs_by_rows(program, each) for each in found)
