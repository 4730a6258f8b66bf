"""Attention in groups of heads: the same bits, with keys and values of a few heads kept."""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import random_inputs
from arenite.pipeline.targets.compiling import lower_model
from arenite.runtime.rewrites import split_heads
from arenite.strategies.base import native
from support.running import reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

TOKENS, WIDTH = 160, 64
TENSOR = 4 * TOKENS * WIDTH
BLOCK = (
    "n = LayerNormalization(x, s, s) q = MatMul(n, a) kp = MatMul(n, b) k = Add(kp, t) "
    "v = MatMul(n, c) m = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v{mask}) "
    "p = MatMul(m, d) z = Add(p, x) l = LayerNormalization(z, s, s) u = MatMul(l, e) "
    "g = com.microsoft.FastGelu(u) f = MatMul(g, h) y = Add(f, z)"
)
WEIGHTS = (
    "float[64] s, float[64] t, float[64,64] a, float[64,64] b, float[64,64] c, float[64,64] d, "
    "float[64,256] e, float[256,64] h"
)
GRAPH = f"(float[1,{TOKENS},{WIDTH}] x{{inputs}}) => (y) <{WEIGHTS}> {{{{ {BLOCK} }}}}"


def saved(folder, mask="", inputs="", block=GRAPH):
    model = with_random_weights(parse(block.format(mask=mask, inputs=inputs), microsoft=True))
    for each in model.graph.initializer:
        array = 0.1 * np.frombuffer(each.raw_data, np.float32)
        each.raw_data = array.astype(np.float32).tobytes()
    return save(folder, model)


def test_a_block_keeps_its_tokens_twice_and_keys_and_values_of_one_head(tmp_path):
    path = saved(tmp_path)
    fitting = Fitting(path, Reading())
    frontier = fitting.frontier()
    least = frontier[-1]
    assert least.height < 2.6 * TENSOR  # three times, with keys and values of all heads
    arrays = random_inputs(fitting.program, 0)
    outputs = []
    for fit in (fitting.whole, least):
        with fitting.session(fit) as session:
            outputs.append(session.run(arrays)["y"])
            memory = session.memory()
    assert np.array_equal(*outputs)
    np.testing.assert_allclose(
        outputs[0], reference_outputs(path, arrays)["y"], rtol=1e-4, atol=1e-4
    )
    assert memory.kernels < 20_000  # no table of the rows that a join moves


def test_parts_lie_in_the_weights_of_the_whole(tmp_path):
    program = lower_model(saved(tmp_path)).program
    split = split_heads(program)
    labels = [step.operator.label for step in split.steps]
    assert labels.count("Attention") == 4
    assert labels.count("FullyConnected") == 4 * 3 + 3
    assert {*split.constants} == {*program.constants}


@pytest.mark.parametrize("text", [
    GRAPH.replace("num_heads=4", "num_heads=1"),
    GRAPH.replace("y = Add(f, z)", "y = Add(f, q)"),
    GRAPH.replace("v = MatMul(n, c)", "v = Neg(n)"),
    GRAPH.replace("(q, k, v{mask})", "(q, k, v, , , o)").replace("x{inputs}", "x, "
        f"float[1,4,{TOKENS},{TOKENS}] o"),
], ids=["one head", "queries that are read", "values of no product", "masks"])  # fmt: skip
def test_what_cannot_be_split_stays(text, tmp_path):
    program = lower_model(saved(tmp_path, block=text)).program
    assert split_heads(program) is program


def test_groups_share_a_mask_of_all_heads(tmp_path):
    path = saved(tmp_path, ", , , o", f", float[1,1,{TOKENS},{TOKENS}] o")
    program = lower_model(path).program
    labels = [step.operator.label for step in split_heads(program).steps]
    assert labels.count("Attention") == 4
