"""Detections, spectra, and operators that another runtime runs."""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from arenite.planner.operators import Operands
from arenite.runtime.operators.base import FLOAT_BYTES, UNSTORED, RuntimeOperator

_BOX_BYTES = 4 * FLOAT_BYTES
_DETECTION_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionPostProcess(RuntimeOperator):
    """Decodes boxes and suppresses those that overlap a better one.

    Reads coded boxes: 1, N, 4 or more (centre, height and width, each over its scale); scores: 1,
    N, classes, or one more in front for the background; and anchors: N, 4. Makes boxes: 1, M, 4
    (top, left, bottom, right), classes: 1, M, scores: 1, M, and how many detections there are: 1.
    M is `max_detections` times `classes_per_detection`; places without a detection are zeros.

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

    def kernel_scratch(self, operands: Operands) -> int:
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


_CANDIDATE_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NonMaxSuppression(RuntimeOperator):
    """Selects the best boxes that do not overlap a better one.

    Reads boxes: images, N, 4 and scores: images, classes, N. Makes rows of image, class and box,
    int64: up to `max_outputs` for each class of each image, and counts them. A box is two opposite
    corners or, `by_centre`, its centre with width and height.

    Of boxes N, 4 and scores N it makes the boxes: `max_outputs`, int32, how many they are, and
    optionally their scores; places without a box are 0. With a `sigma` a box that overlaps one
    before it keeps a part of its score.
    """

    number: ClassVar[int] = 41
    counts: ClassVar[bool] = True
    repeatable: ClassVar[bool] = False  # its rows are counted once

    max_outputs: int
    overlap_threshold: float = 0.0
    score_threshold: float = -math.inf
    by_centre: bool = False
    sigma: float = 0.0

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of the boxes of a class that are in question."""
        boxes = operands.source
        return _CANDIDATE_BYTES * boxes.shape[-2] if boxes and len(boxes.shape) > 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NonZero(RuntimeOperator):
    """The places of the elements that are not 0, in order.

    Makes rows of int64 with an index for each axis, at most as many as x has elements, and counts
    them.
    """

    number: ClassVar[int] = 43
    counts: ClassVar[bool] = True
    repeatable: ClassVar[bool] = False  # its rows are counted once


_COMPLEX_BYTES = 16
"""Bytes of a complex number, two 64-bit floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfft2D(RuntimeOperator):
    """Fourier's transform of the last two axes of real numbers.

    Reads x: ..., rows and columns, cut or filled up with zeros to those of the transform, which
    are powers of 2. Makes y: ..., rows, columns / 2 + 1, 2: the real and the imaginary part.
    """

    number: ClassVar[int] = 30

    rows: int
    columns: int

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of a row or column, and of all of them if there are several rows."""
        line = max(self.rows, self.columns // 2)
        grid = self.rows * (self.columns // 2 + 1) if self.rows > 1 else 0
        return _COMPLEX_BYTES * (line + grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class External(RuntimeOperator):
    """Runs in another runtime, as a model of one operator.

    Attributes:
        runtime: Name of the runtime: `onnxruntime`.
        model: Bytes of the model file; in the program file, the constant that holds them.
        input_names: Names in that file of the step's inputs, in order.
        output_names: Names in that file of the step's outputs, in order.
        op_type: Name of the operator in the original model, for display.
        repeats: Whether the same inputs give the same outputs every time, as the importer knows;
            one that draws random numbers does not. The program file does not say.
    """

    number: ClassVar[int] = 22

    runtime: str
    model: Annotated[bytes, "int"]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    op_type: str = ""
    repeats: bool = field(default=False, metadata={UNSTORED: True})

    @property
    def repeatable(self) -> bool:  # type: ignore[override]  # of each its own
        return self.repeats

    @property
    def label(self) -> str:
        return self.op_type or "External"
