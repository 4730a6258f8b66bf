"""Fold operators into the step before them."""

from dataclasses import replace

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.program import Array
from arenite.runtime.lowering.builder import Builder, Draft
from arenite.runtime.operators.base import Clamped
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D, TransposedConv2D
from arenite.runtime.operators.elementwise import MultiplyAdd
from arenite.runtime.operators.linear import FullyConnected

_CHANNEL_AXES = {
    Conv2D: 0,
    DepthwiseConv2D: 3,
    TransposedConv2D: 0,
    FullyConnected: 0,
    MultiplyAdd: 0,
}
"""The axis of the output channels in the weights of each operator that has them."""


def fold_clamp(builder: Builder, source: str, target: str, low: float, high: float) -> bool:
    """Fold a clamp into the step that makes `source`, so that it makes `target`, if it can."""
    draft = builder.producer(source)
    if draft is None or not isinstance(draft.operator, Clamped):
        return False
    if draft.outputs[0].dtype is not DType.FLOAT32:
        return False
    clamp = draft.operator
    # clamp(clamp(x, a, b), c, d) is one clamp unless the intervals are disjoint.
    if low > clamp.max or high < clamp.min:
        return False
    draft.operator = replace(clamp, min=max(low, clamp.min), max=min(high, clamp.max))
    builder.bind(target, builder.value(source))
    return True


def fold_channels(
    builder: Builder, source: str, target: str, scale: Array | None, shift: Array | None
) -> bool:
    """Fold a scale and shift of the last stored axis into the step that makes `source`.

    Args:
        builder: The program.
        source: The tensor to scale and shift.
        target: The tensor that results.
        scale: One factor per channel, or one for all.
        shift: One term per channel, or one for all, added after scaling.
    """
    draft = builder.producer(source)
    if draft is None or type(draft.operator) not in _CHANNEL_AXES:
        return False
    if not _is_open(draft):
        return False
    weights, bias = draft.inputs[1], draft.inputs[2]
    if weights is None or weights.array is None or (bias is not None and bias.array is None):
        return False
    value = builder.value(source)
    if value.order[-1:] != draft.outputs[0].order[-1:] and value.stored[-1] == 1:
        return False
    axis = _CHANNEL_AXES[type(draft.operator)]
    num_channels = weights.array.shape[axis]
    if value.stored[-1] != num_channels:
        return False
    if any(v is not None and v.size not in (1, num_channels) for v in (scale, shift)):
        return False
    new_bias = np.zeros(num_channels, np.float32) if bias is None else bias.array
    assert new_bias is not None
    if scale is not None:
        shape = [1] * weights.array.ndim
        shape[axis] = -1
        factors = np.broadcast_to(scale.reshape(-1), (num_channels,)).astype(np.float32)
        scaled = (weights.array * factors.reshape(shape)).astype(np.float32)
        draft.inputs[1] = builder.constant(scaled, weights.tensor)
        new_bias = new_bias * factors
    if shift is not None:
        new_bias = new_bias + shift.reshape(-1)
    draft.inputs[2] = builder.constant(new_bias.astype(np.float32), weights.tensor)
    builder.bind(target, value)
    return True


def _is_open(draft: Draft) -> bool:
    operator = draft.operator
    return (
        draft.outputs[0].dtype is DType.FLOAT32
        and isinstance(operator, Clamped)
        and operator.min == -np.inf
        and operator.max == np.inf
    )
