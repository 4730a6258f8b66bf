"""Reductions, softmax and normalisations."""

import math

import numpy as np

from arenite.planner import DType
from arenite.planner.sizes import Expression, depends, same, smallest
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import (
    Order,
    Shape,
    StoredValue,
    as_written,
    channels_last,
    without_axes,
)
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.lowering.translation import InputLayout, fold_channels
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import BinaryFunction, MultiplyAdd, Unary, UnaryFunction
from arenite.runtime.operators.movement import Gather
from arenite.runtime.operators.normalisation import (
    Hardmax,
    InstanceNorm,
    L2Norm,
    LayerNorm,
    LocalResponseNorm,
    Softmax,
)
from arenite.runtime.operators.reduction import (
    ArgReduce,
    CumulativeSum,
    Pool2D,
    PoolKind,
    Reduce,
    ReduceFunction,
    TopK,
)
from arenite.runtime.operators.special import NonMaxSuppression, NonZero

R = ReduceFunction
REDUCTIONS = {
    "ReduceL1": R.L1, "ReduceL2": R.L2, "ReduceLogSum": R.LOG_SUM,
    "ReduceLogSumExp": R.LOG_SUM_EXP, "ReduceMax": R.MAXIMUM, "ReduceMean": R.MEAN,
    "ReduceMin": R.MINIMUM, "ReduceProd": R.PRODUCT, "ReduceSum": R.SUM,
    "ReduceSumSquare": R.SUM_SQUARE,
}  # fmt: skip


@translates(*REDUCTIONS)
def reduction(t: OnnxTranslation) -> None:
    """Translate a reduction along constant axes."""
    value = t.value()
    require_type(value.dtype, DType.FLOAT32, DType.INT32, DType.INT64)
    rank = len(value.shape)
    axes = t.integers("axes")
    given = t.optional_array(1)
    if given is not None:
        axes = tuple(int(axis) for axis in given.reshape(-1))
    if not axes and t.attribute("noop_with_empty_axes", 0):
        t.finish(value)
        return
    positive = tuple(sorted({axis % rank for axis in axes})) or tuple(range(rank))
    if not positive:
        raise NotLoweredError("a scalar input is unsupported")
    function = REDUCTIONS[t.kind]
    if function is R.MEAN and _is_image_mean(value, positive):
        shape = (*value.shape[:2], 1, 1)
        pool = Pool2D.whole(PoolKind.AVERAGE, value.shape[2:])
        t.finish(t.emit(pool, [value], shape=shape, order=value.order))
        return
    stored = tuple(sorted(value.order.index(axis) for axis in positive))
    shape, order = _without(value, positive, keep=bool(t.attribute("keepdims", 1)))
    t.finish(t.emit(Reduce(function=function, axes=stored), [value], shape=shape, order=order))


@translates("ArgMax", "ArgMin")
def arg_reduction(t: OnnxTranslation) -> None:
    value = t.value()
    require_type(value.dtype, DType.FLOAT32, DType.INT32, DType.INT64)
    axis = t.axis(0, len(value.shape))
    operator = ArgReduce(
        axis=value.order.index(axis),
        minimum=t.kind == "ArgMin",
        last=bool(t.attribute("select_last_index", 0)),
    )
    shape, order = _without(value, (axis,), keep=bool(t.attribute("keepdims", 1)))
    t.finish(t.emit(operator, [value], shape=shape, order=order))


@translates("TopK")
def top_k(t: OnnxTranslation) -> None:
    """Translate TopK of the largest elements."""
    value = t.value()
    require_type(value.dtype, DType.FLOAT32, DType.INT32, DType.INT64)
    if t.attribute("largest", 1) != 1:
        raise unsupported("largest", t.attribute("largest", 1), 1)
    value = _last(t, value, t.axis(-1, len(value.shape)))
    # It always makes both: without its indices one would not know their type.
    outputs = [
        (name or f"{t.target}/{kind}", t.shape, value.order)
        for name, kind in zip((*t.step.outputs, "")[:2], ("values", "indices"), strict=True)
    ]
    made = t.builder.emit(
        TopK(), [value], outputs, dtype=[value.dtype, DType.INT64], step=t.step.name
    )
    for name, each in zip(t.step.outputs, made, strict=False):
        if name:
            t.builder.bind(name, each)


