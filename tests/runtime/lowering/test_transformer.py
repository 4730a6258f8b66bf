"""Fused operators of transformers, run beside ONNX Runtime."""

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import lower_model
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import (
    PoisonedSession,
    assert_refused,
    assert_same,
    build,
    random_feeds,
    reference_outputs,
)
from support.tiny_onnx import parse, save, with_random_weights

_ATTENTION = (
    "(float[2,5,12] x{inputs}) => ({outputs}) <float[12,24] w, float[24] b> {{{outputs} = "
    "com.microsoft.Attention<{attributes}>(x, w, b{call})}}"
)


def _attention(
    call: str, attributes: str = "num_heads=2", inputs: str = "", outputs: str = "y"
) -> str:
    return _ATTENTION.format(call=call, attributes=attributes, inputs=inputs, outputs=outputs)


CASES = {
    "gelu of a biased product": "(float[2,3,5] x) => (y) <float[5,7] w, float[7] b> "
    "{m = MatMul(x, w) y = com.microsoft.BiasGelu(m, b)}",
    "gelu of a biased input": "(float[2,3,5] x, float[5] b) => (y) "
    "{y = com.microsoft.BiasGelu(x, b)}",
    "fast gelu": "(float[2,3,5] x) => (y) {y = com.microsoft.FastGelu(x)}",
    "fast gelu of a biased product": "(float[2,3,5] x) => (y) <float[5,7] w, float[7] b> "
    "{m = MatMul(x, w) y = com.microsoft.FastGelu(m, b)}",
    "quick gelu": "(float[2,3,5] x) => (y) {y = com.microsoft.QuickGelu<alpha=1.5>(x)}",
    "product of scaled and transposed matrices": "(float[2,4,5,3] a, float[2,4,7,5] b) => (y) "
    "{y = com.microsoft.FusedMatMul<alpha=0.125, transA=1, transB=1>(a, b)}",
    "product with transposed and scaled weights": "(float[2,3,5] x) => (y) <float[7,5] w> "
    "{y = com.microsoft.FusedMatMul<alpha=0.5, transB=1>(x, w)}",
    "product of a matrix stored transposed": "(float[3,2,5] a, float[2,3,7] b) => (y) "
    "{t = Transpose<perm=[1,0,2]>(a) y = com.microsoft.FusedMatMul<transA=1>(t, b)}",
    "layer norm of a sum": "(float[2,3,8] x, float[2,3,8] s) => (y) <float[8] g, float[8] b> "
    "{y = com.microsoft.SkipLayerNormalization<epsilon=0.001>(x, s, g, b)}",
    "layer norm of a sum with one sequence for all, a bias, and the sum": "(float[2,3,8] x, "
    "float[3,8] s) => (y, z) <float[8] g, float[8] b, float[8] c> "
    '{y, "", "", z = com.microsoft.SkipLayerNormalization(x, s, g, b, c)}',
    "layer norm of a product, its bias and a sum": "(float[2,3,5] x, float[2,3,8] s) => (y) "
    "<float[5,8] w, float[8] g, float[8] c> "
    "{m = MatMul(x, w) y = com.microsoft.SkipLayerNormalization(m, s, g, , c)}",
    "embeddings": "(int32[2,3] i, int32[2,3] s, int32[2,3] m) => (y, n) <float[10,8] w, "
    "float[6,8] p, float[3,8] q, float[8] g, float[8] b> "
    "{y, n = com.microsoft.EmbedLayerNormalization(i, s, w, p, q, g, b, m)}",
    "embeddings without segments, at given places": "(int32[2,3] i, int32[2,3] k) => (y, n, z) "
    "<float[10,8] w, float[6,8] p, float[8] g, float[8] b> "
    '{y, n, z = com.microsoft.EmbedLayerNormalization(i, "", w, p, "", g, b, "", k)}',
    "attention": _attention(""),
    "attention without later words": _attention("", "num_heads=4, unidirectional=1"),
    "attention with a scale": _attention("", "num_heads=2, scale=0.25"),
    "attention to so many words": _attention(", n", inputs=", int32[2] n"),
    "attention to some words": _attention(", m", inputs=", int32[2,5] m"),
    "attention to some words, by query": _attention(
        ", m", "num_heads=2, mask_filter_value=-500.0", inputs=", int32[2,5,5] m"
    ),
    "attention with a bias of scores": _attention(', "", "", s', inputs=", float[2,2,5,5] s"),
    "attention to earlier words": _attention(
        ', "", p', "num_heads=2, unidirectional=1", ", float[2,2,2,3,4] p", "y, z"
    ),
    "attention to earlier words, some masked": _attention(
        ", m, p", inputs=", int32[2,8] m, float[2,2,2,3,4] p", outputs="y, z"
    ),
    "attention that keeps its words": _attention("", outputs="y, z"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fused_operator_gives_what_onnxruntime_gives(name, tmp_path):
    path = save(tmp_path, with_random_weights(parse(CASES[name], microsoft=True)))
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        for seed in range(2):
            feeds = random_feeds(session, seed)
            for key, array in feeds.items():
                if array.dtype == np.int32:
                    feeds[key] = array % (2 if key == "m" else 3)
            assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


def _saved(folder, text):
    return save(folder, with_random_weights(parse(text, microsoft=True)))


def test_a_bias_is_part_of_the_product_before_it(tmp_path):
    steps = lower_model(_saved(tmp_path, CASES["gelu of a biased product"])).program.steps
    assert [type(step.operator).__name__ for step in steps] == ["FullyConnected", "Unary"]


LEFT = {
    "do_rotary=1 is unsupported, supported: 0": _attention("", "num_heads=2, do_rotary=1"),
    "qkv_hidden_sizes=[4, 8, 12] is unsupported, supported: three of 24 columns together": (
        _attention("", "num_heads=2, qkv_hidden_sizes=[4,8,12]")
    ),
    "shape of mask_index=(4,) is unsupported, supported: (2,), (2, 5), (2, 5, 5)": _attention(
        ", n", inputs=", int32[4] n"
    ),
    "transBatchA=1 is unsupported, supported: 0": "(float[5,2,3] a, float[2,3,7] b) => (y) "
    "{y = com.microsoft.FusedMatMul<transBatchA=1>(a, b)}",
    "outputs mean and inv_std_var are unsupported": "(float[2,3,8] x) => (float[2,3,8] y, "
    "float[2,3,1] m) <float[8] g> {y, m = com.microsoft.SkipLayerNormalization(x, x, g)}",
}


@pytest.mark.parametrize("reason", LEFT)
def test_a_form_that_we_lack_is_left_to_onnxruntime(reason, tmp_path):
    """ONNX Runtime itself may lack it too."""
    try:
        text = " ".join(lower_model(_saved(tmp_path, LEFT[reason])).program.notes)
    except UnsupportedOperatorsError as error:
        text = f"{error} {error.__cause__.__context__}"
    assert reason in text


# Shapes that the file declares are taken where onnx has no definition of an operator.
HOSTILE = {
    "heads that do not divide": _attention("", "num_heads=5"),
    "no heads": _attention("", "num_heads=0"),
    "fewer than no heads": _attention("", "num_heads=-2"),
    "heads that are no number": _attention("", 'num_heads="two"'),
    "weights of another size": "(float[2,5,12] x) => (float[2,5,8] y) <float[11,24] w, "
    "float[24] b> {y = com.microsoft.Attention<num_heads=2>(x, w, b)}",
    "a bias of another size": "(float[2,5,12] x) => (float[2,5,8] y) <float[12,24] w, "
    "float[23] b> {y = com.microsoft.Attention<num_heads=2>(x, w, b)}",
    "a past of another rank": "(float[2,5,12] x, float[2,2,4] p) => (float[2,5,8] y) "
    "<float[12,24] w, float[24] b> "
    '{y = com.microsoft.Attention<num_heads=2>(x, w, b, "", p)}',
    "a result of another size": "(float[2,5,12] x) => (float[2,5,9] y) <float[12,24] w, "
    "float[24] b> {y = com.microsoft.Attention<num_heads=2>(x, w, b)}",
    "a scale of another size": "(float[2,3,8] x) => (float[2,3,8] y) <float[7] g> "
    "{y = com.microsoft.SkipLayerNormalization(x, x, g)}",
    "a skip of another size": "(float[2,3,8] x, float[2,5,8] s) => (float[2,3,8] y) "
    "<float[8] g> {y = com.microsoft.SkipLayerNormalization(x, s, g)}",
    "a bias of another size of gelu": "(float[2,3,8] x) => (float[2,3,8] y) <float[7] b> "
    "{y = com.microsoft.BiasGelu(x, b)}",
    "a table of one axis": "(int32[2,3] i) => (float[2,3,8] y, int32[2] n) <float[10] w, "
    "float[6,8] p, float[8] g, float[8] b> "
    '{y, n = com.microsoft.EmbedLayerNormalization(i, "", w, p, "", g, b)}',
    "matrices that do not fit": "(float[2,3,4] a, float[2,5,7] b) => (float[2,3,7] y) "
    "{y = com.microsoft.FusedMatMul(a, b)}",
    "weights that do not fit": "(float[2,3,4] a) => (float[2,3,7] y) <float[5,7] w> "
    "{y = com.microsoft.FusedMatMul(a, w)}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_operands_that_do_not_fit_are_refused(name, tmp_path):
    assert_refused(_saved(tmp_path, HOSTILE[name]), tmp_path)
