"""Attention and its kin beside the outputs that the onnx package expects, and ONNX Runtime's."""

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import lower_model
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.onnx_cases import onnx_cases
from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

CASES = {
    case.name: case
    for module, kind in (
        ("attention", "Attention"),
        ("rotaryembedding", "RotaryEmbedding"),
        ("rmsnormalization", "RMSNormalization"),
    )
    for case in onnx_cases(module, kind)
}


def why_skipped(case):
    kinds = {array.dtype.name for array in (*case.feeds.values(), *case.expected.values())}
    if not kinds <= {"float32", "int64", "int32", "bool"}:
        return f"{', '.join(sorted(kinds))}: only float32 is ours"
    if any(case.model.graph.node[0].output[3:]):
        return "the scores are never stored"
    if "bidirectional" in case.name:
        return "a window on both sides"
    return ""


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_what_onnx_expects(name, tmp_path):
    case = CASES[name]
    if reason := why_skipped(case):
        pytest.skip(reason)
    path = save(tmp_path, case.model)
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        assert_same(session.run(case.feeds), case.expected, 1e-5)


MICROSOFT = {
    "attention with values of another width": "(float[2,5,12] x) => (y) <float[12,32] w, "
    "float[32] b> {y = com.microsoft.Attention<num_heads=2, qkv_hidden_sizes=[8,8,16]>(x, w, b)}",
    "several heads": "(float[2,5,12] q, float[2,7,12] k, float[2,7,16] v) => (y) "
    "{y = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v)}",
    "several heads with a bias": "(float[2,5,6] x, float[2,7,12] k, float[2,7,12] v) => (y) "
    "<float[6,12] w, float[36] b> {q = MatMul(x, w) "
    "y = com.microsoft.MultiHeadAttention<num_heads=4, scale=0.3>(q, k, v, b)}",
    "several heads, later keys hidden": "(float[2,5,12] q, float[2,5,12] k, float[2,5,12] v) "
    "=> (y) {y = com.microsoft.MultiHeadAttention<num_heads=4, unidirectional=1>(q, k, v)}",
    "several heads with a bias of scores": "(float[2,5,12] q, float[2,7,12] k, float[2,7,12] v, "
    "float[1,4,5,7] s) => (y) "
    '{y = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v, "", "", s)}',
    "several heads behind earlier tokens": "(float[2,5,12] q, float[2,5,12] k, float[2,5,12] v, "
    "float[2,4,3,3] a, float[2,4,3,3] b) => (y, c, d) {y, c, d = "
    'com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v, "", "", "", a, b)}',
    "several heads with outputs for later tokens": "(float[2,5,12] q, float[2,5,12] k, "
    "float[2,5,12] v) => (y, c, d) "
    "{y, c, d = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v)}",
    "grouped heads": "(float[1,5,32] q, float[1,5,16] k, float[1,5,16] v) => "
    "(y, c, d) <int32[1] n = {4}, int32[1] t = {5}> {y, c, d = "
    "com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2>(q, k, v, , , n, t)}",
    "grouped heads behind earlier tokens, rotated": "(float[1,2,64] q, float[1,2,32] k, "
    "float[1,2,32] v, float[1,2,3,16] a, float[1,2,3,16] b) => (y, c, d) "
    "<int32[1] n = {4}, int32[1] t = {5}, float[9,8] e, float[9,8] f> {y, c, d = "
    "com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2, do_rotary=1>"
    "(q, k, v, a, b, n, t, e, f)}",
    "rotary places": "(float[2,5,32] x) => (y) <int64[2,5] p = {0,1,2,3,4,3,4,5,6,7}, "
    "float[9,4] c, float[9,4] s> {y = com.microsoft.RotaryEmbedding<num_heads=4>(x, p, c, s)}",
    "rotary places from a first one on, interleaved": "(float[2,4,5,8] x) => (y) "
    "<int64[1] p = {2}, float[9,4] c, float[9,4] s> "
    "{y = com.microsoft.RotaryEmbedding<interleaved=1>(x, p, c, s)}",
    "root mean square of a sum": "(float[2,3,8] x, float[2,3,8] s) => (y, z) <float[8] g> "
    '{y, "", "", z = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g)}',
    "root mean square": "(float[2,3,8] x) => (y) <float[8] g> "
    "{y = SimplifiedLayerNormalization<axis=-1, epsilon=0.001>(x, g)}",
}