@translates("CumSum")
def cumulative_sum(t: OnnxTranslation) -> None:
    """Translate CumSum along a constant axis."""
    value = t.value()
    require_type(value.dtype, DType.FLOAT32)
    axis = int(np.asarray(t.array(1)).reshape(())) % len(value.shape)
    operator = CumulativeSum(
        axis=value.order.index(axis),
        exclusive=bool(t.attribute("exclusive", 0)),
        reverse=bool(t.attribute("reverse", 0)),
    )
    t.finish(t.emit(operator, [value], order=value.order))


def _is_image_mean(value: StoredValue, axes: tuple[int, ...]) -> bool:
    return (
        value.dtype is DType.FLOAT32
        and len(value.shape) == 4
        and axes == (2, 3)
        and value.order == (0, 2, 3, 1)
    )


def _without(value: StoredValue, axes: tuple[int, ...], *, keep: bool) -> tuple[Shape, Order]:
    if keep:
        shape = tuple(1 if axis in axes else n for axis, n in enumerate(value.shape))
        return shape, value.order
    shape = tuple(n for axis, n in enumerate(value.shape) if axis not in axes)
    return shape, without_axes(value.order, axes)


@translates("BatchNormalization", layout=InputLayout.CHANNELS_LAST)
def batch_normalisation(t: OnnxTranslation) -> None:
    """Translate a batch norm: a scale and a shift of channels."""
    require_type(t.dtype, DType.FLOAT32)
    if t.attribute("training_mode", 0) or any(t.step.outputs[1:]):
        raise NotLoweredError("training mode is unsupported")
    if any(t.builder.array(t.source(position)) is None for position in range(1, 5)):
        _batch_normalisation_of_the_run(t)
        return
    gamma, beta, mean, variance = (t.array(p).astype(np.float64) for p in range(1, 5))
    factor = gamma / np.sqrt(variance + t.attribute("epsilon", 1e-5))
    scale = factor.astype(np.float32)
    shift = (beta - mean * factor).astype(np.float32)
    value = t.value()
    has_channels_last = value.order == channels_last(len(value.shape)) and len(value.shape) > 1
    if has_channels_last and fold_channels(t.builder, t.source(), t.target, scale, shift):
        return
    value = t.builder.in_order(value, channels_last(len(value.shape)), t.target)
    factors, terms = t.builder.constant(scale, t.source(1)), t.builder.constant(shift, t.source(2))
    t.finish(t.emit(MultiplyAdd(), [value, factors, terms], order=value.order))


def _batch_normalisation_of_the_run(t: OnnxTranslation) -> None:
    """Translate a batch norm by numbers that are made in the run: so are scale and shift."""
    gamma, beta, mean, variance = (t.builder.as_written(t.value(p), t.target) for p in range(1, 5))

    def binary(
        function: BinaryFunction, one: StoredValue, other: StoredValue, name: str
    ) -> StoredValue:
        return combine(t, function, one, other, f"{t.target}/{name}")

    epsilon = np.float32(t.attribute("epsilon", 1e-5)).reshape(1)
    added = binary(
        BinaryFunction.ADD, variance, t.builder.constant(epsilon, f"{t.target}/epsilon"), "added"
    )
    root = t.emit(
        Unary(function=UnaryFunction.SQUARE_ROOT), [added], shape=added.shape, order=added.order,
        name=f"{t.target}/deviation",
    )  # fmt: skip
    factors = binary(BinaryFunction.DIVIDE, gamma, root, "factors")
    moved = binary(BinaryFunction.MULTIPLY, mean, factors, "moved")
    terms = binary(BinaryFunction.SUBTRACT, beta, moved, "terms")
    value = t.value()
    value = t.builder.in_order(value, channels_last(len(value.shape)), t.target)
    t.finish(t.emit(MultiplyAdd(), [value, factors, terms], order=value.order))


@translates("InstanceNormalization", layout=InputLayout.CHANNELS_LAST)
def instance_normalisation(t: OnnxTranslation) -> None:
    require_type(t.dtype, DType.FLOAT32)
    rank = len(t.value().shape)
    value = t.builder.in_order(t.value(), channels_last(rank), t.target)
    operator = InstanceNorm(epsilon=t.attribute("epsilon", 1e-5))
    scale, bias = (t.builder.constant(t.array(p), t.source(p)) for p in (1, 2))
    t.finish(t.emit(operator, [value, scale, bias], order=channels_last(rank)))


