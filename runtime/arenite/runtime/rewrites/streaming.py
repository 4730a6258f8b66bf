"""Load weights into the arena during each run, so that only a window of them is resident.

A convolution or product whose weights are streamed becomes tiles of its output channels. For
each tile one step loads some panels of the packed weights into a window, an ordinary tensor that
the planner places, and the next computes a part of the result with it. The parts are then joined;
those that are contiguous in the result are written in place.

Where windows are large and the budget has room for a second one, the next tile is loaded into that
meanwhile, on a lane of its own; `lanes.py` then has loads begin early.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from arenite.planner import AreniteError, DType, Program, Step, Tensor, TensorKind
from arenite.planner.errors import BudgetError
from arenite.planner.programs import Names
from arenite.planner.units import parse_size
from arenite.runtime.operators.base import PANEL, RuntimeOperator
from arenite.runtime.operators.convolution import Convolution
from arenite.runtime.operators.halves import SHORT_FLOATS
from arenite.runtime.operators.loops import inner_programs
from arenite.runtime.operators.movement import Copy, LoadWeights
from arenite.runtime.operators.moves import Move
from arenite.runtime.rewrites.fusing import without_unread
from arenite.runtime.rewrites.lanes import loads_beside


class Loading(StrEnum):
    """The thread that loads the weights that are not resident."""

    BESIDE = "beside"
    """A thread of its own, into a second window, beside the computation."""
    IN_TURN = "in-turn"
    """The thread that computes, one window at a time."""


class WeightBudgetError(BudgetError):
    """The weights do not fit the budget even with everything streamed that can be."""

    def __init__(self, budget: int, least: int) -> None:
        super().__init__(
            f"the weights need at least {least:,} B, the budget is {budget:,} B; raise --weights",
            budget,
            least,
        )


class NoRestError(AreniteError):
    """Weights are to take the rest of a budget where no budget covers arena and weights."""

    def __init__(self) -> None:
        super().__init__(
            "'--weights rest' is for `arenite fit`, whose --budget then covers the arena and the "
            "weights; state a size such as 4MiB, or a share such as 25%"
        )


@dataclass(frozen=True, slots=True)
class WeightBudget:
    """Weights that may be resident: a number of bytes, or a percentage of all weights.

    Attributes:
        amount: Bytes, or a percentage if `is_percent`; None for what a budget leaves that covers
            the arena too.
        is_percent: Whether the amount is a percentage.
        loading: The thread that loads the others; None chooses by the size of the windows.
    """

    amount: float | None
    is_percent: bool = False
    loading: Loading | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a budget such as `4MiB`, `25%`, `rest`, `25%,in-turn` or `4MiB,beside`.

        Raises:
            ValueError: It is neither a size above 0 nor above 0 % and at most 100 %, or something
                else than how to load follows.
        """
        amount, comma, how = text.partition(",")
        if comma and how not in {*Loading}:
            ways = " or ".join(repr(str(each)) for each in Loading)
            raise ValueError(f"{text!r}: {how!r} is unsupported, supported: {ways}")
        loading = Loading(how) if comma else None
        if amount == _REST:
            return cls(None, loading=loading)
        if not amount.endswith("%"):
            size = parse_size(amount)
            if size < 1:
                raise ValueError(f"{text!r} is not above 0")
            return cls(size, loading=loading)
        percent = float(amount[:-1])
        if not 0 < percent <= 100:
            raise ValueError(f"{text!r} is not above 0% and at most 100%")
        return cls(percent, is_percent=True, loading=loading)

    @property
    def is_rest(self) -> bool:
        """Whether it is what a budget leaves that covers the arena too."""
        return self.amount is None

    def __str__(self) -> str:
        """Return a text that `parse` reads."""
        if self.amount is None:
            amount = _REST
        else:
            amount = f"{self.amount:.9g}%" if self.is_percent else str(int(self.amount))
        return amount if self.loading is None else f"{amount},{self.loading}"

    def bytes_of(self, program: Program) -> int:
        """Return the budget in bytes for a program.

        Raises:
            NoRestError: It is the rest of another budget.
        """
        if self.amount is None:
            raise NoRestError
        if not self.is_percent:
            return int(self.amount)
        return int(self.amount / 100 * weight_bytes(program))


_REST = "rest"


def weight_bytes(program: Program) -> int:
    """Return the bytes of all weights, decoded; those of loops, which all stay, among them."""
    own = sum(array.nbytes for array in program.constants.values())
    return own + sum(weight_bytes(each.program) for each in inner_programs(program))


def resident_bytes(program: Program) -> int:
    """Return the bytes of the weights that stay resident if none is streamed.

    Tables of which steps only look up rows do not: a run gives their pages back.
    """
    return weight_bytes(program) - sum(
        program.constants[name].nbytes for name in _looked_up(program)
    )