@pytest.mark.parametrize("name", MICROSOFT)
def test_a_fused_operator_gives_what_onnxruntime_gives(name, tmp_path):
    path = save(tmp_path, with_random_weights(parse(MICROSOFT[name], microsoft=True)))
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


HEADS = (
    "q = Reshape(a, s) k = Reshape(b, s) v = Reshape(c, s) "
    "qt = Transpose<perm=[0,2,1,3]>(q) kt = Transpose<perm=[0,2,3,1]>(k) "
    "vt = Transpose<perm=[0,2,1,3]>(v) "
)
JOINED = "m = MatMul(w, vt) mt = Transpose<perm=[0,2,1,3]>(m) y = Reshape(mt, t) }"
SPLIT = "<int64[4] s = {{0,0,4,-1}}, int64[3] t = {{0,0,-1}}, {more}> "
INPUTS = "(float[{b},6,32] a, float[{b},6,32] b, float[{b},6,32] c{more}) => (y) "


def decomposed(scores, *, batch=2, inputs="", constants="float[1] f = {0.3}"):
    return (
        INPUTS.format(b=batch, more=inputs) + SPLIT.format(more=constants) + "{ " + HEADS
        + scores + JOINED
    )  # fmt: skip


CAUSAL = ", ".join("0" if j <= i else "-10000" for i in range(6) for j in range(6))
# What a model writes, and the causal flag, the addend and the softcap that are found.
DECOMPOSED = {
    "a factor of the scores": (
        decomposed("p = MatMul(qt, kt) z = Mul(p, f) w = Softmax<axis=-1>(z) "), False, False),
    "a quotient of the scores": (
        decomposed("p = MatMul(qt, kt) z = Div(p, f) w = Softmax<axis=-1>(z) "), False, False),
    "factors of queries and keys": (
        decomposed("qs = Mul(qt, f) ks = Mul(kt, f) p = MatMul(qs, ks) w = Softmax<axis=-1>(p) "),
        False, False),
    "a mask of keys": (
        decomposed("p = MatMul(qt, kt) z = Mul(p, f) o = Add(z, h) w = Softmax<axis=-1>(o) ",
                   inputs=", float[2,1,1,6] h"), False, True),
    "a mask of each score": (
        decomposed("p = MatMul(qt, kt) z = Mul(p, f) o = Add(h, z) w = Softmax<axis=-1>(o) ",
                   inputs=", float[1,4,6,6] h"), False, True),
    "a mask of queries and keys": (
        decomposed("p = MatMul(qt, kt) o = Add(h, p) w = Softmax<axis=-1>(o) ",
                   inputs=", float[6,6] h"), False, True),
    "a condition": (
        decomposed("p = MatMul(qt, kt) o = Where(h, l, p) w = Softmax<axis=-1>(o) ",
                   inputs=", bool[2,1,6,6] h", constants="float[1] l = {-1e30}"), False, True),
    "a constant that hides later keys": (
        decomposed("p = MatMul(qt, kt) o = Add(p, h) w = Softmax<axis=-1>(o) ",
                   constants=f"float[1,1,6,6] h = {{{CAUSAL}}}"), True, False),
    "a batch of heads": (
        INPUTS.format(b=1, more="")
        + "<int64[3] s = {6,4,8}, int64[3] t = {1,6,32}, float[1] f = {0.3}> "
        "{ q = Reshape(a, s) k = Reshape(b, s) v = Reshape(c, s) qt = Transpose<perm=[1,0,2]>(q) "
        "kt = Transpose<perm=[1,2,0]>(k) vt = Transpose<perm=[1,0,2]>(v) p = MatMul(qt, kt) "
        "z = Mul(p, f) w = Softmax<axis=-1>(z) m = MatMul(w, vt) mt = Transpose<perm=[1,0,2]>(m) "
        "y = Reshape(mt, t) }", False, False),
    "shared heads of keys": (
        "(float[2,6,32] a, float[2,7,16] b, float[2,7,16] c) => (y) <int64[4] s = {0,0,4,8}, "
        "int64[4] r = {0,0,2,8}, int64[1] u = {2}, int64[5] e = {2,2,2,7,8}, "
        "int64[4] g = {2,4,7,8}, int64[3] t = {0,0,32}> "
        "{ q = Reshape(a, s) k = Reshape(b, r) v = Reshape(c, r) "
        "qt = Transpose<perm=[0,2,1,3]>(q) "
        "kh = Transpose<perm=[0,2,1,3]>(k) vh = Transpose<perm=[0,2,1,3]>(v) "
        "ku = Unsqueeze(kh, u) ke = Expand(ku, e) kg = Reshape(ke, g) "
        "vu = Unsqueeze(vh, u) ve = Expand(vu, e) vt = Reshape(ve, g) "
        "kt = Transpose<perm=[0,1,3,2]>(kg) p = MatMul(qt, kt) w = Softmax<axis=-1>(p) " + JOINED,
        False, False),
}  # fmt: skip


