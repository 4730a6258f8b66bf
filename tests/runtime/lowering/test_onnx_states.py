"""States of ONNX models in our runtime: what a run leaves the next one finds."""

import json

import numpy as np
import pytest

from arenite.runtime import Session
from support.running import build
from support.tiny_onnx import parse, save

STATED = {
    "changed in place": ("{ t = Add(s, x) y = Neg(t) }", lambda s, x: (-(s + x), s + x)),
    "read after it is changed": ("{ t = Add(s, x) y = Mul(t, s) }",
                                 lambda s, x: ((s + x) * s, s + x)),
    "changed by what may not write over it": ("{ t = MatMul(s, x) y = Neg(s) }",
                                              lambda s, x: (-s, s @ x)),
    "replaced by an input": ("{ y = Mul(s, x) t = Identity(x) }", lambda s, x: (s * x, x)),
    "read through a view": (
        "{ n = Constant<value=int64[2]{2,8}>() v = Reshape(s, n) t = Sub(s, x)"
        " m = Constant<value=int64[2]{4,4}>() w = Neg(v) y = Reshape(w, m) }",
        lambda s, x: (-s, s - x),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STATED)
@pytest.mark.parametrize("has_first", [True, False])
def test_a_state_goes_from_run_to_run(case, has_first, tmp_path):
    text, expected = STATED[case]
    model = parse(f"(float[4,4] x, float[4,4] s) => (y, t) {text}")
    entry = model.metadata_props.add()
    entry.key, entry.value = "arenite.states", json.dumps({"s": "t"})
    random = np.random.default_rng(0)
    state = np.zeros((4, 4), np.float32)
    if has_first:
        state = random.standard_normal((4, 4), np.float32)
        model.graph.initializer.add(name="s", data_type=1, dims=(4, 4), raw_data=state.tobytes())
    with Session(build(save(tmp_path, model), tmp_path)) as session:
        assert [port.name for port in session.inputs] == ["x"]
        np.testing.assert_array_equal(session.states["s"], state)
        for _ in range(3):
            x = random.standard_normal((4, 4), np.float32)
            (y, state) = expected(state, x)
            np.testing.assert_allclose(session.run({"x": x})["y"], y, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(session.states["s"], state, rtol=1e-5, atol=1e-6)


def test_a_state_can_be_set(tmp_path):
    model = parse("(float[4] x, float[4] s) => (y, t) { t = Add(s, x) y = Neg(t) }")
    entry = model.metadata_props.add()
    entry.key, entry.value = "arenite.states", json.dumps({"s": "t"})
    ones = np.ones(4, np.float32)
    with Session(build(save(tmp_path, model), tmp_path)) as session:
        session.states["s"][...] = 5
        np.testing.assert_array_equal(session.run({"x": ones})["y"], -6 * ones)
        session.reset()
        np.testing.assert_array_equal(session.run({"x": ones})["y"], -ones)