_FEWEST_WEIGHTS = 4_096
"""Fewest weights of a step that is worth streaming."""
_SHARE = 8
"""A window takes at most one part in this many of the budget, if a panel fits."""
_WORTH_A_LANE = 256 * 1024
"""Bytes of a window: smaller ones take less time to fill than to hand over to another thread."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """A program whose resident weights meet a budget.

    Attributes:
        program: The program, with steps that load weights.
        resident: Bytes of weights that stay resident.
        streamed: Bytes of weights that are streamed.
        window: Bytes of the largest window.
        num_tiles: Number of windows.
        at_once: Windows that are live together: 2 if loads run beside the computation.
    """

    program: Program
    resident: int
    streamed: int
    window: int
    num_tiles: int
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class _Layer:
    """A step that can be streamed.

    Attributes:
        name: Name of the step.
        panels: Number of panels of the weights.
        panel_size: Bytes of a panel.
        num_results: Number of elements of the result.
    """

    name: str
    panels: int
    panel_size: int
    num_results: int

    @property
    def size(self) -> int:
        """Bytes of the weights."""
        return self.panels * self.panel_size

    def tile_panels(self, window: int) -> int:
        """Return the panels of a tile that fits a window of this size, but at least one."""
        return min(self.panels, max(1, window // self.panel_size))


def stream_weights(program: Program, budget: int, loading: Loading | None = None) -> Streaming:
    """Return the program with enough weights streamed to meet a budget.

    Args:
        program: A lowered program; its floating-point convolutions and products can be
            streamed, those with weights in blocks too.
        budget: Bytes of weights that may be resident, all windows at a time included.
        loading: The thread that loads them; a lane needs two windows in the budget.

    Raises:
        WeightBudgetError: The budget cannot be met.
    """
    total = resident_bytes(program)
    if total <= budget:
        return Streaming(program, total, 0, 0, 0)
    # Layers with the fewest results per weight first: joining their tiles costs the least.
    layers = sorted(_layers(program), key=lambda each: each.num_results / each.size)
    choice = None if loading is Loading.IN_TURN else _choice(layers, total, budget, at_once=2)
    is_small = choice is not None and choice.window < _WORTH_A_LANE
    if choice is None or (is_small and loading is None):
        choice = _choice(layers, total, budget, at_once=1)
    if choice is None:
        least = total - sum(layer.size for layer in layers)
        raise WeightBudgetError(
            budget, least + max((each.panel_size for each in layers), default=0)
        )
    tiler = _Tiler(program)
    for layer in choice.layers:
        tiler.tile(layer, layer.tile_panels(choice.window))
    largest = max(layer.tile_panels(choice.window) * layer.panel_size for layer in choice.layers)
    made = tiler.finish()
    return Streaming(
        made if choice.at_once == 1 else loads_beside(made),
        choice.resident,
        total - choice.resident,
        largest,
        tiler.num_tiles,
        choice.at_once,
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """Layers to stream, bytes that stay resident, and the size and number of windows."""

    layers: tuple[_Layer, ...]
    resident: int
    window: int
    at_once: int


def _choice(layers: Sequence[_Layer], total: int, budget: int, at_once: int) -> _Choice | None:
    """Return the weights to stream with so many windows; None if that exceeds the budget."""
    share = budget // _SHARE

    def room(streamed: Iterable[_Layer]) -> int:
        """Return the bytes of windows of their share of the budget, or as large as of use."""
        return at_once * max((max(e.panel_size, min(e.size, share)) for e in streamed), default=0)

    resident = total
    chosen: list[_Layer] = []
    for layer in layers:
        if resident + room(chosen) <= budget:
            break
        resident -= layer.size
        chosen.append(layer)
    for layer in reversed(tuple(chosen)):  # the last may have left room for some before it
        others = [each for each in chosen if each is not layer]
        if resident + layer.size + room(others) <= budget:
            resident, chosen = resident + layer.size, others
    least_window = max((each.panel_size for each in chosen), default=0)
    window = max(least_window, min((budget - resident) // at_once, share))
    if resident + at_once * window > budget:
        return None
    return _Choice(tuple(chosen), resident, window, at_once)


def _looked_up(program: Program) -> set[str]:
    """Return the constants that only look-ups read, of which a run reads few rows."""
    others = {
        program.root(name)[0]
        for step in program.steps
        if not _looks_up(step)
        for name in step.reads
    }
    return {
        name for step in program.steps if _looks_up(step) for name in step.reads
    } & program.constants.keys() - others


def _looks_up(step: Step) -> bool:
    return isinstance(step.operator, RuntimeOperator) and step.operator.looks_up


def _layers(program: Program) -> list[_Layer]:
    uses = Counter(
        program.root(name)[0]
        for step in program.steps
        if not _looks_up(step)
        for name in step.reads
    )
    found: list[_Layer] = []
    for step in program.steps:
        loaded = _loaded(step)
        own = [
            program.constants.get(name)
            for position, name in enumerate(step.inputs)
            if name and (position in loaded or position not in (0, Convolution.ADDEND))
        ]
        weights = own[0] if loaded and all(array is not None for array in own) else None
        if (
            weights is None
            or (len(loaded) == 1 and not _are_floats(program.tensors[step.inputs[loaded[0]]]))
            or weights.size < _FEWEST_WEIGHTS
            or any(uses[step.inputs[position]] > 1 for position in loaded)
        ):
            continue
        panels = weights.shape[0]
        size = sum(program.constants[step.inputs[position]].nbytes for position in loaded)
        results = program.tensors[step.outputs[0]].num_elements
        found.append(_Layer(step.name, panels, size // panels, results))
    return found


def _are_floats(weights: Tensor) -> bool:
    return weights.dtype in (DType.FLOAT32, *SHORT_FLOATS)


def _loaded(step: Step) -> tuple[int, ...]:
    """Return the inputs of a step that windows may take the place of."""
    if not isinstance(step.operator, RuntimeOperator):
        return ()
    present = [position for position, name in enumerate(step.inputs) if name]
    return tuple(each for each in step.operator.loaded_inputs() if each in present)


class _Tiler:
    """Replaces steps by their tiles."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = Names([*program.tensors, *(step.name for step in program.steps)])
        self._tensors = dict(program.tensors)
        self._constants = dict(program.constants)
        self._steps: dict[str, tuple[Step, ...]] = {step.name: (step,) for step in program.steps}
        self.num_tiles = 0

    def tile(self, layer: _Layer, tile_panels: int) -> None:
        """Replace a step by tiles of `tile_panels` panels of its weights."""
        (step,) = self._steps[layer.name]
        outputs = self._tensors[step.outputs[0]].shape[-1]
        made: list[Step] = []
        parts: list[str] = []
        for first in range(0, layer.panels, tile_panels):
            panels = range(first, min(first + tile_panels, layer.panels))
            channels = range(first * PANEL, min(panels.stop * PANEL, outputs))
            if len(panels) == layer.panels:
                part, name = step.outputs[0], layer.name
            else:
                part = self._part(step.outputs[0], len(channels), f"{layer.name}/{channels.start}")
                name = self._names.take(f"{layer.name}/channels {channels.start}")
            made += self._tile(step, name, part, panels, channels)
            parts.append(part)
            self.num_tiles += 1
        if len(parts) > 1:
            made.append(self._join(parts, step.outputs[0], layer.name))
        self._steps[layer.name] = tuple(made)

    def finish(self) -> Program:
        """Return the program, without the constants that are only read in tiles now."""
        steps = tuple(each for name in self._steps for each in self._steps[name])
        return without_unread(
            replace(self._program, tensors=self._tensors, steps=steps, constants=self._constants)
        )

    def _tile(
        self, step: Step, name: str, part: str, panels: range, channels: range
    ) -> list[Step]:
        """Return the steps that load panels of the weights, and the one that uses them.

        Where that adds, a step before them takes its channels of the addend, so that sums are
        made in the same order as of the whole.
        """
        loaded = _loaded(step)
        inputs = list(step.inputs)
        made: list[Step] = []
        for position, source in enumerate(step.inputs):
            if not position or not source:
                continue
            if position in loaded:
                made.append(self._load(self._cut(source, panels), name))
                inputs[position] = made[-1].outputs[0]
            elif position != Convolution.ADDEND:
                inputs[position] = self._cut(source, channels)
            elif len(panels) < self._tensors[step.inputs[1]].shape[0]:
                made.insert(0, self._slice(source, channels))
                inputs[position] = made[0].outputs[0]
        return [*made, Step(name, step.operator, tuple(inputs), (part,))]

    def _load(self, weights: str, name: str) -> Step:
        """Return the step that loads a constant into a window."""
        window = self._names.take(f"{name}/window")
        stated = self._tensors[weights]
        self._tensors[window] = replace(stated, name=window, kind=TensorKind.ACTIVATION)
        return Step(self._names.take(f"{name}/load"), LoadWeights(), (weights,), (window,))

    def _slice(self, source: str, channels: range) -> Step:
        """Return the step that copies some channels of a tensor."""
        shape = self._tensors[source].shape
        part = self._part(source, len(channels), f"{source}/channels {channels.start}")
        move = Move(
            shape=(math.prod(shape[:-1]), len(channels)), input_start=channels.start,
            input_strides=(shape[-1], 1), output_strides=(len(channels), 1),
        )  # fmt: skip
        return Step(self._names.take(part), Copy(moves=(move,)), (source,), (part,))

    def _part(self, whole: str, channels: int, hint: str) -> str:
        name = self._names.take(hint)
        shape = (*self._tensors[whole].shape[:-1], channels)
        self._tensors[name] = Tensor(name, self._tensors[whole].dtype, shape)
        return name

    def _cut(self, source: str, indices: range) -> str:
        """Return the name of a constant of some of another's outermost elements."""
        array = self._constants[source]
        if len(indices) == len(array):
            return source
        name = self._names.take(f"{source}/{indices.start}")
        cut = array[indices.start : indices.stop]
        self._constants[name] = cut
        kind = self._tensors[source].dtype
        self._tensors[name] = Tensor(name, kind, cut.shape, TensorKind.CONSTANT)
        return name

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
