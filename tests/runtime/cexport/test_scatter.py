"""Elements and slices updated by index, in C: the outputs are those of ONNX Runtime and LiteRT."""

from pathlib import Path

import numpy as np
import pytest

from support.exported_c import Machine, compiled, exported
from support.tflite_operator import Given, Reference, operator_model
from support.tiny_onnx import parse, save

SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
MODELS = {
    "elements": "(float[3,5] x, int64[2,5] i, float[2,5] u) => (float[3,5] y) "
    "{ y = ScatterElements<axis=0>(x, i, u) }",
    "elements of the last axis, in place": "(float[2,3,3] x, int32[2,3,2] i, float[2,3,2] u) => "
    '(float[2,3,3] z) { a = Abs(x) y = ScatterElements<axis=2, reduction="add">(a, i, u) '
    "z = Neg(y) }",
    "largest elements": "(float[3] x, int64[7] i, float[7] u) => (float[3] y) "
    '{ y = ScatterElements<axis=0, reduction="max">(x, i, u) }',
    "slices": "(int64[3,3,2] x, int64[4,2] i, int64[4,2] u) => (int64[3,3,2] y) "
    "{ y = ScatterND(x, i, u) }",
    "products of slices": "(float[3,4] x, int64[2,3,1] i, float[2,3,4] u) => (float[3,4] y) "
    '{ y = ScatterND<reduction="mul">(x, i, u) }',
    "bytes": "(uint8[3,2] x, int64[1,1] i, uint8[1,2] u) => (uint8[3,2] y) "
    "{ y = ScatterND(x, i, u) }",
}


def drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers, or indices of axes of 3, some of which count from the end."""
    if dtype == "float32":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0 if dtype == "uint8" else -3, 3, shape).astype(dtype)


@pytest.mark.parametrize("name", MODELS)
def test_updates_are_those_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = save(tmp_path, parse(MODELS[name]))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", *SANITIZED))
    session = onnxruntime.InferenceSession(str(path))
    random = np.random.default_rng(3)
    for _ in range(3):
        ports = export.interface.inputs
        inputs = {
            each.port.name: drawn(random, each.tensor.shape, each.tensor.dtype.label)
            for each in ports
        }
        (expected,) = session.run(None, inputs)
        (found,) = machine.run(inputs).values()
        np.testing.assert_array_equal(found, expected)


def test_sums_of_slices_are_those_of_litert(tmp_path: Path) -> None:
    shape = np.array([4, 3], np.int32)
    path = tmp_path / "model.tflite"
    path.write_bytes(
        operator_model(
            "SCATTER_ND",
            [Given((5, 1), "int32"), Given((5, 3)), Given((2,), "int32", shape)],
            [Given((4, 3))],
            ("ScatterNdOptions", {}),
        )
    )
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", *SANITIZED))
    indices = np.array([[3], [0], [3], [1], [0]], np.int32)
    updates = np.random.default_rng(4).standard_normal((5, 3)).astype(np.float32)
    names = [each.port.name for each in export.interface.inputs]
    (found,) = machine.run(dict(zip(names, (indices, updates), strict=True))).values()
    (expected,) = Reference(path).run([indices, updates])
    np.testing.assert_array_equal(found, expected)
