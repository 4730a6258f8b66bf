"""TFLite models of one layer each, made for our kernels of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tflite import BuiltinOperator, TensorType

from support.tflite_operator import Given, operator_model, weights
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

DETECTION = {
    "max_detections": 10, "max_classes_per_detection": 1, "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.4, "num_classes": 3, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0,
    "w_scale": 5.0, "use_regular_nms": False,
}  # fmt: skip
LSTM = ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions")
FLOAT, COMPLEX, INTEGER = TensorType.FLOAT32, TensorType.COMPLEX64, TensorType.INT32
PARTS = ("COMPLEX_ABS", "REAL", "IMAG", "CAST")


def detector(
    options: Mapping[str, object],
    boxes: int = 60,
    columns: int = 4,
    dtype: str = "float32",
    coding: int = 4,
) -> tuple[bytes, list[np.ndarray]]:
    """A model of the operator alone, its anchors constant, and what it is to be fed."""
    generator = np.random.default_rng(4)
    anchors = generator.uniform(0.1, 0.9, (boxes, 4)).astype(np.float32)
    coded: np.ndarray = generator.normal(0, 2, (1, boxes, coding)).astype(np.float32)
    scores: np.ndarray = generator.uniform(0, 1, (1, boxes, columns)).astype(np.float32)
    told: dict[str, Any] = {**DETECTION, **options}
    count = abs(told["max_detections"] * told["max_classes_per_detection"])
    if dtype == "float32":
        inputs = [Given(coded.shape), Given(scores.shape), weights(anchors)]
    else:
        coded = generator.integers(0, 256, coded.shape).astype(np.uint8)
        # No score is there twice: which of equal ones is the better is for the library to say.
        scores = generator.permutation(boxes * columns).astype(np.uint8).reshape(scores.shape)
        inputs = [
            Given(coded.shape, dtype, None, (0.05,), 120),
            Given(scores.shape, dtype, None, (1 / 256,), 0),
            weights((anchors * 200).astype(np.uint8), scales=(0.005,), zero_point=2),
        ]
    outputs = [Given((1, count, 4)), Given((1, count)), Given((1, count)), Given((1,))]
    data = operator_model("TFLite_Detection_PostProcess", inputs, outputs, ("", told))
    return data, [coded, scores]


def integer_lstm(
    batch: int = 2,
    times: int = 6,
    inputs: int = 5,
    units: int = 7,
    *,
    clip: float = 0.0,
    time_major: bool = False,
    zero_point: int = -4,
    cell_scale: float = 2**-11,
    hidden_zero_point: int | None = None,
    seed: int = 3,
    left_out: Sequence[int] = (),
    intermediates: int = 5,
) -> bytes:
    """A model of an LSTM of whole integers alone."""
    generator = np.random.default_rng(seed)

    def matrix(*shape: int) -> Given:
        array = generator.integers(-127, 128, shape).astype(np.int8)
        return weights(array, scales=(float(generator.uniform(0.004, 0.02)),))

    gates = [matrix(units, inputs) for _ in range(4)]
    recurrent = [matrix(units, units) for _ in range(4)]
    biases = [
        weights(generator.integers(-3000, 3000, units).astype(np.int32),
                scales=(gate.scales[0] * 0.03,))
        for gate in gates
    ]  # fmt: skip
    hidden = Given((batch, units), "int8", None, (1 / 128,), zero_point, is_variable=True)
    cell = Given((batch, units), "int16", None, (cell_scale,), 0, is_variable=True)
    rows = (times, batch) if time_major else (batch, times)
    x = Given((*rows, inputs), "int8", None, (0.03,), 9)
    tensors: list[Given | None] = [
        x, *gates, *recurrent, None, None, None, *biases, None, None, hidden, cell,
        None, None, None, None,
    ]  # fmt: skip
    for position in left_out:
        tensors[position] = None
    y = Given((*rows, units), "int8", None, (1 / 128,), zero_point)
    told = zero_point if hidden_zero_point is None else hidden_zero_point
    between = [Given((0,), "int16", None, (2**-12,), 0)] * 4
    between = [*between, Given((0,), "int8", None, (1 / 128,), told)]
    options = {"fusedActivationFunction": 4, "cellClip": clip, "timeMajor": time_major}
    return operator_model(
        LSTM[0], tensors, [y], (LSTM[1], options), intermediates=between[:intermediates]
    )


def spectrum(
    shape: Sequence[int],
    rows: int,
    columns: int,
    parts: Sequence[str] = PARTS,
    *,
    moved_to: Sequence[int] = (),
) -> bytes:
    """A model of a transform and of operators that read it, in another shape if one is given."""
    made = (*shape[:-2], rows, columns // 2 + 1)
    tensors = [
        TinyTensor("x", shape, FLOAT),
        TinyTensor("lengths", (2,), INTEGER, np.array([rows, columns], np.int32).tobytes()),
        TinyTensor("spectrum", made, COMPLEX),
        *(TinyTensor(part, moved_to or made, FLOAT) for part in parts),
    ]
    operators = [TinyOperator(BuiltinOperator.RFFT2D, [0, 1], [2])]
    outputs = [3 + n for n in range(len(parts))]
    source = 2
    if moved_to:
        source = len(tensors)
        sizes = np.array(moved_to, np.int32)
        tensors += [
            TinyTensor("moved", moved_to, COMPLEX),
            TinyTensor("sizes", sizes.shape, INTEGER, sizes.tobytes()),
        ]
        operators.append(TinyOperator(BuiltinOperator.RESHAPE, [2, source + 1], [source]))
    operators += [
        TinyOperator(getattr(BuiltinOperator, part), [source], [output])
        for part, output in zip(parts, outputs, strict=True)
    ]
    return tiny_tflite(TinySubgraph(tensors, operators, [0], outputs or [source]))