@translates("LayerNormalization")
def layer_normalisation(t: OnnxTranslation) -> None:
    """Translate LayerNormalization without its optional outputs."""
    require_type(t.dtype, DType.FLOAT32)
    if any(t.step.outputs[1:]):
        raise NotLoweredError("outputs Mean and InvStdDev are unsupported")
    emit_layer_norm(t, t.value(), (1, 2), t.axis(-1, len(t.shape)), 1e-5)


@translates("RMSNormalization")
def rms_normalisation(t: OnnxTranslation) -> None:
    """Translate RMSNormalization."""
    require_type(t.dtype, DType.FLOAT32)
    emit_layer_norm(t, t.value(), (1,), t.axis(-1, len(t.shape)), 1e-5, centres=False)


def emit_layer_norm(
    t: OnnxTranslation,
    value: StoredValue,
    positions: tuple[int, ...],
    axis: int,
    epsilon: float,
    *,
    centres: bool = True,
) -> None:
    """Add the layer norm of a value that makes the first output.

    Args:
        t: The operator.
        value: The value to normalise.
        positions: Of the scale, and of the bias if there may be one, among the inputs.
        axis: The first of the axes that are normalised together.
        epsilon: Default of the attribute.
        centres: Whether the mean is subtracted.
    """
    value = t.builder.as_written(value, t.target)
    operands: list[StoredValue | None] = [value]
    inner = value.shape[axis:]
    if any(map(depends, inner)):
        stated = " x ".join(str(Expression.of(each)) for each in inner)
        raise NotLoweredError(f"a norm over axes of {stated} elements is unsupported")
    for position in positions:
        array = t.builder.array(t.source(position)) if t.has(position) else None
        if array is None:
            operands.append(_of_the_run(t, position, inner) if t.has(position) else None)
            continue
        try:
            vector = np.broadcast_to(array, inner)
        except ValueError as error:
            raise NotLoweredError(
                f"input {position} of shape {array.shape} does not fit axes of {inner}"
            ) from error
        operands.append(t.builder.constant(vector, t.source(position)))
    operator = LayerNorm(
        epsilon=t.attribute("epsilon", epsilon), num_axes=len(value.shape) - axis, centres=centres
    )
    t.finish(t.emit(operator, operands, shape=value.shape))


def _of_the_run(t: OnnxTranslation, position: int, inner: Shape) -> StoredValue:
    """Return the scale or bias of a norm that a run computes, of all its elements."""
    value = t.builder.as_written(t.value(position), t.target)
    if not t.builder.agree(value.shape, inner):
        raise NotLoweredError(
            f"input {position} of shape {list(value.shape)} does not fit axes of {list(inner)}"
        )
    return value


@translates("LRN", layout=InputLayout.CHANNELS_LAST)
def local_response_normalisation(t: OnnxTranslation) -> None:
    require_type(t.dtype, DType.FLOAT32)
    rank = len(t.value().shape)
    value = t.builder.in_order(t.value(), channels_last(rank), t.target)
    operator = LocalResponseNorm(
        size=t.attribute("size", 1),
        alpha=t.attribute("alpha", 1e-4),
        beta=t.attribute("beta", 0.75),
        bias=t.attribute("bias", 1.0),
    )
    t.finish(t.emit(operator, [value], order=channels_last(rank)))


@translates("LpNormalization")
def lp_normalisation(t: OnnxTranslation) -> None:
    """Translate LpNormalization of order 2."""
    require_type(t.dtype, DType.FLOAT32)
    if t.attribute("p", 2) != 2:
        raise unsupported("p", t.attribute("p", 2), 2)
    value = _last(t, t.value(), t.axis(-1, len(t.value().shape)))
    t.finish(t.emit(L2Norm(epsilon=0.0), [value], order=value.order))


@translates("Softmax", "LogSoftmax")
def softmax(t: OnnxTranslation) -> None:
    _along_axis(t, Softmax(logarithm=t.kind == "LogSoftmax"))


@translates("Hardmax")
def hardmax(t: OnnxTranslation) -> None:
    _along_axis(t, Hardmax())


def _along_axis(t: OnnxTranslation, operator: RuntimeOperator) -> None:
    """Emit an operator that works along the last axis for one with the attribute `axis`."""
    require_type(t.dtype, DType.FLOAT32)
    value = t.value()
    rank = len(value.shape)
    axis = t.axis(1 if t.opset < 13 else -1, rank)
    if t.opset >= 13 or same(math.prod(value.shape[axis:]), value.shape[axis]):
        value = _last(t, value, axis)
        t.finish(t.emit(operator, [value], shape=value.shape, order=value.order))
        return
    # Before operator set 13 all axes from this one on are treated as one.
    value = t.builder.as_written(value, t.target)
    matrix = (math.prod(value.shape[:axis]), math.prod(value.shape[axis:]))
    flat = t.builder.reshaped(value, matrix, t.target)
    t.finish(t.emit(operator, [flat], shape=matrix, order=(0, 1)))


