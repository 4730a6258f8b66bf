"""Load weights into the arena during each run, so that only a window of them is resident.

A convolution or product whose weights are streamed becomes tiles of its output channels. For
each tile one step loads a block of rows of the weights into a window, an ordinary tensor that
the planner places, and the next computes a part of the result with it. The parts are then joined;
those that are contiguous in the result are written in place.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.names import Names
from arenite.planner.program import Array, Program, Step
from arenite.planner.tensors import Alias, Tensor, TensorKind
from arenite.runtime.operators.convolution import Conv2D, FullyConnected
from arenite.runtime.operators.movement import Copy, LoadWeights, Move
from arenite.runtime.rewrites.weight_budget import WeightBudgetError, weight_bytes

_BLOCK_ROWS = 32
"""Rows in a block: a multiple of what any kernel packs together."""
_SLACK = 256
"""Bytes behind the weights of a window that some versions of the kernels reserve."""
_FEWEST_WEIGHTS = 4_096
"""Fewest weights of a step that is worth streaming."""
_MOST_WEIGHTS = (1 << 24) - 1
"""Most weights of a tile: the core indexes them with 32-bit floats."""
_SHARE = 8
"""A window takes at most one part in this many of the budget, if a block of rows fits."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """How a budget is met.

    Attributes:
        program: The program, with steps that load weights.
        resident: Bytes of weights that stay resident.
        streamed: Bytes of weights that are streamed.
        window: Bytes of the largest window.
        num_tiles: Number of windows.
    """

    program: Program
    resident: int
    streamed: int
    window: int
    num_tiles: int


@dataclass(frozen=True, slots=True)
class _Layer:
    """A step that can be streamed.

    Attributes:
        name: Name of the step.
        rows: Number of output channels.
        columns: Number of weights of each output channel.
        num_results: Number of elements of the result.
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
        """Return the bytes of a window for `rows` rows, each with its bias."""
        blocks = -(-min(rows, self.rows) // _BLOCK_ROWS)
        return 4 * blocks * _BLOCK_ROWS * (self.columns + 1) + _SLACK

    def tile_rows(self, window: int) -> int:
        """Return the rows of a tile that fits a window of this size, but at least one block."""
        blocks = max(1, window // self.least_window)
        most = max(1, _MOST_WEIGHTS // self.columns // _BLOCK_ROWS)
        return min(self.rows, _BLOCK_ROWS * min(blocks, most))


def stream_weights(program: Program, budget: int) -> Streaming:
    """Return the program with enough weights streamed to meet a budget.

    Args:
        program: A lowered program; its floating-point convolutions and products can be
            streamed.
        budget: Bytes of weights that may be resident, the largest window included.

    Raises:
        WeightBudgetError: The budget cannot be met.
    """
    total = weight_bytes(program)
    if total <= budget:
        return Streaming(program, total, 0, 0, 0)
    # Layers with the fewest results per weight first: joining their tiles costs the least.
    layers = sorted(_layers(program), key=lambda each: each.num_results / each.size)
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
    tiler = _Tiler(program)
    for layer in chosen:
        tiler.tile(layer, layer.tile_rows(window))
    largest = max(layer.window(layer.tile_rows(window)) for layer in chosen)
    return Streaming(tiler.finish(), resident, total - resident, largest, tiler.num_tiles)


def _layers(program: Program) -> list[_Layer]:
    uses = Counter(program.root(name)[0] for step in program.steps for name in step.reads)
    found: list[_Layer] = []
    for step in program.steps:
        own = [program.constants.get(name) for name in step.inputs[1:] if name]
        weights = own[0] if _is_plain(step) and all(array is not None for array in own) else None
        if (
            weights is None
            or weights.dtype != np.float32
            or weights.size < _FEWEST_WEIGHTS
            or uses[step.inputs[1]] > 1
        ):
            continue
        rows = weights.shape[0]
        results = program.tensors[step.outputs[0]].num_elements
        found.append(_Layer(step.name, rows, weights.size // rows, results))
    return found


def _is_plain(step: Step) -> bool:
    operator = step.operator
    if isinstance(operator, Conv2D):
        return operator.groups == 1
    return isinstance(operator, FullyConnected)


class _Tiler:
    """Replaces steps by their tiles."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = Names([*program.tensors, *(step.name for step in program.steps)])
        self._tensors = dict(program.tensors)
        self._constants = dict(program.constants)
        self._steps: dict[str, tuple[Step, ...]] = {step.name: (step,) for step in program.steps}
        self.num_tiles = 0

    def tile(self, layer: _Layer, tile_rows: int) -> None:
        """Replace a step by tiles of `tile_rows` rows of its weights."""
        (step,) = self._steps[layer.name]
        made: list[Step] = []
        parts: list[str] = []
        for first in range(0, layer.rows, tile_rows):
            rows = min(tile_rows, layer.rows - first)
            if rows == layer.rows:
                part, name = step.outputs[0], layer.name
            else:
                part = self._part(step.outputs[0], rows, f"{layer.name}/{first}")
                name = self._names.take(f"{layer.name}/rows {first}")
            made += self._tile(step, layer, name, part, first, rows)
            parts.append(part)
            self.num_tiles += 1
        if len(parts) > 1:
            made.append(self._join(parts, step.outputs[0], layer.name))
        self._steps[layer.name] = tuple(made)

    def finish(self) -> Program:
        """Return the program, without the constants that are only read in tiles now."""
        steps = [each for name in self._steps for each in self._steps[name]]
        used = {name for step in steps for name in (*step.reads, *step.writes)}
        used.update(self._program.input_tensors, self._program.output_tensors)
        used.update(self._program.initial.values())
        pending = list(used)
        while pending:
            alias = self._tensors[pending.pop()].alias
            if alias is not None and alias.tensor not in used:
                used.add(alias.tensor)
                pending.append(alias.tensor)
        return replace(
            self._program,
            tensors={
                name: tensor
                for name, tensor in self._tensors.items()
                if name in used or tensor.kind is TensorKind.STATE
            },
            steps=tuple(steps),
            constants={n: array for n, array in self._constants.items() if n in used},
        )

    def _tile(
        self, step: Step, layer: _Layer, name: str, part: str, first: int, rows: int
    ) -> tuple[Step, Step]:
        """Return the step that loads rows of the weights, and the one that uses them."""
        weights, *others = self._rows(step, first, rows)
        window = self._names.take(f"{name}/window")
        self._add(window, (layer.window(rows) // 4,))
        block = self._names.take(f"{name}/filter")
        self._add(block, self._tensors[weights].shape, Alias(window))
        load = Step(self._names.take(f"{name}/load"), LoadWeights(), (weights, *others), (window,))
        return load, Step(name, step.operator, (step.inputs[0], block, *others), (part,))

    def _part(self, whole: str, rows: int, hint: str) -> str:
        name = self._names.take(hint)
        self._add(name, (*self._tensors[whole].shape[:-1], rows))
        return name

    def _add(self, name: str, shape: tuple[int, ...], alias: Alias | None = None) -> None:
        self._tensors[name] = Tensor(name, DType.FLOAT32, shape, alias=alias)

    def _rows(self, step: Step, first: int, rows: int) -> list[str]:
        """Return the rows of the weights and of the bias as constants of their own."""
        found: list[str] = []
        for source in step.inputs[1:]:
            array = self._constants[source] if source else None
            if array is None or rows == array.shape[0]:
                found.append(source)
                continue
            name = self._names.take(f"{source}/{first}")
            self._add_constant(name, array[first : first + rows])
            found.append(name)
        return found

    def _add_constant(self, name: str, array: Array) -> None:
        self._constants[name] = array
        self._tensors[name] = Tensor(name, DType.FLOAT32, array.shape, TensorKind.CONSTANT)

    def _join(self, parts: Iterable[str], whole: str, name: str) -> Step:
        moves: list[Move] = []
        shape = self._tensors[whole].shape
        first, pitch, count = 0, shape[-1], math.prod(shape[:-1])
        for position, part in enumerate(parts):
            rows = self._tensors[part].shape[-1]
            moves.append(
                Move(
                    input=position, shape=(count, rows), input_strides=(rows, 1),
                    output_start=first, output_strides=(pitch, 1),
                )
            )  # fmt: skip
            first += rows
        return Step(name, Copy(moves=tuple(moves)), tuple(parts), (whole,))
