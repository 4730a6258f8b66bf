"""Fourier transforms, and the selection of boxes behind detectors."""

import math
from dataclasses import replace

from arenite.planner import DType
from arenite.runtime.lowering.errors import NotLoweredError, unsupported
from arenite.runtime.lowering.layout import StoredValue, as_written
from arenite.runtime.lowering.moves import picked
from arenite.runtime.lowering.tflite.translation import TfliteTranslation, as_numbers, translates
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.reduction import Reduce, ReduceFunction
from arenite.runtime.operators.special import DetectionPostProcess, NonMaxSuppression, Rfft2D

_PARTS = {"REAL": 0, "IMAG": 1}
_MOVERS = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})
_READERS = _MOVERS | {"CAST", "COMPLEX_ABS", *_PARTS}
_MAKERS = _MOVERS | {"RFFT2D"}


def check_complex(t: TfliteTranslation) -> None:
    """Refuse complex numbers where no translator takes them as pairs.

    Raises:
        NotLoweredError: The operator reads or makes some.
    """
    read, made = (filter(t.is_complex, names) for names in (t.step.reads, t.step.writes))
    if t.kind not in _READERS and any(read):
        raise NotLoweredError("complex inputs are unsupported for this operator")
    for name in made:
        if t.kind not in _MAKERS:
            raise NotLoweredError("complex outputs are unsupported for this operator")
        if name in t.builder.model.output_tensors:
            raise NotLoweredError("complex outputs of the model are unsupported")


@translates("RFFT2D")
def rfft2d(t: TfliteTranslation) -> None:
    """Translate RFFT2D with constant lengths."""
    rows, columns = t.integers(1)
    value = t.value()
    if value.dtype is not DType.FLOAT32 or math.prod(value.shape) == 0 or len(value.shape) < 2:
        raise NotLoweredError(
            f"input of {value.dtype.label} and shape {value.shape} is unsupported, "
            "supported: float32 of rank 2 or more"
        )
    if columns < 2 or rows < 1 or (rows & (rows - 1)) or (columns & (columns - 1)):
        raise unsupported("fft_length", [rows, columns], "powers of 2")
    shape = (*value.shape[:-2], rows, columns // 2 + 1, 2)
    operator = Rfft2D(rows=rows, columns=columns)
    pairs = t.builder.emit_one(operator, [value], f"{t.target}/pairs", shape, step=t.step.name)
    t.builder.bind(t.target, pairs)


@translates("COMPLEX_ABS")
def magnitude(t: TfliteTranslation) -> None:
    pairs = _pairs(t)
    operator = Reduce(function=ReduceFunction.L2, axes=(len(pairs.shape) - 1,))
    t.finish(t.emit(operator, [pairs], shape=pairs.shape[:-1]))


@translates(*_PARTS)
def part(t: TfliteTranslation) -> None:
    """Translate REAL, IMAG, or a CAST, which takes the real part."""
    pairs = _pairs(t)
    shape = (*pairs.shape[:-1], 1)
    first = (*(0,) * (len(shape) - 1), _PARTS.get(t.kind, 0))
    move = picked(pairs, shape, first, (1,) * len(shape))
    result = t.emit(Copy(moves=(move,)), [pairs], shape=shape)
    t.finish(replace(result, shape=shape[:-1], order=as_written(len(shape) - 1)))


def _pairs(t: TfliteTranslation) -> StoredValue:
    """Return complex numbers as pairs.

    Raises:
        NotLoweredError: They are not those of a transform.
    """
    pairs = t.value()
    if pairs.dtype is not DType.FLOAT32 or t.dtype is not DType.FLOAT32:
        raise NotLoweredError("complex inputs are only supported from RFFT2D")
    return pairs


_MOST_BOXES = 1 << 24
_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")
_TOO_LARGE = 1e30
"""Bound of numbers that become 32-bit floats."""


@translates("TFLite_Detection_PostProcess")
def detection_post_process(t: TfliteTranslation) -> None:
    """Translate TFLite_Detection_PostProcess; integers are dequantised before it."""
    for name in _SCALES:
        if not 0 < abs(t.number(name, 0)) < _TOO_LARGE:
            raise unsupported(name, t.number(name, 0), "finite numbers other than 0")
    thresholds = t.number("nms_score_threshold", 0.0), t.number("nms_iou_threshold", 0.0)
    if not all(abs(each) < _TOO_LARGE for each in thresholds):
        raise unsupported("nms_score_threshold, nms_iou_threshold", thresholds, "finite numbers")
    if len(t.step.inputs) != 3 or len(t.step.outputs) != 4:
        raise NotLoweredError(
            f"{len(t.step.inputs)} inputs and {len(t.step.outputs)} outputs are unsupported, "
            "supported: 3 and 4"
        )
    operator = DetectionPostProcess(
        num_classes=_count(t, "num_classes", 0),
        max_detections=_count(t, "max_detections", 0),
        classes_per_detection=_count(t, "max_classes_per_detection", 0),
        detections_per_class=_count(t, "detections_per_class", 100),
        by_class=bool(t.integer("use_regular_nms", 0)),
        score_threshold=thresholds[0],
        overlap_threshold=thresholds[1],
        scales=tuple(t.number(name, 0.0) for name in _SCALES),
    )
    count = operator.max_detections * operator.classes_per_detection
    shapes = ((1, count, 4), (1, count), (1, count), (1,))
    outputs = list(zip(t.step.outputs, shapes, strict=True))
    t.emit_all(operator, [_numbers(t, position) for position in range(3)], outputs, DType.FLOAT32)


@translates("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(t: TfliteTranslation) -> None:
    """Translate NON_MAX_SUPPRESSION with a constant number and constant thresholds."""
    has_scores = t.kind.endswith("5")
    numbers = [float(t.array(position).item()) for position in range(2, 6 if has_scores else 5)]
    most = int(numbers[0])
    if not 0 < most < _MOST_BOXES:
        raise unsupported("max_output_size", most, f"1 to {_MOST_BOXES - 1}")
    if not all(abs(each) < _TOO_LARGE for each in numbers):
        raise unsupported("iou_threshold, score_threshold, sigma", numbers[1:], "finite numbers")
    operator = NonMaxSuppression(
        max_outputs=most,
        overlap_threshold=numbers[1],
        score_threshold=numbers[2],
        sigma=numbers[3] if has_scores else 0.0,
    )
    # The count is the last output in the file; ours are indices, count and scores.
    selected, *scores, count = t.step.outputs
    outputs = [(selected, (most,)), (count, ()), *((name, (most,)) for name in scores)]
    types = [DType.INT32, DType.INT32, DType.FLOAT32][: len(outputs)]
    t.emit_all(operator, [t.value(0), t.value(1)], outputs, types)


def _count(t: TfliteTranslation, name: str, default: int) -> int:
    count = t.integer(name, default)
    if not 0 < count < 2**31:
        raise unsupported(name, count, "1 to 2147483647")
    return count


def _numbers(t: TfliteTranslation, position: int) -> StoredValue:
    value = t.value(position)
    return as_numbers(t, value) if value.array is None else t.weights(position)