def _last(t: OnnxTranslation, value: StoredValue, axis: int) -> StoredValue:
    """Return the value with an axis stored last, the others in their order."""
    if same(value.shape[axis], 1):
        others = [each for each in value.order if each != axis]
        return t.builder.in_order(value, (*others, axis), t.target)
    long = [each for each in value.order if not same(value.shape[each], 1)]
    if long[-1] == axis:
        others = [each for each in value.order if each != axis]
        return t.builder.in_order(value, (*others, axis), t.target)
    rank = len(value.shape)
    order = (*(each for each in as_written(rank) if each != axis), axis)
    return t.builder.in_order(value, order, t.target)


@translates("NonMaxSuppression")
def non_max_suppression(t: OnnxTranslation) -> None:
    """Translate NonMaxSuppression, which counts the boxes that it selects."""
    _require_counted(t)
    counts, overlaps, scores = (t.optional_array(position) for position in (2, 3, 4))
    boxes, predictions = (t.builder.as_written(t.value(position), t.target) for position in (0, 1))
    centre = t.attribute("center_point_box", 0)
    if centre not in (0, 1):
        raise unsupported("center_point_box", centre, 0, 1)
    if len(predictions.shape) != 3 or len(boxes.shape) != 3:
        raise NotLoweredError(
            f"boxes of shape {boxes.shape} and scores of shape {predictions.shape} are "
            "unsupported, supported: rank 3"
        )
    stated = 0 if counts is None else counts.item()
    most = min(max(int(stated), 0), int(predictions.shape[2]))
    boxes_of_class = predictions.shape[2]
    if depends(stated) and not same(
        smallest(stated, boxes_of_class), smallest(most, boxes_of_class)
    ):
        raise unsupported("max_output_boxes_per_class", stated, "one number for all sizes")
    operator = NonMaxSuppression(
        max_outputs=most,
        overlap_threshold=0.0 if overlaps is None else float(overlaps.item()),
        score_threshold=-math.inf if scores is None else float(scores.item()),
        by_centre=bool(centre),
    )
    made = t.emit(operator, [boxes, predictions], dtype=DType.INT64)
    t.builder.bind(t.target, made)


@translates("NonZero")
def non_zero(t: OnnxTranslation) -> None:
    """Translate NonZero: the places are stored one after the other."""
    _require_counted(t)
    t.builder.bind(t.target, _places(t, t.value(), t.target, t.shape[1]))


def _places(t: OnnxTranslation, value: StoredValue, name: str, count: int) -> StoredValue:
    """Return the places of elements that are not 0, one in each column."""
    require_type(value.dtype, DType.BOOL, DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT32,
                 DType.INT64)  # fmt: skip
    if not value.shape:
        raise NotLoweredError("a scalar input is unsupported")
    value = t.builder.as_written(value, t.target)
    return t.emit(
        NonZero(), [value], shape=(len(value.shape), count), order=(1, 0), dtype=DType.INT64,
        name=name,
    )  # fmt: skip


@translates("Compress")
def compress(t: OnnxTranslation) -> None:
    """Translate Compress: the slices at the places where the condition holds."""
    _require_counted(t)
    value = t.builder.as_written(t.value(), t.target)
    if "axis" in t.attributes:
        axis = t.axis(0, len(value.shape))
    else:
        axis = 0
        value = t.builder.reshaped(value, (math.prod(value.shape),), t.target)
    if t.builder.model.tensors[t.source(1)].shape[0] > value.shape[axis]:
        raise NotLoweredError("a condition longer than the axis is unsupported")
    count = t.shape[axis]
    places = _places(t, t.value(1), f"{t.target}/places", count)
    where = t.builder.reshaped(places, (count,), t.target)
    t.finish(t.emit(Gather(axis=axis), [value, where]))


def _require_counted(t: OnnxTranslation) -> None:
    """Refuse a result whose length each run counts, where the importer has only its bound.

    Raises:
        NotLoweredError: The result is such a one.
    """
    if math.prod(t.shape) and not any(map(depends, t.shape)):
        raise NotLoweredError("its output shape depends on the data")
