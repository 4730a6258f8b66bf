"""Recurrent layers, whose state is kept from one run to the next."""

import math

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.program import Array
from arenite.runtime.lowering.builder import Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import TANH, Translation
from arenite.runtime.operators.recurrent import Lstm, Svdf

_INPUT_WEIGHTS = (1, 2, 3, 4)  # input, forget, cell, output
_RECURRENT_WEIGHTS = (5, 6, 7, 8)
_BIASES = (12, 13, 14, 15)
_HIDDEN_STATE, _CELL_STATE = 18, 19
_UNKNOWN = (*range(9, 12), 16, 17, *range(20, 24))
"""Peepholes, a projection, and factors of layer norms."""


@translates("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(t: Translation) -> None:
    """Translate UNIDIRECTIONAL_SEQUENCE_LSTM of floating-point numbers."""
    if t.dtype is not DType.FLOAT32:
        raise NotLoweredError(f"it computes in {t.dtype.label}")
    if any(map(t.has, _UNKNOWN)):
        raise NotLoweredError("it has peepholes, a projection or a layer norm")
    if t.integer("FusedActivationFunction", TANH) != TANH:
        raise NotLoweredError("its activation is not the hyperbolic tangent")
    if not all(map(t.has, (*_INPUT_WEIGHTS, *_RECURRENT_WEIGHTS))):
        raise NotLoweredError("its input gate is coupled")
    source = t.value(0)
    weights = _stacked(t, _INPUT_WEIGHTS)
    recurrent = _stacked(t, _RECURRENT_WEIGHTS)
    num_units = recurrent.shape[2]
    given = [
        t.array(position) if t.has(position) else np.zeros(num_units, np.float32)
        for position in _BIASES
    ]
    operator = Lstm(
        batch_major=not t.integer("TimeMajor", 0),
        keeps_state=True,
        cell_clip=t.number("CellClip", 0.0) or math.inf,
    )
    inputs: list[Value | None] = [
        source,
        t.builder.constant(weights, t.source(1)),
        t.builder.constant(recurrent, t.source(5)),
        t.builder.constant(np.concatenate(given).reshape(1, -1), t.source(12)),
        t.value(_HIDDEN_STATE),
        t.value(_CELL_STATE),
    ]
    (result,) = t.builder.emit(
        operator, inputs, [(t.target, t.shape, as_written(len(t.shape)))], step=t.step.name
    )
    t.finish(result)


def _stacked(t: Translation, positions: tuple[int, ...]) -> Array:
    """Return the weights of the four gates, stacked for one direction."""
    arrays = [t.weights(position).array for position in positions]
    return np.concatenate([array for array in arrays if array is not None])[np.newaxis]


@translates("SVDF")
def svdf(t: Translation) -> None:
    """Translate SVDF, of numbers or of integers."""
    operator = Svdf(rank=t.integer("Rank", 1))
    state = t.value(4)
    t.finish(
        t.emit(operator, [t.value(0), t.weights(1), t.weights(2), t.optional_value(3), state])
    )
