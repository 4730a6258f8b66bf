"""Weights of few bits as C, which multiplies by them as floats."""

from pathlib import Path

import numpy as np

from support.exported_c import Machine, Ours, compiled, drawn, exported
from support.tiny_onnx import parse, save, with_random_weights

TABLE = (
    "(int64[3] i) => (y) <int8[24,20] q, float[24] s> {e = DequantizeLinear<axis=0>(q, s) "
    "g = Gather(e, i) y = Gemm<transB=1>(g, e)}"
)


def test_c_multiplies_by_weights_of_bytes_as_floats(tmp_path: Path) -> None:
    path = save(tmp_path, with_random_weights(parse(TABLE)))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 0)
    for expected, found in zip(
        Ours(path).run(list(inputs.values())), machine.run(inputs).values(), strict=True
    ):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)
