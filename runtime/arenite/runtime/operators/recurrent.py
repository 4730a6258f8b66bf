"""Recurrent layers."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from arenite.planner import DType
from arenite.planner.operators import Operands
from arenite.runtime.operators.base import FLOAT_BYTES, Clamped, RuntimeOperator

LSTM_UNITS_AT_ONCE, GRU_UNITS_AT_ONCE = 16, 64
"""Units of which a recurrent layer holds the products of all gates at once."""
TIMES_AT_ONCE = 8
"""Times of which an LSTM holds all products with its inputs, where weights are read but once for
them: those of more bytes than `LARGE_WEIGHTS`, as they leave the caches."""
LARGE_WEIGHTS = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Lstm(RuntimeOperator):
    """Reads x, weights, recurrent weights, a bias, and the states to start from.

    x: times, batch, inputs; or, batch major, batch, times, inputs. Weights: directions, gates *
    units, inputs; recurrent weights: directions, gates * units, units; biases: directions,
    gates * units. y: times, directions, batch, units; or batch, times, directions * units. The
    second of two directions runs backwards. States: directions, batch, units; zeros if left out.

    Gates are input, forget, cell, output. Returns y, the hidden and the cell state; with
    `keeps_state` it updates its states in place and returns only y.

    Of integers x, weights, hidden state and y are int8, the bias int32 and the cell state int16;
    weights have a scale for each row. Then it has one direction and keeps its state, and
    `hidden_scale` and `hidden_zero_point` are what y is rounded to.
    """

    number: ClassVar[int] = 24

    reverse: bool = False
    batch_major: bool = False
    keeps_state: bool = False
    cell_clip: float = math.inf
    hidden_scale: float = 1.0
    hidden_zero_point: Annotated[int, "int"] = 0

    @property
    def updates(self) -> tuple[int, ...]:
        return (4, 5) if self.keeps_state else ()

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of products with both weights; integers need none.

        They are those of some units, or of all units and several times with the inputs.
        """
        if operands.source is not None and operands.source.dtype is DType.INT8:
            return 0
        batch, units = _sizes(operands, batch_major=self.batch_major)
        tile = FLOAT_BYTES * 4 * batch * min(units, LSTM_UNITS_AT_ONCE)
        times = self._times_at_once(operands)
        return tile + (tile if times == 1 else FLOAT_BYTES * 4 * times * batch * units)

    def _times_at_once(self, operands: Operands) -> int:
        source, weights = operands.source, operands.input(1)
        if source is None or weights is None or len(source.shape) != 3:
            return 1
        times, batch = source.shape[:2]
        if self.batch_major:
            times, batch = batch, times
        follow = batch == 1 or not self.batch_major
        return min(times, TIMES_AT_ONCE) if follow and weights.size > LARGE_WEIGHTS else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gru(RuntimeOperator):
    """Reads x, weights, recurrent weights, both biases, and the state to start from.

    Shapes are those of an Lstm.

    Gates are update, reset, hidden. Returns y and the state. With `reset_after` the reset gate
    applies to the product with the recurrent weights, else to the state before it.
    """

    number: ClassVar[int] = 25

    reverse: bool = False
    batch_major: bool = False
    reset_after: bool = False

    def scratch(self, operands: Operands) -> int:
        """Return the bytes of some units' products, and of new states that wait for the others."""
        batch, units = _sizes(operands, batch_major=self.batch_major)
        products = 2 * batch * min(units, GRU_UNITS_AT_ONCE)
        if self.reset_after:
            return FLOAT_BYTES * 3 * products
        return FLOAT_BYTES * (2 * products + batch * units)


def _sizes(operands: Operands, *, batch_major: bool) -> tuple[int, int]:
    """Return the number of sequences in the batch, and of units."""
    source, recurrent = operands.source, operands.input(2)
    if source is None or recurrent is None or len(source.shape) != 3 or len(recurrent.shape) != 3:
        return 0, 0
    return source.shape[0 if batch_major else 1], recurrent.shape[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Svdf(Clamped):
    """Reads x, weights of features and of time, an optional bias, and the state it keeps.

    x: batch, inputs; weights of features: filters, inputs; weights of time: filters, memory; bias:
    units; state: batch, filters, memory. Each unit is the sum of `rank` filters.
    """

    number: ClassVar[int] = 26

    rank: int = 1

    @property
    def updates(self) -> tuple[int, ...]:
        return (4,)
