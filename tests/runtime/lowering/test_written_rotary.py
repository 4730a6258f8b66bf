"""Rotary positions that a model writes out become one step, beside ONNX Runtime."""

import pytest

from arenite.pipeline.targets.compiling import lower_model
from arenite.runtime.operators.attention import Rotary
from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

_HEAD = (
    "(float[{x}] x, {inputs}) => (y) <int64[1] l = {{0}}, int64[1] h = {{{half}}}, "
    "int64[1] e = {{99}}, int64[1] a = {{{axis}}}, int64[1] one = {{1}}, "
    "int64[1] two = {{2}}, {more}> {{ "
)
_SLICED = "p = Slice(x, l, h, a) q = Slice(x, h, e, a) "
_TURNED = "n = Neg(q) t = Concat<axis=-1>(n, p) "
_SUM = "u = Mul(x, c) v = Mul(t, s) y = Add(u, v) }"
_COMPUTED = "w = Concat<axis=-1>(f, f) g = Unsqueeze(w, one) k = Cos(g) c = Mul(k, r) s = Sin(g) "
_ANGLES = "float[2,3,4] f"
_PAIRS = (
    "p = Slice(x, l, e, a, two) q = Slice(x, one, e, a, two) n = Neg(q) "
    "i = Unsqueeze(n, last) j = Unsqueeze(p, last) z = Concat<axis=-1>(i, j) t = Reshape(z, to) "
)
_REPEATED = (
    "b = Unsqueeze(f, last) w = Concat<axis=-1>(b, b) g = Reshape(w, of) c = Cos(g) s = Sin(g) "
)
_INTERLEAVED = "int64[1] last = {-1}, int64[4] to = {2,5,3,8}, int64[4] of = {2,1,3,8}"


def _model(body, x="2,5,3,8", half=4, axis=3, inputs=_ANGLES, more="float r = {1.25}"):
    return _HEAD.format(x=x, half=half, axis=axis, inputs=inputs, more=more) + body


FORMS = {
    "with slices": _model(_SLICED + _TURNED + _COMPUTED + _SUM),
    "with a split, the factors the other way round": _model(
        "p, q = Split<axis=-1, num_outputs=2>(x) " + _TURNED + _COMPUTED
        + "u = Mul(c, x) v = Mul(s, t) y = Add(v, u) }"
    ),
    "by tokens and heads": _model(
        _SLICED + _TURNED + _COMPUTED.replace("one", "two") + _SUM, x="2,3,5,8"
    ),
    "of tables of cosines and sines": _model(
        _SLICED + _TURNED + "d = Concat<axis=-1>(f, f) o = Gather<axis=0>(d, i) "
        "c = Unsqueeze(o, one) s = Sin(c) " + _SUM,
        inputs="float[9,4] f", more="int64[1,3] i = {4,0,7}",
    ),
    "interleaved": _model(_PAIRS + _REPEATED + _SUM, more=_INTERLEAVED),
}  # fmt: skip

OTHERS = {
    "halves have other angles": _model(
        _SLICED + _TURNED + "w = Concat<axis=-1>(f, o) g = Unsqueeze(w, one) c = Cos(g) "
        "s = Sin(g) " + _SUM,
        inputs="float[2,3,4] f, float[2,3,4] o",
    ),
    "the first half is negated": _model(
        _SLICED + "n = Neg(p) t = Concat<axis=-1>(q, n) " + _COMPUTED + _SUM
    ),
    "parts are no halves": _model(
        "p = Slice(x, l, two, a) q = Slice(x, two, e, a) " + _TURNED + _COMPUTED + _SUM
    ),
    "pairs have angles of halves": _model(
        _PAIRS + "w = Concat<axis=-1>(f, f) g = Unsqueeze(w, one) c = Cos(g) s = Sin(g) " + _SUM,
        more=_INTERLEAVED,
    ),
    "each head has its angles": _model(
        _SLICED + _TURNED + "g = Concat<axis=-1>(f, f) c = Cos(g) s = Sin(g) " + _SUM,
        inputs="float[2,5,3,4] f",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*FORMS, *OTHERS])
def test_written_rotary_positions_give_what_onnxruntime_gives(name, tmp_path):
    model = with_random_weights(parse({**FORMS, **OTHERS}[name], opset=18))
    path = save(tmp_path, model)
    kinds = [type(step.operator) for step in lower_model(path).program.steps]
    assert kinds.count(Rotary) == (name in FORMS)
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)
