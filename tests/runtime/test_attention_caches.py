"""Caches of operators of attention as states that grow, beside ONNX Runtime's fed by hand."""

import numpy as np
import onnxruntime
import pytest

from arenite.planner import TensorKind
from arenite.planner.errors import SizeError
from arenite.runtime import Session
from arenite.runtime.operators.attention import Attention
from arenite.runtime.rewrites import Caches
from support.caches import compiled
from support.edited_programs import apart, file_of
from support.running import PoisonedSession
from support.tiny_onnx import parse, save, with_random_weights

TOKENS = 40
ROWS = (0.3 * np.random.default_rng(1).standard_normal((TOKENS, 16))).astype(np.float32)
DIMS = {"s": "1..3", "p": "0..39+"}
MODEL = """(float[1,s,16] x{more}, float[1,2,p,{width}] past_k, float[1,2,p,{width}] past_v)
=> (float[1,s,16] y, float[1,2,t,{width}] present_k, float[1,2,t,{width}] present_v)
<float[16,{queries}] wq, float[16,{keys}] wk, float[16,{keys}] wv, float[{queries},16] wo{weights}>
{{ q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) {body} o = MatMul(m, wo) y = Add(o, x) }}
"""


def decoder(body, *, heads=4, width=8, more="", weights="", opset=23):
    text = MODEL.format(
        body=body, queries=heads * width, keys=2 * width, width=width, more=more, weights=weights
    )
    return with_random_weights(parse(text, opset=opset, microsoft=True))


def grouped(operands="q, k, v", key_heads=2, present="t"):
    """Return a decoder whose numbers of tokens are those of a mask, as exporters write it."""
    body = f"""n = ReduceSum(mask, one) l = Sub(n, one) i = Cast<to=6>(l) d = Shape<start=1>(mask)
        u = Squeeze(d) j = Cast<to=6>(u) z = Concat<axis=2>(q, k, v)
        m, present_k, present_v = com.microsoft.GroupQueryAttention<num_heads=4,
        kv_num_heads={key_heads}, do_rotary=1>({operands}, past_k, past_v, i, j, e, f)"""
    tables = ", int64[1] one = {1}, float[43,8] e, float[43,8] f"
    model = decoder(body, width=16, more=", int64[1,t] mask", weights=tables, opset=17)
    for output in model.graph.output[1:]:
        output.type.tensor_type.shape.dim[2].dim_param = present
    return model


def many_headed(heads=2):
    body = f"""m, present_k, present_v = com.microsoft.MultiHeadAttention<num_heads={heads},
        unidirectional=1>(q, k, v, "", "", "", past_k, past_v)"""
    return decoder(body, heads=2, opset=17)


MODELS = {
    "by tokens": decoder(
        "m, present_k, present_v = Attention<q_num_heads=4, kv_num_heads=2, is_causal=1>"
        "(q, k, v, , past_k, past_v)"),
    "by heads, masked": decoder(
        "qr = Reshape(q, hq) kr = Reshape(k, hk) vr = Reshape(v, hk) "
        "qh = Transpose<perm=[0,2,1,3]>(qr) kh = Transpose<perm=[0,2,1,3]>(kr) "
        "vh = Transpose<perm=[0,2,1,3]>(vr) "
        "mh, present_k, present_v = Attention(qh, kh, vh, mask, past_k, past_v) "
        "mt = Transpose<perm=[0,2,1,3]>(mh) m = Reshape(mt, join)",
        more=", float[1,1,s,t] mask",
        weights=", int64[4] hq = {0,0,4,8}, int64[4] hk = {0,0,2,8}, int64[3] join = {0,0,-1}"),
    "several heads": many_headed(),
    "keys and values in one": with_random_weights(parse(
        "(float[1,s,16] x, float[2,1,4,p,4] past) => "
        "(float[1,s,16] y, float[2,1,4,t,4] present) <float[16,48] w, float[48] b> "
        "{ m, present = com.microsoft.Attention<num_heads=4, unidirectional=1>(x, w, b, , past) "
        "y = Add(m, x) }", microsoft=True)),
    "grouped heads": grouped(),
    "grouped heads in one": grouped("z, , "),
}  # fmt: skip


