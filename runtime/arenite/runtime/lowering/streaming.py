"""Brings weights into the arena for each run, so that a window of them is resident, not all.

A convolution or product whose weights are streamed becomes tiles of its output channels, each of
two steps. The first loads a block of rows of the weights into a window, an ordinary tensor that
the planner places, with room for the order of the kernels. The second is an ordinary convolution
or product that finds its filter there. The parts are joined, by address where they are one run of
bytes each.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.errors import AreniteError
from arenite.planner.graph import Graph, Operator, Tensor, TensorKind
from arenite.planner.names import Names
from arenite.planner.units import parse_size
from arenite.runtime.lowering.lowered import Array, Lowered, Operand, Step
from arenite.runtime.program.operators import (
    Conv2D,
    Copy,
    FullyConnected,
    LoadWeights,
    Move,
)

_BLOCK_ROWS = 32
"""Rows that kernels pack together, or a multiple of what they do."""
_SLACK = 256
"""Bytes behind the weights of a window that some versions of the kernels reserve."""
_FEWEST_WEIGHTS = 4_096
"""Of a step that is worth streaming."""
_MOST_WEIGHTS = (1 << 24) - 1
"""Of a tile: the core numbers them in 32-bit floats."""
_SHARE = 8
"""A window takes at most this part of the budget, if a block of rows fits."""


class WeightBudgetError(AreniteError):
    """Weights do not fit a budget even if all that can be streamed are.

    Attributes:
        budget: Bytes.
        least: Bytes that suffice.
    """

    def __init__(self, budget: int, least: int) -> None:
        super().__init__(
            f"the weights need at least {least} B, the budget is {budget} B; raise --weight-budget"
        )
        self.budget = budget
        self.least = least


@dataclass(frozen=True, slots=True)
class WeightBudget:
    """Weights that may be resident: bytes, or a part of them all.

    Attributes:
        amount: Bytes; or percent, where `is_percent`.
        is_percent: What the amount is.
    """

    amount: float
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the budget of a text such as `4MiB` or `25%`.

        Raises:
            ValueError: It is neither a size above 0 nor above 0 % and at most 100 %.
        """
        if not text.endswith("%"):
            size = parse_size(text)
            if size < 1:
                raise ValueError(f"{text!r} is not above 0")
            return cls(size)
        percent = float(text[:-1])
        if not 0 < percent <= 100:
            raise ValueError(f"{text!r} is not above 0% and at most 100%")
        return cls(percent, is_percent=True)

    def __str__(self) -> str:
        """Return a text that `parse` reads."""
        return f"{self.amount:.9g}%" if self.is_percent else str(int(self.amount))

    def bytes_of(self, lowered: Lowered) -> int:
        """Return the bytes for a program."""
        if not self.is_percent:
            return int(self.amount)
        return int(self.amount / 100 * weight_bytes(lowered))


@dataclass(frozen=True, slots=True)
class Streaming:
    """How a budget is met.

    Attributes:
        lowered: The program.
        resident: Bytes of the weights that stay.
        streamed: Bytes of the others.
        window: Bytes of the largest window.
        num_tiles: Windows in all.
    """

    lowered: Lowered
    resident: int
    streamed: int
    window: int
    num_tiles: int


