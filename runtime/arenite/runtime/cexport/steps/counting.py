"""Operators that count what they find in each run, and the largest elements."""

import math

from arenite.planner import DType
from arenite.planner.operators import Operands
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.steps.writer import StepWriter, writes
from arenite.runtime.operators.base import FLOAT_BYTES
from arenite.runtime.operators.reduction import TopK
from arenite.runtime.operators.special import NonMaxSuppression, NonZero

_MOST_AXES = 6


class SuppressionByHeap(NonMaxSuppression):
    """A NonMaxSuppression whose kernel holds the indices of a class's boxes alone."""

    __slots__ = ()

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of these indices."""
        boxes = operands.source
        return FLOAT_BYTES * boxes.shape[-2] if boxes and len(boxes.shape) > 1 else 0


@writes(SuppressionByHeap)
def non_max_suppression(t: StepWriter) -> None:
    """Write a selection of the best boxes of each class of each image."""
    operator = t.operator
    assert isinstance(operator, NonMaxSuppression)
    if t.output().dtype is not DType.INT64:
        raise NotWrittenError("NON_MAX_SUPPRESSION of TFLite is unsupported")
    boxes, scores = t.input(0), t.input(1)
    layer = t.layer(
        "suppression_layer",
        images=scores.shape[0],
        classes=scores.shape[1],
        boxes=scores.shape[2],
        most=operator.max_outputs,
        by_centre=int(operator.by_centre),
        overlap=operator.overlap_threshold,
        score=operator.score_threshold,
    )
    _, working = t.working_memory()
    places = (t.address(boxes), t.address(scores), working, t.address(t.output()))
    t.call("suppress_f32", layer, *places, t.count())


@writes(NonZero)
def non_zero(t: StepWriter) -> None:
    """Write a search for the elements that are not 0."""
    source = t.input()
    kinds = {
        "bool": "8", "int8": "8", "uint8": "8", "int32": "s32", "int64": "s64", "float32": "f32"
    }  # fmt: skip
    kind = source.dtype.label
    if kind not in kinds or source.quantisation is not None:
        raise NotWrittenError(f"an input of {kind} is unsupported, supported: {', '.join(kinds)}")
    rank = len(source.shape)
    if rank > _MOST_AXES:
        raise NotWrittenError(f"rank {rank} is unsupported, supported: up to {_MOST_AXES}")
    lengths = (*source.shape, *(1,) * (_MOST_AXES - rank))
    layer = t.layer(
        "places_layer",
        elements=source.num_elements,
        rank=rank,
        **{f"n{axis}": length for axis, length in enumerate(lengths)},
    )
    t.call(f"non_zero_{kinds[kind]}", layer, t.address(source), t.address(t.output()), t.count())


@writes(TopK)
def top_k(t: StepWriter) -> None:
    """Write a search for the largest elements of each row."""
    source, values, indices = t.input(), t.output(0), t.output(1)
    kernel = {
        ("float32", "int32"): "f32_32", ("float32", "int64"): "f32_64",
        ("int32", "int32"): "s32_32", ("int32", "int64"): "s32_64", ("int64", "int64"): "s64_64",
    }.get((source.dtype.label, indices.dtype.label))  # fmt: skip
    if kernel is None:
        raise NotWrittenError(
            f"{source.dtype.label} with indices of {indices.dtype.label} is unsupported"
        )
    rows = math.prod(source.shape[:-1])
    places = map(t.address, (source, values, indices))
    t.call(f"top_k_{kernel}", rows, source.shape[-1], values.shape[-1], *places)
