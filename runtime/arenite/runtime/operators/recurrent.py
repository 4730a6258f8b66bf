"""Recurrent layers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from arenite.planner import DType
from arenite.planner.operators import Along, Operands, row_by_row
from arenite.planner.sizes import depends, largest, smallest
from arenite.runtime.operators.base import FLOAT_BYTES, PANEL, Clamped, RuntimeOperator


def _one_after_another(
    operands: Operands,
    axes: Sequence[int | None],
    carried: tuple[tuple[int, int], ...],
    *,
    batch_major: bool = False,
) -> Along | None:
    """Return how a layer of one direction makes one time after another.

    Args:
        carried: Its states.
    """
    source, result = operands.source, operands.result
    own = 1 if batch_major else 0
    if source is None or result is None or len(operands.outputs) <= len(carried):
        return None
    if axes[0] != own or any(each is not None for each in axes[1:]) or depends(source.shape[own]):
        return None
    window = row_by_row(source.shape[own])
    return Along(own, tuple(axes), (window, *(None for _ in axes[1:])), carried)


def _has_lengths(operands: Operands, position: int = 6) -> bool:
    """Tell whether the layer is told how long each sequence is."""
    return operands.input(position) is not None


def _directions(operands: Operands) -> int:
    state = operands.outputs[-1]
    return 0 if state is None else state.shape[0]


_RANK = 3
"""Axes of x: times, sequences, inputs."""
VECTORS_AT_ONCE = 12
"""Vectors of inputs that are multiplied at once, so that weights are read once for them."""
TILES_AT_ONCE = 2
"""Tiles of units of which a step of one time holds the sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lstm(RuntimeOperator):
    """Reads x, weights, recurrent weights, a bias, the states to start from, and lengths.

    x: times, batch, inputs; or, batch major, batch, times, inputs. y: times, directions, batch,
    units; or batch, times, directions * units. The second of two directions runs backwards.
    States: directions, batch, units; zeros if left out. Gates are input, forget, cell, output.
    Returns y, the hidden and the cell state; with `keeps_state` it updates its states in place and
    returns only y.

    Lengths: batch, int32; all times if left out. Beyond its length a sequence keeps its states,
    and y is 0; backwards it begins at its own end.

    In floating point weights are packed by tiles of 16 units, the last one filled up with zeros:
    directions, tiles, inputs, gates * 16; recurrent weights: directions, tiles, units, gates * 16;
    biases: directions, tiles, gates * 16.

    Of integers weights are directions, gates * units, inputs; recurrent weights: directions,
    gates * units, units; biases: directions, gates * units. x, weights, hidden state and y are
    int8, the bias int32 and the cell state int16; weights have a scale for each row. Then it has
    one direction and keeps its state, and `hidden_scale` and `hidden_zero_point` are what y is
    rounded to.
    """

    number: ClassVar[int] = 24
    num_gates: ClassVar[int] = 4

    reverse: bool = False
    batch_major: bool = False
    keeps_state: bool = False
    cell_clip: float = math.inf
    hidden_scale: float = 1.0
    hidden_zero_point: Annotated[int, "int"] = 0

    @property
    def updates(self) -> tuple[int, ...]:
        return (4, 5) if self.keeps_state else ()

    def along(self, operands: Operands, axes: Sequence[int | None]) -> Along | None:
        if self.reverse or self.keeps_state or _directions(operands) != 1:
            return None
        if _has_lengths(operands):
            return None
        states = ((4, 1), (5, 2))
        return _one_after_another(operands, axes, states, batch_major=self.batch_major)

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Lstm":
        return self

    def multiply_adds(self, operands: Operands) -> int:
        return _products(operands, self.num_gates)

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of sums of gates; integers need none."""
        if operands.source is not None and operands.source.dtype is DType.INT8:
            return 0
        vectors, tiles, _, _ = _held(operands, batch_major=self.batch_major)
        return FLOAT_BYTES * vectors * tiles * self.num_gates * PANEL


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicLstm(RuntimeOperator):
    """An Lstm of int8 weights whose input and hidden states are quantised in the run.

    Reads what an Lstm reads, and then scale and zero point of x, the scales of both weights, and
    their zero points of int32, which may be left out. x is uint8, as the hidden state of each time
    becomes by its range. Weights are packed filters, of which the outputs are by direction, tile,
    gate and unit, as scales, zero points and biases are. Returns y, the hidden and the cell state,
    all floats.
    """

    number: ClassVar[int] = 42
    num_gates: ClassVar[int] = 4

    reverse: bool = False

    def along(self, operands: Operands, axes: Sequence[int | None]) -> Along | None:
        if self.reverse or _directions(operands) != 1:
            return None
        return _one_after_another(operands, axes, ((4, 1), (5, 2)))

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "DynamicLstm":
        return self

    def multiply_adds(self, operands: Operands) -> int:
        return _products(operands, self.num_gates)

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of sums of several times, of products and of a quantised state."""
        if operands.result is None or len(operands.result.shape) != 4:
            return 0
        times, _, batch, units = operands.result.shape
        vectors = _vectors(times, batch) + batch
        sums = vectors * _tiles(units) * self.num_gates * PANEL
        return FLOAT_BYTES * sums + batch * units


