"""Attention of bytes, as converters and quantisers write it, becomes one step."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

import onnxruntime

from arenite.pipeline.targets.compiling import lower_model
from arenite.planner import DType
from arenite.runtime.operators.attention import Attention
from bench.byte_encoder import byte_encoder
from support.quantised_onnx import FORMS, quantised
from support.running import PoisonedSession, build
from support.tflite_operator import Reference

NETWORK = (
    "(float[1,24,16] x) => (y) <float[16,16] a, float[16,16] b, float[16,16] c, int64[4] s = "
    "{0,0,2,8}, int64[3] t = {0,0,16}, float r = {2.8284271}> "
    "{ d = MatMul(x, a) e = Reshape(d, s) q = Transpose<perm=[0,2,1,3]>(e) "
    "f = MatMul(x, b) g = Reshape(f, s) k = Transpose<perm=[0,2,3,1]>(g) "
    "h = MatMul(x, c) i = Reshape(h, s) v = Transpose<perm=[0,2,1,3]>(i) "
    "o = MatMul(q, k) p = Div(o, r) u = Softmax<axis=-1>(p) m = MatMul(u, v) "
    "n = Transpose<perm=[0,2,1,3]>(m) y = Reshape(n, t) }"
)


def operators(path: Path) -> list[str]:
    return [type(step.operator).__name__ for step in lower_model(path).program.steps]


def attends(path: Path) -> list[Attention]:
    """Return all attention, of bytes."""
    program = lower_model(path).program
    found = [step for step in program.steps if isinstance(step.operator, Attention)]
    assert all(program.tensors[step.outputs[0]].dtype is DType.INT8 for step in found)
    return [step.operator for step in found]


def test_that_of_a_tflite_model_is_one_step(tmp_path):
    path = tmp_path / "encoder.tflite"
    path.write_bytes(byte_encoder(24, layers=1, features=32))
    assert [(each.heads, each.scale) for each in attends(path)] == [(2, 1.0)]
    assert not {"MatMul", "Softmax"} & set(operators(path))
    session, reference = PoisonedSession(build(path, tmp_path)), Reference(path)
    generator = np.random.default_rng(0)
    (port,) = session.inputs
    fed = generator.integers(-128, 128, port.shape).astype(np.int8)
    (found,) = session.run({port.name: fed}).values()
    (expected,) = reference.run([fed])
    off = np.abs(found.astype(int) - expected.astype(int))
    assert off.max() <= 4  # a layer has many roundings
    assert off.mean() < 0.5
    assert len(np.unique(expected)) > 100


@pytest.mark.parametrize("form", ["qdq, signed", "qdq, unsigned"])
def test_that_of_a_quantiser_is_one_step(form, tmp_path):
    path = quantised(tmp_path, FORMS[form], NETWORK)
    assert len(attends(path)) == 1
    assert not {"MatMul", "Softmax"} & set(operators(path))
    session = PoisonedSession(build(path, tmp_path))
    stock = onnxruntime.InferenceSession(str(path))
    generator = np.random.default_rng(0)
    for _ in range(3):
        fed = {"x": generator.uniform(-2, 2, (1, 24, 16)).astype(np.float32)}
        (found,) = session.run(fed).values()
        (expected,) = stock.run(None, fed)
        quantum = np.diff(np.unique(expected)).min()
        assert np.abs(found - expected).max() <= 1.01 * quantum
        assert np.mean(found == expected) > 0.8
