"""Layers with sparse weights compute what LiteRT computes, made dense by DENSIFY or not."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")

from tflite import BuiltinOperator as Op
from tflite import TensorType

from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import Session
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import build
from support.tflite_operator import Reference
from support.tiny_chains import stored_sparse
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

FLOAT16, FLOAT32 = TensorType.FLOAT16, TensorType.FLOAT32


def weights(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    array = rng.normal(size=(8, 16)) * np.repeat(rng.random((8, 4)) < 0.4, 4, axis=1)
    return array.astype(dtype)


def layer(*, half: bool, densify: bool) -> bytes:
    """A fully connected layer whose weights pass DENSIFY and, if half, DEQUANTIZE."""
    sparsity, data = stored_sparse(
        weights("float16" if half else "float32"), blocks={1: 4}, sparse=[1]
    )
    kind = FLOAT16 if half else FLOAT32
    tensors = [
        TinyTensor("x", (1, 16), FLOAT32),
        TinyTensor("w", (8, 16), kind, data, sparse=sparsity),
    ]
    operators = []
    for code, result in ((Op.DENSIFY, kind), (Op.DEQUANTIZE, FLOAT32)):
        if densify if code == Op.DENSIFY else half:
            operators.append(TinyOperator(code, [len(tensors) - 1], [len(tensors)]))
            tensors.append(TinyTensor(f"w{len(tensors)}", (8, 16), result))
    operators.append(TinyOperator(Op.FULLY_CONNECTED, [0, len(tensors) - 1, -1], [len(tensors)]))
    tensors.append(TinyTensor("y", (1, 8), FLOAT32))
    return tiny_tflite(TinySubgraph(tensors, operators, [0], [len(tensors) - 1]))


@pytest.mark.parametrize(("half", "densify"), [(False, True), (True, True), (False, False)])
def test_sparse_weights_give_what_litert_gives(tmp_path: Path, half: bool, densify: bool) -> None:
    path = tmp_path / "layer.tflite"
    path.write_bytes(layer(half=half, densify=densify))
    array = np.random.default_rng(0).normal(size=(1, 16)).astype(np.float32)
    (expected,) = Reference(path).run([array])
    with Session(build(path, tmp_path)) as session:
        assert len(session.backends()) == 1
        (found,) = session.run({"x": array}).values()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    numbers = array @ weights("float16" if half else "float32").astype(np.float32).T
    np.testing.assert_allclose(found, numbers, rtol=0, atol=1e-4)


def test_what_is_made_dense_in_the_run_is_refused(tmp_path: Path) -> None:
    tensors = [TinyTensor("x", (4,), FLOAT32), TinyTensor("y", (4,), FLOAT32)]
    path = tmp_path / "x.tflite"
    path.write_bytes(
        tiny_tflite(TinySubgraph(tensors, [TinyOperator(Op.DENSIFY, [0], [1])], [0], [1]))
    )
    with pytest.raises(UnsupportedOperatorsError, match="input 0 is not constant"):
        compile_model(path)
