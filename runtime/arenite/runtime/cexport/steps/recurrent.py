"""Recurrent layers, whose state lies in the arena."""

import math
from collections.abc import Sequence

import numpy as np

from arenite.planner import Array, Tensor
from arenite.planner.operators import Operands
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import quantised_multiplier, scale_of, zero_of
from arenite.runtime.cexport.base.text import TYPES
from arenite.runtime.cexport.steps import tables
from arenite.runtime.cexport.steps.writer import Plane, StepWriter, writes
from arenite.runtime.operators.base import FLOAT_BYTES
from arenite.runtime.operators.recurrent import Gru, Lstm, Rnn, Svdf
from arenite.runtime.rewrites.packing import gru_biases


class UnbufferedLstm(Lstm):
    """An Lstm whose kernel needs no working memory."""

    __slots__ = ()

    def scratch(self, operands: Operands) -> int:
        """Return 0: a unit's products are held one after the other."""
        return 0


class UnbufferedGru(Gru):
    """A Gru whose kernel holds at most the states that the reset gate applies to."""

    __slots__ = ()

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of the reset states of a sequence."""
        recurrent = operands.input(2)
        return 0 if self.reset_after or recurrent is None else FLOAT_BYTES * recurrent.shape[2]


class UnbufferedRnn(Rnn):
    """An Rnn whose kernel needs no working memory."""

    __slots__ = ()

    def scratch(self, operands: Operands) -> int:
        """Return 0: a unit's products are held one after the other."""
        return 0


@writes(Svdf)
def svdf(t: StepWriter) -> None:
    """Write filters over features and their past, one call a sequence of the batch."""
    operator = t.operator
    assert isinstance(operator, Svdf)
    kind = t.types("int8", "float32")
    source, result, state = t.input(), t.output(), t.input(4)
    features, times = t.array(1), t.array(2)
    filters, memory = times.shape
    units = filters // operator.rank
    sizes = {
        "inputs": features.shape[1], "filters": filters, "memory": memory,
        "rank": operator.rank,
    }  # fmt: skip
    if kind == "float32":
        bias = t.array(3) if t.has(3) else np.zeros(units, np.float32)
        suffix, (features, times) = t.weights(features, times)
        kernel, element = f"svdf_{suffix}", "float"
        layer = t.layer(
            f"svdf_layer_{suffix}", **sizes, low=operator.min, high=operator.max,
            features=t.constant(features, "features"), times=t.constant(times, "times"),
            bias=t.constant(bias, "bias"),
        )  # fmt: skip
    else:
        if times.dtype.name not in ("int8", "int16") or state.dtype.label != times.dtype.name:
            raise NotWrittenError(
                f"a state of {state.dtype.label} for weights of {times.dtype.name} is unsupported"
            )
        kernel = "svdf_s16" if times.dtype == np.int16 else "svdf_s8"
        element = f"{times.dtype.name}_t"
        layer = _integer_svdf(t, operator, kernel, sizes, units)
    data = {"int8": ("(const int8_t *)", "(int8_t *)"),
            "float32": ("(const float *)(const void *)", "(float *)(void *)")}[kind]  # fmt: skip
    through = "(int8_t *)" if element == "int8_t" else f"({element} *)(void *)"
    size, wide = source.dtype.bits // 8, state.dtype.bits // 8
    for plane in t.planes(source.shape[0]):
        t.call(
            kernel,
            layer,
            f"{data[0]}({t.address(source, plane, features.shape[1] * size)})",
            f"{through}({t.address(state, plane, filters * memory * wide)})",
            f"{data[1]}({t.address(result, plane, units * size)})",
        )


def _integer_svdf(
    t: StepWriter, operator: Svdf, kernel: str, sizes: dict[str, int], units: int
) -> str:
    source, result, state = t.input(), t.output(), t.input(4)
    t.refuse_even("integers")
    feature = quantised_multiplier(scale_of(source) * scale_of(t.input(1)) / scale_of(state))
    time = quantised_multiplier(scale_of(state) * scale_of(t.input(2)) / scale_of(result))
    times = t.array(2)
    bias = t.array(3) if t.has(3) else np.zeros(units, np.int32)
    # Weights times the zero point of the state, which the kernel does not take from the past.
    bias = bias - zero_of(state) * times.reshape(units, -1).sum(axis=1, dtype=np.int32)
    return t.layer(
        kernel.replace("_", "_layer_"),
        **sizes,
        in_zero=zero_of(source),
        feature_factor=feature[0],
        feature_shift=feature[1],
        state_zero=zero_of(state),
        factor=time[0],
        shift=time[1],
        out_zero=zero_of(result),
        # The reference kernels clamp integers to what a byte holds, whatever the activation.
        low=-128,
        high=127,
        features=t.constant(t.array(1), "features"),
        times=t.constant(times, "times"),
        bias=t.constant(bias.astype(np.int32), "bias"),
    )


