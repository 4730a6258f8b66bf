"""LSTM, GRU and RNN, in one direction or both, of floats or dynamically quantised."""

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.sizes import depends
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue, as_written
from arenite.runtime.lowering.onnx.dynamic import quantised
from arenite.runtime.lowering.onnx.quantisation import signed
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.operators.recurrent import DynamicLstm, Gru, Lstm, Rnn

_DYNAMIC = "com.microsoft.DynamicQuantizeLSTM"
_ACTIVATIONS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    _DYNAMIC: ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}
_GATES = {"LSTM": Lstm.num_gates, _DYNAMIC: DynamicLstm.num_gates, "GRU": Gru.num_gates,
          "RNN": Rnn.num_gates}  # fmt: skip
_LSTM_ORDER = (0, 2, 3, 1)
"""The gates input, forget, cell, output, where ONNX has input, output, forget, cell."""


@translates("LSTM")
def lstm(t: OnnxTranslation) -> None:
    """Translate LSTM without peepholes."""
    operator = Lstm(reverse=t.attribute("direction", "forward") == "reverse")
    _emit(t, operator, [_source(t), *_lstm_operands(t), *_lengths(t)], num_states=2)


@translates(_DYNAMIC)
def dynamically_quantised_lstm(t: OnnxTranslation) -> None:
    """Translate an LSTM whose input and hidden states are quantised in the run."""
    operands = _lstm_operands(t)
    rows = _weights(t, 1).shape[:2]

    def by_row(position: int, array: Array, what: str) -> StoredValue:
        if array.size not in (rows[0], rows[0] * rows[1]):
            raise NotLoweredError(f"{what} has shape {array.shape}, not {rows} or {rows[:1]}")
        each = np.broadcast_to(array.reshape(rows[0], -1), rows)
        return t.builder.constant(_reordered(each), f"{t.source(position)}/{what}")

    def zero_points(position: int, weights: int) -> StoredValue | None:
        zeros = t.array(position).astype(np.int32) - 128 * (t.array(weights).dtype == np.uint8)
        return by_row(position, zeros, "zero points") if zeros.any() else None

    if _lengths(t):
        raise NotLoweredError(
            "sequence_lens is unsupported unless all sequences have the full length"
        )
    integers, scale, zero_point = quantised(t, _source(t), ("", "", ""))
    operator = DynamicLstm(reverse=t.attribute("direction", "forward") == "reverse")
    scales = [by_row(position, t.array(position), "scales") for position in (8, 10)]
    zeros = [zero_points(9, 1), zero_points(11, 2)]
    _emit(t, operator, [integers, *operands, scale, zero_point, *scales, *zeros], num_states=2)


def _lstm_operands(t: OnnxTranslation) -> list[StoredValue | None]:
    """Return weights, recurrent weights, bias and states of an LSTM, gates in our order."""
    _check(t)
    if t.has(7):
        raise NotLoweredError("peephole weights (input P) are unsupported")
    if t.attribute("input_forget", 0):
        raise unsupported("input_forget", 1, 0)
    one, other = np.split(_bias(t, 2 * _weights(t, 1).shape[1]), 2, axis=1)
    return [
        t.builder.constant(_reordered(_weights(t, 1)), t.source(1)),
        t.builder.constant(_reordered(_weights(t, 2)), t.source(2)),
        t.builder.constant(_reordered(one + other), f"{t.target}/bias"),
        _state(t, 5),
        _state(t, 6),
    ]


def _weights(t: OnnxTranslation, position: int) -> Array:
    """Return weights: directions, gates * units, inputs; integers are int8."""
    array = t.array(position)
    if t.kind != _DYNAMIC:
        return array
    if array.dtype not in (np.int8, np.uint8) or array.ndim != 3:
        raise unsupported(f"type of input {position}", array.dtype.name, "int8", "uint8")
    return signed(array).swapaxes(1, 2)


@translates("GRU")
def gru(t: OnnxTranslation) -> None:
    _check(t)
    num_units = t.array(2).shape[2]
    one, other = np.split(_bias(t, 6 * num_units), 2, axis=1)
    inputs: list[StoredValue | None] = [
        _source(t),
        t.builder.constant(t.array(1), t.source(1)),
        t.builder.constant(t.array(2), t.source(2)),
        t.builder.constant(one, f"{t.target}/bias"),
        t.builder.constant(other, f"{t.target}/recurrent_bias"),
        _state(t, 5),
        *_lengths(t),
    ]
    operator = Gru(
        reverse=t.attribute("direction", "forward") == "reverse",
        reset_after=bool(t.attribute("linear_before_reset", 0)),
    )
    _emit(t, operator, inputs, num_states=1)


