"""A small ONNX network as ONNX Runtime quantises it, and what that makes of inputs."""

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

from arenite.runtime.cexport.base.layout import Interface
from support.tiny_onnx import parse, save, with_random_weights

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
    "qlinear, unsigned weights": (
        QuantFormat.QOperator,
        QuantType.QUInt8,
        QuantType.QUInt8,
        False,
    ),
}


class _Calibration:
    def __init__(self, model: Path) -> None:
        random = np.random.default_rng(0)
        given = onnxruntime.InferenceSession(str(model)).get_inputs()[0]
        self._feeds = iter(
            [{given.name: random.uniform(-2, 2, given.shape).astype(np.float32)} for _ in range(3)]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def floats(folder: Path) -> Path:
    """Write the network in floats."""
    return save(folder, with_random_weights(parse(NETWORK, opset=13)))


def quantised(
    folder: Path, form: tuple[QuantFormat, QuantType, QuantType, bool], network: str = NETWORK
) -> Path:
    """Write a network in a form of integers.

    Signed weights of unsigned results have 7 bits: of 8 bits, ONNX Runtime's sums saturate on
    x86-64 without VNNI.
    """
    kind, activations, weights, by_channel = form
    source = save(folder, with_random_weights(parse(network, opset=13)))
    path = folder / "quantised.onnx"
    logging.disable(logging.WARNING)
    try:
        quantize_static(
            source, path, _Calibration(source), quant_format=kind,
            activation_type=activations, weight_type=weights, per_channel=by_channel,
            reduce_range=(activations, weights) == (QuantType.QUInt8, QuantType.QInt8),
        )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    return path


def outputs_of(
    path: Path, interface: Interface, inputs: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """Return what ONNX Runtime makes of inputs of stored axes, operator by operator."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    given = dict(inputs)
    for port in interface.inputs:
        if port.port.axes is not None:
            array = given[port.port.name].transpose(np.argsort(port.port.axes))
            given[port.port.name] = np.ascontiguousarray(array)
    return [np.asarray(each) for each in session.run(None, given)]


def assert_within_few_quanta(found: np.ndarray, expected: np.ndarray) -> None:
    """Check that outputs differ by no more than products rounded another way may bring about."""
    quantum = np.diff(np.unique(expected)).min() if np.unique(expected).size > 1 else 1.0
    np.testing.assert_allclose(found, expected, 0, 3 * max(quantum, np.abs(expected).max() / 127))