def dims_of(model):
    """Return the sizes of a model; t is a free dimension only of one with a mask."""
    has_mask = any(each.name == "mask" for each in model.graph.input)
    return {**DIMS, "t": "p+s"} if has_mask else DIMS


def feeds_of(name, begin, end):
    feeds = {"x": ROWS[None, begin:end]}
    if "grouped" in name:
        feeds["mask"] = np.ones((1, end), np.int64)
    if "masked" in name:
        later = np.arange(begin, end)[:, None] < np.arange(end)
        feeds["mask"] = np.where(later, np.float32(-1e9), np.float32(0))[None, None]
    return feeds


@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_forty_tokens_are_those_of_caches_fed_by_hand(name, chunk, tmp_path):
    built = compiled(tmp_path, model=MODELS[name], dims=dims_of(MODELS[name]))
    tensors = built.program.tensors
    runtime = onnxruntime.InferenceSession(save(tmp_path, MODELS[name]))
    shapes = {each.name: each.shape for each in runtime.get_inputs() if "past" in each.name}
    assert all(tensors[each].kind is TensorKind.STATE for each in shapes)
    (step,) = [each for each in built.program.steps if isinstance(each.operator, Attention)]
    read = {built.program.root(each)[0] for each in step.inputs[1:3]}
    assert read == {*shapes} or name == "keys and values in one"
    past = {
        each: np.zeros([0 if n == "p" else n for n in shape], np.float32)
        for each, shape in shapes.items()
    }
    data = file_of(apart(built))
    with PoisonedSession([data], guard=True) as session, Session.of_pieces([data], "kept") as one:
        assert "onnxruntime" not in session.backends()
        for begin in range(0, TOKENS, chunk):
            feeds = feeds_of(name, begin, min(begin + chunk, TOKENS))
            expected, *present = runtime.run(None, {**feeds, **past})
            past = dict(zip(past, present, strict=True))
            found = session.run(feeds)["y"]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
            np.testing.assert_array_equal(one.run(feeds)["y"], found)
        assert one.states.length == TOKENS
        for each, rows in past.items():
            right = np.moveaxis(rows, shapes[each].index("p"), 0)
            np.testing.assert_allclose(one.states[each], right, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "most"), [(Caches.FP16, 2e-3), (Caches.INT8, 3e-2)])
@pytest.mark.parametrize("name", MODELS)
def test_caches_of_fewer_bits_are_near(name, kind, most, tmp_path):
    exact, kept = (
        compiled(tmp_path, model=MODELS[name], dims=dims_of(MODELS[name]), cache=each)
        for each in (None, kind)
    )
    with (
        Session.of_pieces([file_of(apart(exact))], "exact") as wide,
        PoisonedSession([file_of(apart(kept))], guard=True) as narrow,
    ):
        for begin in range(0, TOKENS, 3):
            feeds = feeds_of(name, begin, min(begin + 3, TOKENS))
            right = wide.run(feeds)["y"]
            assert np.abs(narrow.run(feeds)["y"] - right).max() < most * np.abs(right).max()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (grouped(present="p"), r"GroupQuery.* shape of 'present_k' is .* by its rule"),
        (grouped(key_heads=0), "kv_num_heads is 0, expected 1 or more"),
        (many_headed(0), "num_heads is 0, expected 1 or more"),
    ],
    ids=["one buffer of past and present", "no heads of keys", "no heads"],
)  # fmt: skip
def test_lengths_that_no_cache_has_are_refused(model, reason, tmp_path):
    with pytest.raises(SizeError, match=reason):
        compiled(tmp_path, model=model, dims=dims_of(model))


def test_the_stated_number_of_tokens_is_that_of_all(tmp_path):
    dims = {**DIMS, "t": "1..42"}
    assert compiled(tmp_path, model=grouped(), dims=dims).program.dimensions
    with pytest.raises(SizeError, match="total_sequence_length and tokens"):
        compiled(tmp_path, model=grouped(), dims={**dims, "t": "1..41"})
