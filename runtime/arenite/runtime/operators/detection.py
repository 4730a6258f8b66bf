"""What detectors end with."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner.operators.operator import Operands
from arenite.runtime.operators.base import FLOAT_BYTES, RuntimeOperator

_BOX_BYTES = 4 * FLOAT_BYTES
_DETECTION_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionPostProcess(RuntimeOperator):
    """Decodes boxes and suppresses those that overlap a better one.

    Reads coded boxes: 1, N, 4 or more (centre, height and width, each over its scale); scores: 1,
    N, classes, or one more in front for the background; and anchors: N, 4. Makes boxes: 1, M, 4
    (top, left, bottom, right), classes: 1, M, scores: 1, M, and how many detections there are: 1.
    M is `max_detections` times `classes_per_detection`; what is not detected is zeros.

    Boxes compete with their best class and each shows its best few; `by_class` those of each class
    compete alone, up to `detections_per_class`, and the best of all are shown.
    """

    number: ClassVar[int] = 29

    num_classes: int
    max_detections: int
    classes_per_detection: int = 1
    detections_per_class: int = 100
    by_class: bool = False
    score_threshold: float = 0.0
    overlap_threshold: float = 0.5
    scales: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of the boxes, their scores, order and marks, and of two lists."""
        scores = operands.input(1)
        if scores is None or len(scores.shape) != 3:
            return 0
        _, boxes, columns = scores.shape
        return (
            boxes * (_BOX_BYTES + 2 * FLOAT_BYTES)
            + 2 * self.max_detections * _DETECTION_BYTES
            + max(boxes, columns)
        )