@dataclass(frozen=True, slots=True)
class _Layer:
    """A step that can be streamed.

    Attributes:
        name: Of the step.
        rows: Output channels.
        columns: Weights of each.
        num_results: Elements it makes.
    """

    name: str
    rows: int
    columns: int
    num_results: int

    @property
    def size(self) -> int:
        """Bytes of the weights."""
        return 4 * self.rows * self.columns

    @property
    def least_window(self) -> int:
        return self.window(_BLOCK_ROWS)

    def window(self, rows: int) -> int:
        """Return the bytes of the window of so many rows, each with its bias."""
        blocks = -(-min(rows, self.rows) // _BLOCK_ROWS)
        return 4 * blocks * _BLOCK_ROWS * (self.columns + 1) + _SLACK

    def tile_rows(self, window: int) -> int:
        """Return the rows of a tile whose window is at most so large, one block at least."""
        blocks = max(1, window // self.least_window)
        most = max(1, _MOST_WEIGHTS // self.columns // _BLOCK_ROWS)
        return min(self.rows, _BLOCK_ROWS * min(blocks, most))


def weight_bytes(lowered: Lowered) -> int:
    """Return the bytes of all weights, as they are without a code."""
    return sum(array.nbytes for array in lowered.constants.values())


def stream_weights(lowered: Lowered, budget: int) -> Streaming:
    """Return the program with as many weights streamed as a budget asks for.

    Args:
        lowered: The program; its convolutions and products in floating point can be streamed.
        budget: Bytes of weights that may be resident, the largest window included.

    Raises:
        WeightBudgetError: The budget cannot be met.
    """
    total = weight_bytes(lowered)
    if total <= budget:
        return Streaming(lowered, total, 0, 0, 0)
    # Those first that make the fewest results for their weights: joining tiles costs the least.
    layers = sorted(_layers(lowered), key=lambda each: each.num_results / each.size)
    resident, least_window = total, 0
    chosen: list[_Layer] = []
    for layer in layers:
        if resident + max(least_window, budget // _SHARE) <= budget:
            break
        resident -= layer.size
        least_window = max(least_window, layer.least_window)
        chosen.append(layer)
    window = max(least_window, min(budget - resident, budget // _SHARE))
    if resident + window > budget:
        raise WeightBudgetError(budget, resident + least_window)
    tiler = _Tiler(lowered)
    for layer in chosen:
        tiler.tile(layer, layer.tile_rows(window))
    largest = max(layer.window(layer.tile_rows(window)) for layer in chosen)
    return Streaming(tiler.finish(), resident, total - resident, largest, tiler.num_tiles)


def _layers(lowered: Lowered) -> list[_Layer]:
    uses = Counter(name for step in lowered.steps.values() for name in _tensors(step.inputs))
    found: list[_Layer] = []
    for name, step in lowered.steps.items():
        if not _is_plain(step):
            continue
        weights = step.inputs[1]
        assert weights is not None
        array = lowered.constants.get(weights.tensor)
        if (
            array is None
            or array.dtype != np.float32
            or array.size < _FEWEST_WEIGHTS
            or weights.shape != array.shape
            or weights.offset
            or uses[weights.tensor] > 1
        ):
            continue
        rows = array.shape[0]
        results = math.prod(step.outputs[0].shape)
        found.append(_Layer(name, rows, array.size // rows, results))
    return found


def _is_plain(step: Step) -> bool:
    operator = step.operator
    if isinstance(operator, Conv2D):
        return operator.groups == 1
    return isinstance(operator, FullyConnected)


class _Tiler:
    """Replaces steps by their tiles."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._names = Names([*lowered.graph.tensors, *lowered.steps])
        self._tensors = dict(lowered.graph.tensors)
        self._constants = dict(lowered.constants)
        self._steps = dict(lowered.steps)
        self._operators: dict[str, tuple[Operator, ...]] = {
            each.name: (each,) for each in lowered.graph.operators
        }
        self._replaced: set[str] = set()
        self.num_tiles = 0

    def tile(self, layer: _Layer, tile_rows: int) -> None:
        """Let a step read its weights in blocks of so many rows."""
        step = self._steps.pop(layer.name)
        (operator,) = self._operators[layer.name]
        made: list[Operator] = []
        parts: list[Operand] = []
        for first in range(0, layer.rows, tile_rows):
            rows = min(tile_rows, layer.rows - first)
            if rows == layer.rows:
                part, name = step.outputs[0], layer.name
            else:
                part = self._part(step.outputs[0], rows, f"{layer.name}/{first}")
                name = self._names.take(f"{layer.name}/rows {first}")
            weights, *bias = self._rows(step, first, rows)
            assert weights is not None
            window = self._window(layer, rows, name)
            # The same bytes under the filter's own shape.
            inputs = (step.inputs[0], Operand(window.tensor, weights.shape), *bias)
            loader = self._names.take(f"{name}/load")
            self._steps[loader] = Step(LoadWeights(), (weights, *bias), (window,))
            self._steps[name] = Step(step.operator, inputs, (part,))
            made += [
                Operator(loader, "LoadWeights", _tensors((weights, *bias)), (window.tensor,)),
                Operator(name, operator.op_type, _tensors(inputs), (part.tensor,)),
            ]
            parts.append(part)
            self.num_tiles += 1
        if len(parts) > 1:
            made.append(self._join(parts, step.outputs[0], layer.name))
        self._replaced.update(_tensors(step.inputs[1:]))
        self._operators[layer.name] = tuple(made)

    def finish(self) -> Lowered:
        """Return the program."""
        self._drop_unused()
        graph = self._lowered.graph
        operators = [each for name in self._operators for each in self._operators[name]]
        return replace(
            self._lowered,
            graph=Graph.of(
                graph.name, self._tensors.values(), operators, graph.inputs, graph.outputs,
                graph.notes,
            ),
            steps={each.name: self._steps[each.name] for each in operators},
            constants=self._constants,
        )  # fmt: skip

    def _part(self, whole: Operand, rows: int, hint: str) -> Operand:
        name = self._names.take(hint)
        shape = (*whole.shape[:-1], rows)
        self._tensors[name] = Tensor(name, DType.FLOAT32, shape, TensorKind.ACTIVATION)
        return Operand(name, shape)

    def _window(self, layer: _Layer, rows: int, hint: str) -> Operand:
        name = self._names.take(f"{hint}/window")
        shape = (layer.window(rows) // 4,)
        self._tensors[name] = Tensor(name, DType.FLOAT32, shape, TensorKind.ACTIVATION)
        return Operand(name, shape)

    def _rows(self, step: Step, first: int, rows: int) -> list[Operand | None]:
        """Return the rows of the weights and of the bias as constants of their own."""
        found: list[Operand | None] = []
        for operand in step.inputs[1:]:
            if operand is None:
                found.append(None)
                continue
            array = self._lowered.constants[operand.tensor]
            if rows == array.shape[0]:
                found.append(operand)
                continue
            name = self._names.take(f"{operand.tensor}/{first}")
            self._add_constant(name, array[first : first + rows])
            found.append(Operand(name, self._constants[name].shape))
        return found

    def _add_constant(self, name: str, array: Array) -> None:
        self._constants[name] = array
        self._tensors[name] = Tensor(name, DType.FLOAT32, array.shape, TensorKind.CONSTANT)

    def _join(self, parts: list[Operand], whole: Operand, name: str) -> Operator:
        moves: list[Move] = []
        first, pitch = 0, whole.shape[-1]
        count = math.prod(whole.shape[:-1])
        for position, part in enumerate(parts):
            rows = part.shape[-1]
            moves.append(
                Move(
                    input=position, shape=(count, rows), input_strides=(rows, 1),
                    output_start=first, output_strides=(pitch, 1),
                )
            )  # fmt: skip
            first += rows
        self._steps[name] = Step(Copy(moves=tuple(moves)), tuple(parts), (whole,))
        return Operator(name, "Concat", _tensors(parts), _tensors((whole,)))

    def _drop_unused(self) -> None:
        """Forget the constants that no step reads whole any more."""
        used = {name for step in self._steps.values() for name in _tensors(step.inputs)}
        for name in self._replaced - used - {""}:
            del self._constants[name]
            del self._tensors[name]


def _tensors(operands: Iterable[Operand | None]) -> tuple[str, ...]:
    return tuple("" if operand is None else operand.tensor for operand in operands)