@writes(UnbufferedLstm)
def lstm(t: StepWriter) -> None:
    """Write a long short-term memory, one call a direction and a sequence of the batch."""
    operator = t.operator
    assert isinstance(operator, Lstm)
    is_float = t.types("int8", "float32") == "float32"
    if operator.keeps_state:
        hidden, cell = t.input(4), t.input(5)
    else:
        hidden, cell = _initialised(t, 4, 1), _initialised(t, 5, 2)
    layers = _float_layers(t, "lstm", t.array(3)) if is_float else [_integer_lstm(t, operator)]
    _call_sequences(t, operator, layers, [hidden, cell])


@writes(UnbufferedGru)
def gru(t: StepWriter) -> None:
    """Write a gated recurrent unit, one call a direction and a sequence of the batch."""
    operator = t.operator
    assert isinstance(operator, Gru)
    t.types("float32")
    hidden = _initialised(t, 5, 1)
    biases = gru_biases(operator, t.array(3), t.array(4))
    layers = _float_layers(t, "gru", biases[0], biases[1] if operator.reset_after else None)
    _, reset = t.working_memory()
    if reset != "NULL":
        reset = f"(float *)(void *)({reset})"
    _call_sequences(t, operator, layers, [hidden], reset)


@writes(UnbufferedRnn)
def rnn(t: StepWriter) -> None:
    """Write a recurrent layer of one gate, one call a direction and a sequence of the batch."""
    operator = t.operator
    assert isinstance(operator, Rnn)
    t.types("float32")
    hidden = _initialised(t, 4, 1)
    layers = _float_layers(t, "rnn", t.array(3))
    _call_sequences(t, operator, layers, [hidden], str(int(operator.rectifies)))


def _initialised(t: StepWriter, given: int, made: int) -> Tensor:
    """Write the copy of a state from an input, or zeros if it is left out; return the state."""
    state = t.output(made)
    size = t.num_bytes(state.size)
    if t.has(given):
        t.plain_call(f"memcpy({t.address(state)}, {t.address(t.input(given))}, {size});")
    else:
        t.plain_call(f"memset({t.address(state)}, 0, {size});")
    return state


def _call_sequences(
    t: StepWriter,
    operator: Lstm | Gru | Rnn,
    layers: Sequence[tuple[str, str]],
    states: Sequence[Tensor],
    *last: str,
) -> None:
    """Write a call for each direction and each sequence of the batch.

    Args:
        t: The step.
        operator: Its operator.
        layers: Kernel and layer of each direction.
        states: What the kernel updates.
        last: Further arguments behind the states.
    """
    lengths = _lengths(t, 5 if isinstance(operator, Rnn) else 6)
    source, result = t.input(), t.output()
    inputs, units, directions = source.shape[2], t.array(2).shape[2], len(layers)
    times, batch = source.shape[:2]
    read, made = inputs * batch, directions * units * batch  # elements from one time to the next
    in_sequence, out_sequence, out_direction = inputs, units, batch * units
    if not isinstance(operator, Rnn) and operator.batch_major:
        times, batch, read, made = batch, times, inputs, directions * units
        in_sequence, out_sequence, out_direction = times * read, times * made, units

    def place(tensor: Tensor, plane: Plane, step: int, skipped: int, *, const: str = "") -> str:
        size = tensor.dtype.bits // 8
        text = t.address(tensor, plane, step * size)
        text += f" + {skipped * size}" if skipped else ""
        through = f"({const}void *)" if size > 1 else ""
        return f"({const}{TYPES[tensor.dtype.label]} *){through}({text})"

    for direction, (kernel, layer) in enumerate(layers):
        sign = -1 if operator.reverse or direction else 1
        skipped = times - 1 if sign < 0 and not lengths else 0
        begin, end = skipped * read, skipped * made
        for plane in t.planes(batch):
            count = f"length_of({lengths}, {plane}, {times})" if lengths else times
            last_in, last_out = (
                f" + ({count} - 1) * {step}" if sign < 0 and lengths else ""
                for step in (read, made)
            )
            t.call(
                kernel,
                layer,
                place(source, plane, in_sequence, begin, const="const ") + last_in,
                sign * read,
                count,
                *(place(each, plane, units, direction * batch * units) for each in states),
                *last,
                place(result, plane, out_sequence, direction * out_direction + end) + last_out,
                sign * made,
            )