@translates("RNN")
def rnn(t: OnnxTranslation) -> None:
    """Translate RNN of hyperbolic tangents or rectified sums."""
    directions = 2 if t.attribute("direction", "forward") == "bidirectional" else 1
    rectifies = t.attributes.get("activations") == ("Relu",) * directions
    _check(t, ("Relu",) if rectifies else _ACTIVATIONS["RNN"])
    one, other = np.split(_bias(t, 2 * t.array(2).shape[2]), 2, axis=1)
    inputs: list[StoredValue | None] = [
        _source(t),
        t.builder.constant(t.array(1), t.source(1)),
        t.builder.constant(t.array(2), t.source(2)),
        t.builder.constant(one + other, f"{t.target}/bias"),
        _state(t, 5),
        *_lengths(t),
    ]
    is_reverse = t.attribute("direction", "forward") == "reverse"
    _emit(t, Rnn(reverse=is_reverse, rectifies=rectifies), inputs, num_states=1)


def _check(t: OnnxTranslation, known: tuple[str, ...] = ()) -> None:
    """Check what is supported of a layer.

    Args:
        t: The layer.
        known: The activations of a direction, those of its kind by default.

    Raises:
        NotLoweredError: Something is not.
    """
    source = t.value(0)
    require_type(source.dtype, DType.FLOAT32)
    if len(source.shape) != 3:
        raise NotLoweredError(f"X has shape {source.shape}, not three dimensions")
    if t.attribute("layout", 0):
        raise unsupported("layout", t.attribute("layout", 0), 0)
    if "clip" in t.attributes:
        raise unsupported("clip", repr(t.attributes["clip"]), "none")
    known = known or _ACTIVATIONS[t.kind]
    directions = 2 if t.attribute("direction", "forward") == "bidirectional" else 1
    given = t.attributes.get("activations", known * directions)
    if given != known * directions:
        raise unsupported("activations", given, known)
    _check_shapes(t, directions, source)


def _check_shapes(t: OnnxTranslation, directions: int, source: StoredValue) -> None:
    """Check the shapes of weights and biases.

    Raises:
        NotLoweredError: They do not fit the input and each other.
    """
    recurrent = _weights(t, 2)
    num_units = recurrent.shape[-1] if recurrent.ndim else 0
    rows = num_units * _GATES[t.kind]
    expected = (
        ("R", recurrent, (directions, rows, num_units)),
        ("W", _weights(t, 1), (directions, rows, *source.shape[2:])),
        ("B", t.optional_array(3), (directions, 2 * rows)),
    )
    for name, array, shape in expected:
        if array is not None and array.shape != shape:
            raise NotLoweredError(f"{name} has shape {array.shape}, not {shape}")


def _lengths(t: OnnxTranslation) -> list[StoredValue]:
    """Return the lengths of sequences, if there are any and they are not all times."""
    if not t.has(4):
        return []
    times, batch, _ = t.value(0).shape
    lengths = t.value(4)
    require_type(lengths.dtype, DType.INT32)
    if not t.builder.agree(lengths.shape, (batch,)):
        raise NotLoweredError(f"sequence_lens has shape {lengths.shape}, not {(batch,)}")
    array = t.builder.array(t.source(4))
    if array is not None and not depends(times):
        if np.any(array < 0) or np.any(array > times):
            raise NotLoweredError(f"sequence_lens has numbers that are not in 0 to {times}")
        if np.all(array == times):
            return []
    return [t.builder.as_written(lengths, t.target)]


def _source(t: OnnxTranslation) -> StoredValue:
    return t.builder.as_written(t.value(0), t.target)


def _state(t: OnnxTranslation, position: int) -> StoredValue | None:
    return t.builder.as_written(t.value(position), t.target) if t.has(position) else None


def _bias(t: OnnxTranslation, length: int) -> Array:
    given = t.optional_array(3)
    return np.zeros((t.array(1).shape[0], length), np.float32) if given is None else given


def _reordered(stacked: Array) -> Array:
    """Return weights or biases, stacked by gate on axis 1, with the gates in our order."""
    gates = stacked.reshape(stacked.shape[0], 4, -1, *stacked.shape[2:])
    return gates[:, _LSTM_ORDER].reshape(stacked.shape)


def _emit(
    t: OnnxTranslation,
    operator: Lstm | DynamicLstm | Gru | Rnn,
    inputs: list[StoredValue | None],
    num_states: int,
) -> None:
    """Add the step and bind those of its outputs that the model reads.

    Args:
        t: The operator of the model.
        operator: The operator of the core.
        inputs: Inputs of the step.
        num_states: Number of states that it returns besides y.
    """
    num_times, batch, _ = t.value(0).shape
    directions, _, num_units = _weights(t, 2).shape
    state = (directions, batch, num_units)
    names = (*t.step.outputs, "", "", "")[: 1 + num_states]
    shapes = ((num_times, directions, batch, num_units), *(state,) * num_states)
    outputs = [
        (name or f"{t.step.name}/state{position}", shape, as_written(len(shape)))
        for position, (name, shape) in enumerate(zip(names, shapes, strict=True))
    ]
    made = t.builder.emit(operator, inputs, outputs, dtype=DType.FLOAT32, step=t.step.name)
    for name, value in zip(names, made, strict=True):
        if name:
            t.builder.bind(name, value)
