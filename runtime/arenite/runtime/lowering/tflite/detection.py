"""TFLite_Detection_PostProcess, the custom operator that detectors end with."""

from arenite.planner.dtypes import DType
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.tflite.numbers import as_numbers
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import Translation
from arenite.runtime.operators.detection import DetectionPostProcess

_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")
_TOO_LARGE = 1e30
"""Of a number that is to be a 32-bit float."""


@translates("TFLite_Detection_PostProcess")
def detection_post_process(t: Translation) -> None:
    """Translate TFLite_Detection_PostProcess; integers are dequantised before it."""
    for name in _SCALES:
        if not 0 < abs(t.number(name, 0)) < _TOO_LARGE:
            raise NotLoweredError(f"its {name} is {t.number(name, 0)}")
    thresholds = t.number("nms_score_threshold", 0.0), t.number("nms_iou_threshold", 0.0)
    if not all(abs(each) < _TOO_LARGE for each in thresholds):
        raise NotLoweredError(f"its thresholds are {thresholds}")
    if len(t.step.inputs) != 3 or len(t.step.outputs) != 4:
        raise NotLoweredError("it does not read 3 tensors and make 4")
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
    for name, shape in zip(t.step.outputs, shapes, strict=True):
        t.builder.restate_shape(name, shape)
    made = t.builder.emit(
        operator,
        [_numbers(t, 0), _numbers(t, 1), _numbers(t, 2)],
        [(n, s, as_written(len(s))) for n, s in zip(t.step.outputs, shapes, strict=True)],
        dtype=DType.FLOAT32,
        step=t.step.name,
    )
    for name, value in zip(t.step.outputs, made, strict=True):
        t.builder.bind(name, value)


def _count(t: Translation, name: str, default: int) -> int:
    count = t.integer(name, default)
    if not 0 < count < 2**31:
        raise NotLoweredError(f"its {name} is {count}")
    return count


def _numbers(t: Translation, position: int) -> Value:
    value = t.value(position)
    return as_numbers(t, value) if value.array is None else t.weights(position)
