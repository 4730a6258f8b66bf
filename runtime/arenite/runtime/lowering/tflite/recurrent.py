"""Recurrent layers and variables, whose states are kept between runs."""

import math
from dataclasses import replace

import numpy as np

from arenite.planner import DType, Quantisation, TensorKind
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue
from arenite.runtime.lowering.moves import copy_of
from arenite.runtime.lowering.tflite.translation import TANH, TfliteTranslation, translates
from arenite.runtime.operators.recurrent import Lstm, Svdf

_INPUT_WEIGHTS = (1, 2, 3, 4)  # input, forget, cell, output
_RECURRENT_WEIGHTS = (5, 6, 7, 8)
_BIASES = (12, 13, 14, 15)
_HIDDEN_STATE, _CELL_STATE = 18, 19
_UNKNOWN = (*range(9, 12), 16, 17, *range(20, 24))
"""Peepholes, a projection, and factors of layer norms."""


@translates("UNIDIRECTIONAL_SEQUENCE_LSTM", int16=True)
def sequence_lstm(t: TfliteTranslation) -> None:
    """Translate UNIDIRECTIONAL_SEQUENCE_LSTM, of numbers or of integers of 8 bits."""
    require_type(t.dtype, DType.FLOAT32, DType.INT8)
    if any(map(t.has, _UNKNOWN)):
        raise NotLoweredError("peepholes, projection and layer normalisation are unsupported")
    if t.integer("FusedActivationFunction", TANH) != TANH:
        raise unsupported(
            "fused_activation_function", t.integer("FusedActivationFunction", TANH), "TANH"
        )
    if not all(map(t.has, (*_INPUT_WEIGHTS, *_RECURRENT_WEIGHTS))):
        raise NotLoweredError("a coupled input gate (input gate weights left out) is unsupported")
    operator = Lstm(
        batch_major=not t.integer("TimeMajor", 0),
        keeps_state=True,
        cell_clip=t.number("CellClip", 0.0) or math.inf,
    )
    if t.dtype is DType.INT8:
        operator = _of_integers(t, operator)
    weights, recurrent = _stacked(t, _INPUT_WEIGHTS), _stacked(t, _RECURRENT_WEIGHTS)
    inputs = [
        t.value(0),
        weights,
        recurrent,
        _biases(t, recurrent.shape[2]),
        t.value(_HIDDEN_STATE),
        t.value(_CELL_STATE),
    ]
    t.finish(t.builder.emit_one(operator, inputs, t.target, t.shape, step=t.step.name))


def _of_integers(t: TfliteTranslation, operator: Lstm) -> Lstm:
    """Return the operator with the quantisation of its hidden state."""
    cells = t.builder.stated_quantisation(t.source(_CELL_STATE))
    if cells is None or math.frexp(cells.scales[0])[0] != 0.5:
        raise NotLoweredError("the scale of the cell state is not a power of 2")
    scale = t.number("Intermediate4Scale", 0.0)
    if scale <= 0:
        raise NotLoweredError("the model does not state the scale of the hidden state")
    zero_point = t.integer("Intermediate4ZeroPoint", 0)
    if not -128 <= zero_point <= 127:
        raise unsupported("zero point of the hidden state", zero_point, "-128 to 127")
    return replace(operator, hidden_scale=scale, hidden_zero_point=zero_point)


def _stacked(t: TfliteTranslation, positions: tuple[int, ...]) -> StoredValue:
    """Return the weights of the four gates, stacked for one direction."""
    parts = [t.weights(position) for position in positions]
    arrays = [part.array for part in parts if part.array is not None]
    stated = [t.builder.quantisation(part) for part in parts]
    scales = tuple(
        each.scales[0]
        for each, array in zip(stated, arrays, strict=True)
        if each is not None
        for _ in range(len(array))
    )
    quantisation = Quantisation(scales, axis=1) if t.dtype is DType.INT8 else None
    stacked = np.concatenate(arrays)[np.newaxis]
    return t.builder.constant(stacked, t.source(positions[0]), quantisation)


def _biases(t: TfliteTranslation, num_units: int) -> StoredValue:
    """Return the biases of the four gates for one direction, zeros where one is left out."""
    zeros = np.zeros(num_units, np.int32 if t.dtype is DType.INT8 else np.float32)
    given = [t.array(position) if t.has(position) else zeros for position in _BIASES]
    return t.builder.constant(np.concatenate(given).reshape(1, -1), t.source(_BIASES[0]))


@translates("SVDF", int16=True)
def svdf(t: TfliteTranslation) -> None:
    """Translate SVDF, of numbers or of integers."""
    operator = Svdf(rank=t.integer("Rank", 1))
    state = t.value(4)
    t.finish(
        t.emit(operator, [t.value(0), t.weights(1), t.weights(2), t.optional_value(3), state])
    )


@translates("READ_VARIABLE")
def read_variable(t: TfliteTranslation) -> None:
    """Translate READ_VARIABLE: the state itself, or the value assigned to it before."""
    if t.builder.model.tensors[t.source()].kind is not TensorKind.STATE:
        raise NotLoweredError("the variable has no resource that is known before the run")
    value = t.value()
    if t.builder.quantisation(value) == t.builder.stated_quantisation(t.target):
        t.finish(value)
    else:
        t.finish(t.emit(copy_of(value), [value]))


@translates("ASSIGN_VARIABLE")
def assign_variable(t: TfliteTranslation) -> None:
    """Translate ASSIGN_VARIABLE: the value of the state from here on, and for the next run."""
    if not t.step.outputs:
        raise NotLoweredError("the variable has no resource that is known before the run")
    value = t.value()
    if value.shape != t.shape:
        raise NotLoweredError(
            f"a value of shape {value.shape} does not fit a variable of shape {t.shape}"
        )
    t.builder.assign(t.target, value)