@pytest.mark.parametrize("name", DECOMPOSED)
def test_what_attention_is_made_of_becomes_one_step(name, tmp_path):
    text, is_causal, has_addend = DECOMPOSED[name]
    path = save(tmp_path, with_random_weights(parse(text)))
    steps = {each.operator.label: each for each in lower_model(path).program.steps}
    assert not {"MatMul", "Softmax"} & steps.keys()
    found = steps["Attention"]
    assert found.operator.causal == is_causal
    assert (len(found.inputs) > 3) == has_addend
    copies = [each for each in lower_model(path).program.steps if each.operator.label == "Copy"]
    assert len(copies) == (name == "a mask of each score")
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


ALL_HIDDEN = {
    "by one condition": ("o = Where(h, l, p) ", "", "float[1] l = {-1e9}"),
    "by a smaller number": ("o = Where(h, l, p) ", "", "float[1] l = {-1e8}"),
    "by two conditions": (
        "n = Where(h, l, p) o = Where(g, l, n) ", ", bool[6,6] g", "float[1] l = {-1e9}"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL_HIDDEN)
def test_keys_that_are_all_hidden_by_a_finite_score_weigh_the_same(name, tmp_path):
    hidden, inputs, constants = ALL_HIDDEN[name]
    text = decomposed(
        f"p = MatMul(qt, kt) {hidden} w = Softmax<axis=-1>(o) ",
        inputs=f", bool[2,1,6,6] h{inputs}", constants=constants,
    )  # fmt: skip
    path = save(tmp_path, parse(text))
    assert "Softmax" not in {each.operator.label for each in lower_model(path).program.steps}
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        feeds["a"] *= 30  # scores in hundreds, which would not vanish beside 1e9
        feeds["h"] = np.random.default_rng(0).random((2, 1, 6, 6)) < 0.5
        feeds["h"][0, 0, 3] = True
        if "g" in feeds:
            feeds["g"] = ~feeds["h"][1, 0]  # each key of the second batch is hidden once
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


HIDDEN_APART = {
    "a condition and an addend of a size": (
        "n = Where(j, l, p) o = Add(n, g) ", ", float[1,1,1,6] g", "float[1] l = {-1e4}, "),
    "two conditions of two sizes": (
        "n = Where(j, l, p) o = Where(h, d, n) ", ", bool[6,6] h",
        "float[1] l = {-1e9}, float[1] d = {-1e4}, "),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN_APART)
def test_queries_of_which_masks_hide_all_keys_keep_what_masks_say(name, tmp_path):
    hidden, inputs, constants = HIDDEN_APART[name]
    later = ",".join(str(int(key > query)) for query in range(6) for key in range(6))
    text = decomposed(
        f"p = MatMul(qt, kt) {hidden} w = Softmax<axis=-1>(o) ", inputs=inputs,
        constants=f"{constants}bool[1,1,6,6] j = {{{later}}}",
    )  # fmt: skip
    path = save(tmp_path, parse(text))
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        if "g" in feeds:  # the first keys are padding
            feeds["g"] = np.where(np.arange(6) < 3, np.float32(-1e4), 0)[None, None, None]
        else:
            feeds["h"] = np.tril(np.ones((6, 6), bool))
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


GUARDED = {
    "what is not a number": "n = IsNaN(w0) w = Where(n, zero, w0) ",
    "all scores are minus infinity": "e = Equal(o, none) i = Cast<to=7>(e) "
    "r = ReduceMin(i, last) n = Cast<to=9>(r) w = Where(n, zero, w0) ",
}
_SCORES = (
    "zero = Sub(f, f) none = Log(zero) p = MatMul(qt, kt) o = Where(h, p, none) "
    "w0 = Softmax<axis=-1>(o) "
)


def guarded(guard):
    return decomposed(
        _SCORES + guard, inputs=", bool[2,1,6,6] h",
        constants="float[1] f = {0.3}, int64[1] last = {-1}",
    )  # fmt: skip


@pytest.mark.parametrize("name", GUARDED)
def test_a_guard_of_queries_that_see_no_key_is_part_of_attention(name, tmp_path):
    model = with_random_weights(parse(guarded(GUARDED[name]), opset=18))
    path = save(tmp_path, model)
    labels = [each.operator.label for each in lower_model(path).program.steps]
    assert "Attention" in labels
    assert not {"MatMul", "Softmax"} & {*labels}
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        feeds["h"][:, :, 2] = False
        assert not session.run(feeds)["y"][:, 2].any()
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


@pytest.mark.parametrize("guard", [
    GUARDED["what is not a number"].replace("(n, zero, w0)", "(n, w0, zero)"),
    GUARDED["what is not a number"].replace("IsNaN(w0)", "IsNaN(o)"),
    GUARDED["all scores are minus infinity"].replace("ReduceMin", "ReduceMax"),
    GUARDED["all scores are minus infinity"].replace("Equal(o, none)", "Equal(o, zero)"),
], ids=["other way round", "of scores", "any", "another score"])  # fmt: skip
def test_what_is_no_guard_stays(guard, tmp_path):
    path = save(tmp_path, with_random_weights(parse(guarded(guard), opset=18)))
    assert "Softmax" in {each.operator.label for each in lower_model(path).program.steps}


PROJECTED = (
    "(float[1,6,16] x) => (y) <float[16,96] w, float[96] b, int64[5] s = {0,0,3,4,8}, "
    "int64[3] t = {0,0,32}, int64 i = {0}, int64 j = {1}, int64 l = {2}> "
    "{ m = MatMul(x, w) n = Add(m, b) r = Reshape(n, s) p = Transpose<perm=[2,0,3,1,4]>(r) "
    "qt = Gather<axis=0>(p, i) k = Gather<axis=0>(p, j) vt = Gather<axis=0>(p, l) "
    "kt = Transpose<perm=[0,1,3,2]>(k) o = MatMul(qt, kt) u = Softmax<axis=-1>(o) "
    "m2 = MatMul(u, vt) mt = Transpose<perm=[0,2,1,3]>(m2) y = Reshape(mt, t) }"
)


def test_one_product_of_queries_keys_and_values_becomes_three(tmp_path):
    path = save(tmp_path, with_random_weights(parse(PROJECTED)))
    kinds = [each.operator.label for each in lower_model(path).program.steps]
    assert sorted(kinds) == ["Attention", *["FullyConnected"] * 3]
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


NOT_FUSED = {
    "weights that are read twice": decomposed(
        "p = MatMul(qt, kt) w = Softmax<axis=-1>(p) "
    ).replace("=> (y)", "=> (y, w)"),
    "a softmax over queries": decomposed("p = MatMul(qt, kt) w = Softmax<axis=2>(p) "),
    "scores that are clamped": decomposed(
        "p = MatMul(qt, kt) o = Relu(p) w = Softmax<axis=-1>(o) "
    ),
    "a mask that is scaled": decomposed(
        "p = MatMul(qt, kt) o = Add(p, h) z = Mul(o, f) w = Softmax<axis=-1>(z) ",
        inputs=", float[6,6] h",
    ),
}


@pytest.mark.parametrize("name", NOT_FUSED)
def test_what_is_no_attention_stays_as_it_is(name, tmp_path):
    path = save(tmp_path, with_random_weights(parse(NOT_FUSED[name])))
    kinds = {each.operator.label for each in lower_model(path).program.steps}
    assert "Attention" not in kinds
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


def test_attention_of_any_number_of_tokens_is_one_step(tmp_path):
    text = DECOMPOSED["a mask of keys"][0].replace("float[2,6,32]", "float[2,N,32]")
    path = save(tmp_path, with_random_weights(parse(text.replace("[2,1,1,6]", "[2,1,1,N]"))))
    from arenite.pipeline.base.reading import Reading
    from arenite.planner.sizes import read_lengths
    from arenite.runtime import Session

    reading = Reading(dims=read_lengths({"N": "1..40"}))
    assert "Attention" in {e.operator.label for e in lower_model(path, reading).program.steps}
    draw = np.random.default_rng(0)
    with Session(build(path, tmp_path, reading=reading)) as session:
        for count in (1, 7, 40, 3):
            feeds = {key: draw.normal(size=(2, count, 32)).astype("f4") for key in "abc"}
            feeds["h"] = draw.normal(size=(2, 1, 1, count)).astype("f4")
            assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


LEFT = {
    "5 heads do not divide 12 columns": "(float[2,5,12] q, float[2,7,12] k, float[2,7,12] v) "
    "=> (float[2,5,12] y) {y = com.microsoft.MultiHeadAttention<num_heads=5>(q, k, v)}",
    "queries, keys and values in one tensor are unsupported": "(float[2,5,4,3,8] x) => "
    "(float[2,5,32] y) {y = com.microsoft.MultiHeadAttention<num_heads=4>(x)}",
    "smooth_softmax=1 is unsupported, supported: 0": "(float[1,5,32] q, float[1,5,16] k, "
    "float[1,5,16] v) => (y, c, d) <int32[1] n = {4}, int32[1] t = {5}> {y, c, d = com.microsoft."
    "GroupQueryAttention<num_heads=4, kv_num_heads=2, smooth_softmax=1>(q, k, v, , , n, t)}",
    "elements of a head=300 is unsupported, supported: up to 256": "(float[1,2,300] q, "
    "float[1,2,300] k, float[1,2,300] v) => (float[1,2,300] y) "
    "{y = com.microsoft.MultiHeadAttention<num_heads=1>(q, k, v)}",
    "scale=0.5 is unsupported, supported: 1": "(float[2,5,32] x) => (y) <int64[1] p = {2}, "
    "float[9,4] c, float[9,4] s> "
    "{y = com.microsoft.RotaryEmbedding<num_heads=4, scale=0.5>(x, p, c, s)}",
}


@pytest.mark.parametrize("reason", LEFT)
def test_a_form_that_we_lack_is_left_to_onnxruntime(reason, tmp_path):
    """ONNX Runtime itself may lack it too."""
    path = save(tmp_path, with_random_weights(parse(LEFT[reason], microsoft=True)))
    try:
        text = " ".join(lower_model(path).program.notes)
    except UnsupportedOperatorsError as error:
        text = str(error)
    assert reason in text
