"""ONNX networks with quantised numbers as C, beside ONNX Runtime."""

import logging
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

from arenite.cli.main import main
from support.exported_c import Machine, compiled, drawn, exported
from support.running import with_random_weights
from support.tiny_onnx import parse, save

NETWORK = (
    "(float[1,6,12,10] x) => (y) <float[8,6,3,3] w, float[8] b, float[8,1,3,3] d, float[8,8,1,1] "
    "p, float[4,8] g, int64[2] s = {1,8}> {c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w, b) "
    "r = Relu(c) e = Conv<group=8, pads=[1,1,1,1]>(r, d) f = Conv(e, p) a = Add(f, r) "
    "m = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a) q = GlobalAveragePool(m) "
    "h = Reshape(q, s) y = Gemm<transB=1>(h, g)}"
)
FORMS = {
    "qdq, signed": (QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8, True),
    "qdq, unsigned": (QuantFormat.QDQ, QuantType.QUInt8, QuantType.QInt8, True),
    "qlinear": (QuantFormat.QOperator, QuantType.QUInt8, QuantType.QInt8, False),
}


class Calibration:
    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        random = np.random.default_rng(0)
        self._feeds = iter(
            [{name: random.uniform(-2, 2, shape).astype(np.float32)} for _ in range(3)]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


@pytest.mark.parametrize("form", FORMS)
def test_a_quantised_network_gives_what_onnx_runtime_gives_within_few_quanta(
    form: str, tmp_path: Path
) -> None:
    kind, activations, weights, by_channel = FORMS[form]
    logging.disable(logging.WARNING)
    source = save(tmp_path, with_random_weights(parse(NETWORK, opset=13)))
    path = tmp_path / "quantised.onnx"
    try:
        quantize_static(
            source, path, Calibration("x", (1, 6, 12, 10)), quant_format=kind,
            activation_type=activations, weight_type=weights, per_channel=by_channel,
        )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    export = exported(path)
    assert "conv_s8" in export.kernels
    assert main(["export", str(path), "--to", "c", "-o", str(tmp_path / "made")]) == 0
    done = subprocess.run(["make", "-C", tmp_path / "made", "check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = onnxruntime.InferenceSession(str(path), options)
    inputs = drawn(export, 1)
    (port,) = export.interface.inputs
    given = inputs[port.port.name]
    if port.port.axes is not None:
        given = np.ascontiguousarray(given.transpose(np.argsort(port.port.axes)))
    (expected,) = reference.run(None, {"x": given})
    (found,) = machine.run(inputs).values()
    quantum = np.diff(np.unique(expected)).min() if np.unique(expected).size > 1 else 1.0
    np.testing.assert_allclose(found, expected, 0, 3 * max(quantum, np.abs(expected).max() / 127))