@dataclass(frozen=True, slots=True, kw_only=True)
class Gru(RuntimeOperator):
    """Reads x, weights, recurrent weights, two biases, the state to start from, and lengths.

    Shapes are those of an Lstm in floating point, and so are lengths. Gates are update, reset,
    hidden. Returns y and the state. With `reset_after` the reset gate applies to the product with
    the recurrent weights, and to the second bias of the hidden gate: directions, tiles, 16; else
    to the state before the product. All other biases are in the first.
    """

    number: ClassVar[int] = 25
    num_gates: ClassVar[int] = 3

    reverse: bool = False
    batch_major: bool = False
    reset_after: bool = False

    def along(self, operands: Operands, axes: Sequence[int | None]) -> Along | None:
        if self.reverse or _directions(operands) != 1 or _has_lengths(operands):
            return None
        return _one_after_another(operands, axes, ((5, 1),), batch_major=self.batch_major)

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Gru":
        return self

    def multiply_adds(self, operands: Operands) -> int:
        return _products(operands, self.num_gates)

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of sums of gates, and of candidates or reset states beside them."""
        vectors, tiles, batch, units = _held(
            operands, batch_major=self.batch_major, all_tiles=not self.reset_after
        )
        beside = batch * (tiles * PANEL if self.reset_after else units)
        return FLOAT_BYTES * (vectors * tiles * self.num_gates * PANEL + beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rnn(RuntimeOperator):
    """Reads x, weights, recurrent weights, a bias, the state to start from, and lengths.

    Shapes are those of an Lstm in floating point, and so are lengths; there is one gate, of which
    the state is the hyperbolic tangent or, with `rectifies`, what is above 0. Returns y and the
    state.
    """

    number: ClassVar[int] = 65
    num_gates: ClassVar[int] = 1

    reverse: bool = False
    rectifies: bool = False

    def along(self, operands: Operands, axes: Sequence[int | None]) -> Along | None:
        if self.reverse or _directions(operands) != 1 or _has_lengths(operands, 5):
            return None
        return _one_after_another(operands, axes, ((4, 1),))

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Rnn":
        return self

    def multiply_adds(self, operands: Operands) -> int:
        return _products(operands, self.num_gates)

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of sums."""
        vectors, tiles, _, _ = _held(operands, batch_major=False)
        return FLOAT_BYTES * vectors * tiles * self.num_gates * PANEL


def _products(operands: Operands, num_gates: int) -> int:
    """Return the multiply-adds of all gates, with the inputs and with the state before."""
    source, recurrent, result = operands.source, operands.input(2), operands.result
    if source is None or recurrent is None or result is None or len(source.shape) != _RANK:
        return 0
    units = result.shape[-1] if len(result.shape) > _RANK else recurrent.shape[2]
    return result.num_elements * num_gates * (source.shape[-1] + units)


def _held(
    operands: Operands, *, batch_major: bool, all_tiles: bool = False
) -> tuple[int, int, int, int]:
    """Return of how many vectors and tiles sums are held, the sequences of the batch and units."""
    source, recurrent = operands.source, operands.input(2)
    if source is None or recurrent is None or len(source.shape) != 3 or len(recurrent.shape) < 3:
        return 0, 0, 0, 0
    times, batch = source.shape[1::-1] if batch_major else source.shape[:2]
    units = recurrent.shape[2]
    follow = depends(batch) or batch == 1 or not batch_major  # one time after another
    vectors = _vectors(times, batch) if follow else batch
    tiles = _tiles(units)
    if vectors == batch and not depends(batch) and not all_tiles:
        tiles = min(tiles, TILES_AT_ONCE)
    return vectors, tiles, batch, units


def _vectors(times: int, batch: int) -> int:
    """Return the vectors of all times whose inputs are multiplied at once; enough at all sizes."""
    if depends(batch):
        return smallest(largest(VECTORS_AT_ONCE, batch), times * batch)
    return min(max(VECTORS_AT_ONCE // max(batch, 1), 1), times) * batch


def _tiles(units: int) -> int:
    return -(-units // PANEL)


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