_LENGTH_OF = """static inline int32_t length_of(const int32_t *lengths, int32_t sequence,
                                int32_t times)
{
    const int32_t length = lengths[sequence];
    return length < 0 ? 0 : length < times ? length : times;
}
"""


def _lengths(t: StepWriter, position: int) -> str:
    """Return where the lengths of sequences lie, "" if all are as long; what lies behind is 0."""
    if not t.has(position):
        return ""
    t.define(_LENGTH_OF)
    result = t.output()
    t.plain_call(f"memset({t.address(result)}, 0, {t.num_bytes(result.size)});")
    return f"(const int32_t *)(const void *)({t.address(t.input(position))})"


def _float_layers(
    t: StepWriter, kind: str, bias: Array, reset_bias: Array | None = None
) -> list[tuple[str, str]]:
    """Return kernel and layer of each direction."""
    operator = t.operator
    suffix, (weights, recurrent) = t.weights(t.array(1), t.array(2))
    return [
        (
            f"{kind}_{suffix}",
            t.layer(
                f"gates_{suffix}",
                inputs=weights.shape[2],
                units=recurrent.shape[2],
                clip=operator.cell_clip if isinstance(operator, Lstm) else math.inf,
                weights=t.constant(weights[direction], "weights"),
                recurrent=t.constant(recurrent[direction], "recurrent"),
                bias=t.constant(bias[direction], "bias"),
                reset_bias="NULL"
                if reset_bias is None
                else t.constant(reset_bias[direction], "reset_bias"),
            ),
        )
        for direction in range(len(weights))
    ]


_GATE_BITS = 3
"""Before the point of a gate's sum."""


def _integer_lstm(t: StepWriter, operator: Lstm) -> tuple[str, str]:
    """Return kernel and layer of integers, with the scales of TensorFlow Lite Micro's kernels."""
    t.refuse_even("integers")
    exponent = math.frexp(scale_of(t.input(5)))
    if exponent[0] != 0.5 or not -14 <= exponent[1] <= -8:
        raise NotWrittenError(
            f"cell state scale {scale_of(t.input(5)):g} is unsupported, "
            "supported: powers of 2 from 2^-15 to 2^-9"
        )
    clip = 0
    if math.isfinite(operator.cell_clip):
        clip = int(min(operator.cell_clip / scale_of(t.input(5)), 32767.0))
    hidden = quantised_multiplier(2.0**-30 / scale_of(t.input(4)))
    fields: dict[str, str] = {}
    for position, source, prefix in ((1, 0, ""), (2, 4, "recurrent_")):
        array = t.array(position)[0]
        stated = t.input(position).quantisation
        if stated is None or len(stated.scales) != len(array):
            raise NotWrittenError("weights without a scale for each row are unsupported")
        bias = t.array(3).reshape(-1) if position == 1 else np.zeros(len(array), np.int32)
        sums = bias - zero_of(t.input(source)) * array.sum(axis=1, dtype=np.int64)
        scale = scale_of(t.input(source)) / 2.0 ** (_GATE_BITS - 15)
        pairs = [quantised_multiplier(float(np.float32(each)) * scale) for each in stated.scales]
        fields |= {
            f"{prefix}begins": t.constant(sums.astype(np.uint32).view(np.int32), "begins"),
            f"{prefix}factors": t.constant(np.array([f for f, _ in pairs], np.int32), "factors"),
            f"{prefix}shifts": t.constant(np.array([s for _, s in pairs], np.int8), "shifts"),
        }
    return "lstm_s8", t.layer(
        "lstm_layer",
        **fields,
        inputs=t.array(1).shape[2],
        units=t.array(2).shape[2],
        cell_bits=14 + exponent[1],
        clip=clip,
        hidden_factor=hidden[0],
        hidden_shift=hidden[1],
        hidden_zero=zero_of(t.input(4)),
        logistic=t.constant(tables.logistic_16(), "logistic"),
        weights=t.constant(t.array(1), "weights"),
        recurrent=t.constant(t.array(2), "recurrent"),
    )
